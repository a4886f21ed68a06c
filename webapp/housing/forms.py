"""What staff say about a placement: its rules as fields of a form."""

import re
from collections.abc import Iterable

from django.http import QueryDict

from webapp.cohorts.models import Cohort
from webapp.common.parameters import digits_of, whole_number
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.rules import COUNTS, MUST, WISH, PlacementRules
from webapp.housing.student_finder import StudentFinder


def read_rules(
    data: QueryDict, cohort: Cohort, now: PlacementRules | None = None
) -> PlacementRules:
    """Return the rules that a form sends; a text field that it leaves out stays as it is.

    Raises HousingError for a number that is none.
    """
    now = now or default_rules(cohort)
    return PlacementRules(
        designation=data.get("designation", now.designation),
        same=tuple(c for c in data.getlist("same") if c in cohort.constraints),
        needs=tuple(c for c in data.getlist("needs") if c in cohort.constraints),
        mutual=_count(data.get("mutual", now.mutual), MUST),
        one_sided=_count(data.get("one_sided", now.one_sided), WISH),
        wish=_worth(data, "wish", now.wish, "A wish"),
        preference=_worth(data, "preference", now.preference, "The first choice"),
        price=_worth(data, "price", now.price, "A move"),
    )


def _count(text: str, default: str) -> str:
    return text if text in COUNTS else default


def _worth(data: QueryDict, name: str, default: float, words: str) -> float:
    text = data.get(name, "").strip().replace(",", ".")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise HousingError(f"{words} counts from 0 to 100; “{text[:20]}” is no such number.")
    return round(value, 4)


def read_students(texts: Iterable[str], *, may_be_empty: bool = False) -> list[int]:
    """Return the students whom fields name, each an id on screen, several parted by commas.

    Raises HousingError for what is no id on screen, and for none at all.
    """
    found = []
    for text in texts:
        for part in re.split(r"[,;\s]+", text.strip()):
            number = whole_number(digits_of(part))
            if part and number is None:
                raise HousingError(f"“{part[:20]}” is not an id on screen, such as S-1042.")
            found += [number] if number is not None else []
    if not found and not may_be_empty:
        raise HousingError("Name at least one student.")
    return list(dict.fromkeys(found))


def find_numbers(placement: Placement, text: str) -> list[int]:
    """Return the students whom a text names, by ids on screen or of the housing system.

    Ids are parted by lines, commas or semicolons. Raises HousingError for one that names nobody.
    """
    finder = StudentFinder(placement.cohort)
    found = []
    for part in (part.strip() for part in re.split(r"[,;\n]+", text)):
        student = finder.find(part) if part else None
        if part and student is None:
            raise HousingError(
                f"“{part[:40]}” is nobody in {placement.cohort.name}. Use ids as on screen, such "
                "as S-1042, or as in your housing system, e-mails or names. Nothing was changed."
            )
        found += [student.number] if student is not None else []
    if not found:
        raise HousingError("Name at least one student.")
    return list(dict.fromkeys(found))


def default_rules(cohort: Cohort) -> PlacementRules:
    """Return the rules that a new placement of a cohort starts with, guessed from its columns."""
    words = {column: column.casefold() for column in cohort.constraints}
    gender = next((c for c, w in words.items() if "gender" in w or w == "sex"), "")
    needs = tuple(
        c for c, w in words.items() if any(x in w for x in ("accessib", "need", "step", "quiet"))
    )
    return PlacementRules(designation=gender, same=(gender,) if gender else (), needs=needs)
