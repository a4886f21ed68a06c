"""Additions of personal pages to shared pages."""

from collections.abc import Iterable, Mapping

from django.utils.translation import gettext, ngettext

from webapp.cohorts.late_arrivals import register_contradictions
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.common import hooks
from webapp.residents.models import ChangeAsk


def register() -> None:
    """Register what is removed with a cohort, and why late arrivals cannot be removed."""
    hooks.register_cohort_contents(cohort_contents)
    register_contradictions(contradictions)


def cohort_contents(cohort: Cohort) -> Iterable[hooks.CohortContent]:
    """Return the changes that students asked for, which are removed with a cohort."""
    count = ChangeAsk.objects.filter(student__cohort=cohort).count()
    if count:
        words = ngettext(
            "%(count)s change that students asked for",
            "%(count)s changes that students asked for",
            count,
        ) % {"count": f"{count:,}"}
        yield hooks.CohortContent(words)


def contradictions(cohort: Cohort, late: Mapping[int, LateArrivals]) -> dict[int, str]:
    """Return the late arrivals who asked for a change."""
    asks = ChangeAsk.objects.filter(student__cohort=cohort, student__number__in=late)
    numbers = asks.values_list("student__number", flat=True).distinct()
    return {
        number: gettext("S-%(number)s asked for a change of room since.") % {"number": number}
        for number in numbers
    }
