"""Needs of single students, in addition to those that a file names."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from engine.tabular.needs import parse_needs
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.cohorts import halves_within

NEEDS_COLUMN = "Needs"  # rule column of a cohort that a file of needs fills


@transaction.atomic
def need_add(*, user: User, cohort: Cohort, number: int, need: str) -> bool:
    """Add a need to one student of a cohort and of its halves; return whether it is new.

    The need becomes part of the rule column :data:`NEEDS_COLUMN`, which placements count if their
    rules name it.
    """
    is_new = False
    for place in (cohort, *halves_within(cohort)):
        locked = Cohort.objects.select_for_update().get(pk=place.pk)
        student = locked.students.filter(number=number).only("cohort", "attributes").first()
        if student is None:
            continue
        needs = parse_needs(NEEDS_COLUMN, student.attributes.get(NEEDS_COLUMN, ""))
        if need.casefold() in {known.casefold() for known in needs}:
            continue
        student.attributes = {**student.attributes, NEEDS_COLUMN: ", ".join([*needs, need])}
        student.save(update_fields=["attributes"])
        needs_column_ensure(locked)
        is_new = True
    if is_new:
        audit(user, "added a need", cohort, student=f"S-{number}")
    return is_new


def needs_column_ensure(cohort: Cohort) -> None:
    """Add the column of needs to a cohort's rule columns, and count the change."""
    Cohort.objects.filter(pk=cohort.pk).update(
        constraints=list(dict.fromkeys([*cohort.constraints, NEEDS_COLUMN])),
        needs=list(dict.fromkeys([*cohort.needs, NEEDS_COLUMN])),
        revision=F("revision") + 1,
        updated_at=timezone.now(),
    )
