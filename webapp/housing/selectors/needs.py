"""Needs that a placement does not count, so that no student loses a room that they must have."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules, needs_in
from webapp.housing.services.placements import rules_tried
from webapp.housing.services.versions import waiting_version


@dataclass(frozen=True, slots=True)
class UncountedNeeds:
    """Columns of needs that no rule names, and the number of students with an entry there."""

    columns: tuple[str, ...]
    students: int


def uncounted_needs(placement: Placement) -> UncountedNeeds | None:
    """Return the needs that the rooms of a placement do not count; None if all count.

    During a run, or while a version waits for a decision, the rules of that run or version apply.
    """
    rules = PlacementRules.from_json(placement.rules)
    if not _uncounted(placement.cohort, rules):
        return None
    if placement.is_running or waiting_version(placement) is not None:
        rules = rules_tried(placement)
    columns = _uncounted(placement.cohort, rules)
    students = students_with_needs(placement.cohort, columns)
    return UncountedNeeds(columns, students) if students else None


def students_with_needs(cohort: Cohort, columns: Sequence[str]) -> int:
    """Return how many students have a need in these columns."""
    attributes = cohort.students.values_list("attributes", flat=True) if columns else ()
    return sum(bool(needs_in(found, columns)) for found in attributes)


def _uncounted(cohort: Cohort, rules: PlacementRules) -> tuple[str, ...]:
    return tuple(column for column in cohort.needs if column not in rules.needs)
