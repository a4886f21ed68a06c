"""Forms of placements: reading rules, students and seeds."""

import re
from collections.abc import Iterable

from django.http import QueryDict

from webapp.cohorts.models import Cohort
from webapp.cohorts.student_finder import StudentFinder
from webapp.common.parameters import digits_of, whole_number
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.rules import COUNTS, MUST, WISH, PlacementRules

SEEDS = 2**31


def read_rules(
    data: QueryDict, cohort: Cohort, now: PlacementRules | None = None
) -> PlacementRules:
    """Return the rules that a form sends; a text field that is missing keeps its present value.

    Raises HousingError for an invalid number.
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
    """Return the students named by fields; each field holds ids on screen, parted by commas.

    Raises HousingError for an invalid id on screen, and if nobody is named.
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


def read_seed(data: QueryDict) -> int | None:
    """Return the seed that a form sends; None if the product is to choose it.

    Raises HousingError for an invalid seed.
    """
    text = data.get("seed", "").strip()
    if not text:
        return None
    if not (text.isdecimal() and len(text) <= 10 and int(text) < SEEDS):
        raise HousingError(f"A seed is a whole number from 0 to {SEEDS - 1:,}.")
    return int(text)


def seen_version(data: QueryDict) -> int:
    """Return the placement's count of acts that the form's page showed; -1 if the form has none."""
    version = whole_number(data.get("version", ""))
    return -1 if version is None else version


def find_numbers(placement: Placement, text: str) -> list[int]:
    """Return the students named by a text, by ids on screen or ids of the housing system.

    Ids are parted by lines, commas or semicolons. Raises HousingError for an unknown id.
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
    """Return the default rules of a new placement, guessed from the columns of its cohort.

    Every column of needs counts.
    """
    words = {column: column.casefold() for column in cohort.same_columns}
    gender = next((c for c, w in words.items() if "gender" in w or w == "sex"), "")
    needs = tuple(c for c in cohort.constraints if c in cohort.needs)
    return PlacementRules(designation=gender, same=(gender,) if gender else (), needs=needs)
