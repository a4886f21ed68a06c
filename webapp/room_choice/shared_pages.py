"""Additions of room choice to students' pages, to purges and to late arrivals."""

from collections.abc import Iterable, Mapping

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.cohorts.late_arrivals import register_contradictions
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.common import hooks
from webapp.residents.models import ResidentPage
from webapp.residents.page_parts import PagePart, register_page_part, register_page_reason
from webapp.room_choice.models import LIVE, ChoiceRound, ChoiceSlot
from webapp.room_choice.selectors.turns import turn_of


def register() -> None:
    """Register the part of the students' page, and what is removed with students."""
    register_page_part(page_part)
    register_page_reason(page_reason)
    hooks.register_cohort_contents(cohort_contents)
    register_contradictions(contradictions)


def page_part(page: ResidentPage) -> PagePart | None:
    """Return the line about room choice on a student's page, until the rooms are published."""
    turn = turn_of(page.student)
    if turn is None or turn.placement.is_published:
        return None
    return PagePart("room_choice/student/_home_part.html", {"turn": turn})


def page_reason() -> Q:
    """Return the filter of students in a round that is not closed."""
    slots = ChoiceSlot.objects.filter(round__state__in=LIVE)
    return Q(pk__in=slots.values("student"))


def cohort_contents(cohort: Cohort) -> Iterable[hooks.CohortContent]:
    """Return the rounds that are removed with a cohort."""
    count = ChoiceRound.objects.filter(placement__cohort=cohort).count()
    if count:
        words = ngettext(
            "%(count)s round of room choice",
            "%(count)s rounds of room choice",
            count,
        ) % {"count": f"{count:,}"}
        yield hooks.CohortContent(words)


def contradictions(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return the late arrivals who have a time slot."""
    slots = ChoiceSlot.objects.filter(student__cohort=cohort, student__number__in=late)
    numbers = slots.values_list("student__number", flat=True).distinct()
    return {
        number: _("S-%(number)s has a time slot of room choice since.") % {"number": number}
        for number in numbers
    }
