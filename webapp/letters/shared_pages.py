"""Additions of letters to the rail, and to the questions before a withdrawal or purge."""

from collections.abc import Iterable

from webapp.accounts.models import Role
from webapp.cohorts.models import Cohort
from webapp.common import hooks
from webapp.common.formats import counted
from webapp.housing.models import Placement
from webapp.housing.selectors.publication import register_withdrawal_notes
from webapp.letters.models import Letter, LetterTemplate


def register() -> None:
    """Register the line of the rail, for staff only since letters hold names."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            "Letters",
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
        yield hooks.CohortContent(f"{counted(letters, 'letter')} to these students")


def withdrawal_notes(placement: Placement) -> Iterable[str]:
    """Return how many letters reported the rooms of a placement, and how many still wait."""
    sent = placement.letters.filter(state=Letter.SENT).count()
    waiting = placement.letters.filter(state__in=(Letter.WAITING, Letter.SENDING)).count()
    if sent:
        yield f"{counted(sent, 'letter')} that told of these rooms went out already."
    if waiting:
        yield f"{counted(waiting, 'letter')} that wait to go out are not sent."
