"""Students whom staff type into a form: by id on screen, number, e-mail or name.

Names, numbers and e-mails are searched only for those who may see them. Several people of one name
are a choice, never a guess.
"""

import re
from collections.abc import Iterable

from django.utils.translation import gettext as _

from engine.tabular.text import fold_name
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import (
    MAX_LABELS,
    SEARCHED,
    Identity,
    Search,
    directory_of,
    may_see_names,
)
from webapp.cohorts.student_finder import StudentFinder
from webapp.housing.errors import HousingError

MAX_PARTS = 500  # students of one text
MAX_CHOICES = 12
_PARTS = re.compile(r"[,;\n]+")
_LABELS = re.compile(r"\s*[sS]-\d{1,9}(\s+[sS]-\d{1,9})*\s*")


class SeveralStudentsError(HousingError):
    """Refusal of a text that several students match.

    ``choices`` are the students, each with the whole text that names this one in their place.
    """

    def __init__(self, text: str, choices: list[tuple[int, str]], *, has_more: bool) -> None:
        labels = ", ".join(f"S-{number}" for number, _ in choices)
        more = " " + _("and others") if has_more else ""
        super().__init__(
            _(
                "Several students match “%(text)s”: %(labels)s%(more)s. Choose one of them, "
                "or type more of the name."
            )
            % {"text": text[:40], "labels": labels, "more": more}
        )
        self.text, self.choices = text, choices


def students_typed(user: User, cohort: Cohort, texts: Iterable[str]) -> list[int]:
    """Return the numbers of the students whom fields name; each may name several, with commas.

    Raises
    ------
    SeveralStudentsError
        If a name means several students.
    HousingError
        If nobody is named, or a text names nobody of the cohort.
    """
    parts = [part.strip() for text in texts for part in _PARTS.split(text) if part.strip()]
    if len(parts) > MAX_PARTS:
        raise HousingError(
            _("Name at most %(max_parts)s students at once. Nothing was changed.")
            % {"max_parts": MAX_PARTS}
        )
    found: list[int] = []
    for k, part in enumerate(parts):
        if _LABELS.fullmatch(part):
            found += [int(digits) for digits in re.findall(r"\d+", part)]
            continue
        people = _meant(user, cohort, part)
        if not people:
            raise HousingError(_nobody(user, cohort, part))
        if len(people) > 1:
            before, after = [f"S-{number}" for number in found], parts[k + 1 :]
            choices = [
                (one.number, ", ".join([*before, one.label, *after]))
                for one in people[:MAX_CHOICES]
            ]
            raise SeveralStudentsError(part, choices, has_more=len(people) > MAX_CHOICES)
        found.append(people[0].number)
    if not found:
        raise HousingError(_("Name at least one student."))
    return list(dict.fromkeys(found))


def _meant(user: User, cohort: Cohort, text: str) -> list[Identity]:
    """Return the students whom a text means: those with exactly this name, else all it begins."""
    by_name = may_see_names(user)
    people = Search(text).find(cohort, by_name=by_name)
    if people and by_name and user.hides_names:
        labels = [one.label for one in people[:MAX_LABELS]]
        audit(user, SEARCHED, cohort, found=labels, count=len(people))
    words = sorted(fold_name(text).split())
    if not people and by_name:
        known = StudentFinder(cohort).find(text)  # by the code of a questionnaire, for example
        people = [] if known is None else [directory_of(cohort).by_number[known.number]]
    exact = [one for one in people if words and words == sorted(fold_name(one.name).split())]
    return exact or sorted(people)


def _nobody(user: User, cohort: Cohort, text: str) -> str:
    ways = (
        _("an id on screen, such as S-1042, a number, an e-mail or a name")
        if may_see_names(user)
        else _("an id on screen, such as S-1042")
    )
    return _("“%(text)s” is nobody in %(cohort)s. Use %(ways)s. Nothing was changed.") % {
        "text": text[:40],
        "cohort": cohort.name,
        "ways": ways,
    }
