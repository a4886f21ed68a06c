"""The page of requests: causes in the order of what stops a placement, one fix each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import Room, RoommateRequest
from webapp.housing.request_graph import Pair, RequestGraph, read_requests, split_group
from webapp.housing.services.requests import NEEDS_COLUMN
from webapp.housing.student_finder import StudentFinder

SHOWN = 5  # rows of a cause before "Show all"
DEFAULT_BEDS = 4  # the largest room where no building list is there yet


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A request that names nobody for sure, with those it may mean."""

    request: RoommateRequest
    near: tuple[Student, ...]
    is_sure: bool


@dataclass(frozen=True, slots=True)
class GroupSplit:
    """A group too large for any room, the parts proposed and the requests that this cuts."""

    parts: tuple[tuple[int, ...], ...]
    cut: tuple[Pair, ...]
    kept: int

    @property
    def words(self) -> str:
        """Sizes of the parts: 3 + 2."""
        return " + ".join(str(len(part)) for part in self.parts)


def graph_of(cohort: Cohort) -> RequestGraph:
    """Return what the requests of a cohort amount to."""
    requests = RoommateRequest.objects.filter(cohort=cohort).select_related("student", "target")
    return read_requests(list(requests))


def largest_room(cohort: Cohort) -> int:
    """Return the beds of the largest open room of the organisation, or four."""
    rooms = Room.objects.filter(buildings__organisation=cohort.organisation_id, state="open")
    return rooms.aggregate(most=Max("capacity"))["most"] or DEFAULT_BEDS


def splits_of(cohort: Cohort, graph: RequestGraph | None = None) -> list[GroupSplit]:
    """Return a split for every group of mutual requests that fits no room."""
    graph = graph or graph_of(cohort)
    beds = largest_room(cohort)
    found = []
    for group in graph.too_large(beds):
        edges = graph.edges_within(group)
        parts = split_group(group, edges, beds)
        part_of = {number: k for k, part in enumerate(parts) for number in part}
        cut = tuple(pair for pair in edges if part_of[pair[0]] != part_of[pair[1]])
        found.append(GroupSplit(tuple(map(tuple, parts)), cut, len(edges) - len(cut)))
    return found


def _unknown_names(cohort: Cohort, graph: RequestGraph) -> list[UnknownName]:
    """Return the requests that name nobody for sure, those with one answer first."""
    if not graph.unknown:
        return []
    finder, found = StudentFinder(cohort), []
    for request in graph.unknown:
        near = finder.close(request.written).but(request.student_id)
        found.append(UnknownName(request, near.students, near.is_sure))
    return sorted(found, key=lambda entry: (not entry.is_sure, not entry.near))


def _circles(graph: RequestGraph) -> list[list[int]]:
    """Return who stands in each circle of one-sided requests."""
    return [sorted({number for pair in circle for number in pair}) for circle in graph.circles]


def _count_needs(cohort: Cohort) -> int:
    """Return how many students a file of needs named."""
    if NEEDS_COLUMN not in cohort.constraints:
        return 0
    rows = cohort.students.values_list("attributes", flat=True)
    return sum(bool(attributes.get(NEEDS_COLUMN)) for attributes in rows)


def requests_context(cohort: Cohort, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of requests of a cohort."""
    graph = graph_of(cohort)
    unknown = _unknown_names(cohort, graph)
    splits = splits_of(cohort, graph)
    shown = parameters.get("show", "")
    sources = Counter(
        RoommateRequest.objects.filter(cohort=cohort).values_list("source", flat=True)
    )

    def part(name: str, rows: list[Any]) -> list[Any]:
        return rows if shown == name else rows[:SHOWN]

    return {
        "cohort": cohort,
        "n_requests": sum(sources.values()),
        "n_askers": graph.n_askers,
        "n_ignored": graph.n_ignored,
        "n_to_decide": len(unknown) + len(splits) + len(graph.circles) + len(graph.themselves),
        "circles": part("circles", _circles(graph)),
        "n_circles": len(graph.circles),
        "themselves": part("themselves", graph.themselves),
        "n_themselves": len(graph.themselves),
        "n_needs": _count_needs(cohort),
        "largest": largest_room(cohort),
        "splits": part("groups", splits),
        "n_splits": len(splits),
        "n_in_splits": sum(len(p) for s in splits for p in s.parts),
        "unknown": part("unknown", unknown),
        "n_unknown": len(unknown),
        "n_close": sum(entry.is_sure for entry in unknown),
        "n_several": sum(bool(entry.near) and not entry.is_sure for entry in unknown),
        "n_nobody": sum(not entry.near for entry in unknown),
        "one_sided": part("one-sided", graph.one_sided),
        "n_one_sided": len(graph.one_sided),
        "mutual": part("mutual", graph.mutual),
        "n_mutual": len(graph.mutual),
        "sources": sources.most_common(),
        "n_choices": cohort.preferences.count(),
    }
