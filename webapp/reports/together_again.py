"""Couples who would live together again: a cohort of past pairs that a model can learn from.

A couple is a room of two on the same days whose two residents both answered "Yes" to the question
of the follow-up. Couples with a "No", or with only one answer, are never pairs.
"""

from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, PairsOrigin
from webapp.cohorts.services.cohorts import cohort_of_some, cohort_set_pairs
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement
from webapp.housing.stays import place_stay
from webapp.reports.outcomes import answers_by_student, is_yes
from webapp.surveys.housing_forms import TOGETHER_AGAIN
from webapp.surveys.models import Questionnaire

FEWEST_PAIRS = 20  # of a cohort to learn from; fewer would tell little, and single answers


@dataclass(frozen=True, slots=True)
class Couples:
    """Rooms of two by the answers of their residents.

    ``pairs`` are the numbers of the couples who would both live together again; ``refused`` counts
    the couples with a "No", ``unknown`` those with at most one answer and no "No".
    """

    pairs: tuple[tuple[int, int], ...]
    refused: int
    unknown: int

    @property
    def are_enough(self) -> bool:
        """Return True if there are enough pairs to learn from."""
        return len(self.pairs) >= FEWEST_PAIRS


def couples_of(placement: Placement, questionnaire: Questionnaire) -> Couples:
    """Return the rooms of two of a placement by the answers of a follow-up."""
    members: dict[int, list[Place]] = {}
    for place in placement.places.with_bed():
        members.setdefault(place.room_id or 0, []).append(place)
    answers = answers_by_student(placement, questionnaire, TOGETHER_AGAIN)
    pairs, refused, unknown = [], 0, 0
    for people in members.values():
        if len(people) != 2:
            continue
        one, other = people
        if not place_stay(one, None).overlaps(place_stay(other, None)):
            continue
        given = [is_yes(answers.get(place.number)) for place in people]
        if 0.0 in given:
            refused += 1
        elif None in given:
            unknown += 1
        else:
            pairs.append((min(one.number, other.number), max(one.number, other.number)))
    return Couples(tuple(sorted(pairs)), refused, unknown)


@transaction.atomic
def couples_learn_from(
    *, user: User, placement: Placement, questionnaire: Questionnaire, pairs: int
) -> Cohort:
    """Make a cohort of the couples who would live together again, with their answers.

    The cohort is a part of the placement's cohort: purging that one purges it too, and a student
    who withdraws the answers of the survey is blanked in both.

    Parameters
    ----------
    pairs : number of couples that the page showed.

    Raises
    ------
    HousingError
        If there are too few couples, or another number than ``pairs`` by now.
    """
    found = couples_of(placement, questionnaire)
    if not found.are_enough:
        raise HousingError(
            ngettext(
                "%(count)s couple would live together again. A model needs at least "
                "%(fewest_pairs)s. Nothing was made.",
                "%(count)s couples would live together again. A model needs at least "
                "%(fewest_pairs)s. Nothing was made.",
                len(found.pairs),
            )
            % {"count": f"{len(found.pairs):,}", "fewest_pairs": FEWEST_PAIRS}
        )
    if len(found.pairs) != pairs:
        raise HousingError(
            ngettext(
                "%(count)s couple would live together again by now. Nothing was made; look "
                "at the numbers and press again.",
                "%(count)s couples would live together again by now. Nothing was made; look "
                "at the numbers and press again.",
                len(found.pairs),
            )
            % {"count": f"{len(found.pairs):,}"}
        )
    numbers = sorted(number for pair in found.pairs for number in pair)
    students = list(placement.cohort.students.filter(number__in=numbers))
    position = {student.number: k for k, student in enumerate(students)}
    made = cohort_of_some(
        user=user,
        cohort=placement.cohort,
        name=(_("%(cohort)s, together again") % {"cohort": placement.cohort.name[:90]})[:120],
        students=students,
    )
    cohort_set_pairs(
        user=user,
        cohort=made,
        pairs=[(position[a], position[b]) for a, b in found.pairs],
        origin=PairsOrigin.IMPORTED,
        note=(
            _("Both would live together again, by %(questionnaire)s")
            % {"questionnaire": questionnaire.title}
        )[:300],
    )
    audit(
        user,
        "made pairs of a follow-up",
        placement,
        questionnaire=questionnaire.title,
        cohort=made.name,
        pairs=len(found.pairs),
    )
    return made
