"""Wishes of a cohort's students: requests, ranked choices and answers that name needs."""

from functools import cached_property
from uuid import UUID

from webapp.cohorts.models import Student
from webapp.housing.models import Preference, RoommateRequest
from webapp.housing.request_graph import RequestPairs, request_pairs


class CohortWishes:
    """Wishes of a cohort, each read on first use, once for all placements of a page."""

    def __init__(self, cohort_id: UUID) -> None:
        self._cohort_id = cohort_id

    @cached_property
    def requests(self) -> RequestPairs:
        """The roommate requests of the cohort."""
        return request_pairs(RoommateRequest.objects.filter(cohort=self._cohort_id))

    @cached_property
    def choices(self) -> list[tuple[int, int, str]]:
        """Number, rank (1 is the first choice) and requested hall or kind of room."""
        rows = Preference.objects.filter(cohort=self._cohort_id)
        return list(rows.values_list("student__number", "rank", "wanted"))

    @cached_property
    def attributes(self) -> dict[int, dict[str, str]]:
        """The answers of every student that rules may name, by number."""
        rows = Student.objects.filter(cohort=self._cohort_id)
        return dict(rows.values_list("number", "attributes"))
