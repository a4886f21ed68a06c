"""Additions of letters to the rail, and to the questions before a withdrawal or purge."""

from collections.abc import Iterable

from django.utils.translation import ngettext

from webapp.accounts.models import Role
from webapp.cohorts.models import Cohort
from webapp.common import hooks
from webapp.housing.models import Placement
from webapp.housing.selectors.publication import register_withdrawal_notes
from webapp.letters.models import Letter, LetterTemplate
from webapp.translation.lazy import gettext_lazy


def register() -> None:
    """Register the line of the rail, for staff only since letters hold names."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            gettext_lazy("Letters"),
            "mail",
            "letters:templates",
            order=45,
            counted=LetterTemplate,
            role=Role.STAFF,
        )
    )
    hooks.register_cohort_contents(cohort_contents)
    register_withdrawal_notes(withdrawal_notes)


def cohort_contents(cohort: Cohort) -> Iterable[hooks.CohortContent]:
    """Return the letters that are removed with the students of a cohort."""
    letters = Letter.objects.filter(student__cohort=cohort).count()
    if letters:
        yield hooks.CohortContent(
            ngettext(
                "%(count)s letter to these students", "%(count)s letters to these students", letters
            )
            % {"count": f"{letters:,}"}
        )


def withdrawal_notes(placement: Placement) -> Iterable[str]:
    """Return how many letters reported the rooms of a placement, and how many still wait."""
    sent = placement.letters.filter(state=Letter.SENT).count()
    waiting = placement.letters.filter(state__in=(Letter.WAITING, Letter.SENDING)).count()
    if sent:
        yield ngettext(
            "%(count)s letter about these rooms went out already.",
            "%(count)s letters about these rooms went out already.",
            sent,
        ) % {"count": f"{sent:,}"}
    if waiting:
        yield ngettext(
            "%(count)s letter that wait to go out are not sent.",
            "%(count)s letters that wait to go out are not sent.",
            waiting,
        ) % {"count": f"{waiting:,}"}
