"""The page of requests: causes in the order of what stops a placement, one fix each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Max

from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import Room, RoommateRequest
from webapp.housing.request_graph import Pair, RequestGraph, read_requests, split_group
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.request_counts import counts_context, reference_placement
from webapp.housing.selectors.togetherness import (
    ImpossibleWish,
    asked_pairs,
    impossible_wishes,
    split_by_honoured,
)
from webapp.housing.services.checks import forbidden_numbers
from webapp.housing.services.requests import NEEDS_COLUMN
from webapp.housing.student_finder import StudentFinder

ANSWERS = ("answers", "attributes")  # columns of a student that nothing here reads
SHOWN = 5  # rows of a cause before "Show all"
A_PAGE = 40  # requests of one kind of which ways and costs are worked out at once
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
    kept: tuple[Pair, ...]

    @property
    def words(self) -> str:
        """Sizes of the parts: 3 + 2."""
        return " + ".join(str(len(part)) for part in self.parts)


def graph_of(cohort: Cohort) -> RequestGraph:
    """Return what the requests of a cohort amount to."""
    requests = RoommateRequest.objects.filter(cohort=cohort).select_related("student", "target")
    unread = (f"{who}__{field}" for who in ("student", "target") for field in ANSWERS)
    return read_requests(list(requests.defer(*unread)))


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
        kept = tuple(pair for pair in edges if pair not in cut)
        found.append(GroupSplit(tuple(map(tuple, parts)), cut, kept))
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


def _circles(graph: RequestGraph) -> list[dict[str, Any]]:
    """Return who stands in each circle of one-sided requests, and the requests around it."""
    return [
        {"members": sorted({n for pair in circle for n in pair}), "pairs": circle}
        for circle in graph.circles
    ]


def _count_needs(cohort: Cohort) -> int:
    """Return how many students a file of needs named."""
    if NEEDS_COLUMN not in cohort.constraints:
        return 0
    rows = cohort.students.values_list("attributes", flat=True)
    return sum(bool(attributes.get(NEEDS_COLUMN)) for attributes in rows)


def impossible_of(cohort: Cohort, graph: RequestGraph | None = None) -> list[ImpossibleWish]:
    """Return the mutual wishes that no room allows under the rules of the placement of now."""
    placement = reference_placement(cohort)
    if placement is None:
        return []
    graph = graph or graph_of(cohort)
    rules = PlacementRules.from_json(placement.rules)
    most = largest_room(cohort)
    groups = [group for group in graph.groups if len(group) <= most]
    in_groups = {number for group in graph.groups for number in group}
    groups += [list(pair) for pair in graph.mutual if pair[0] not in in_groups]
    students = cohort.students.only("number", "attributes", "cohort")
    known = {s.number: s for s in students.filter(requests_made__isnull=False).distinct()}
    found = impossible_wishes(
        rules,
        placement.buildings,
        [[known[number] for number in group] for group in groups],
        forbidden_numbers(placement),
    )
    wishes = []
    for members, reason in found:
        numbers = tuple(student.number for student in members)
        wishes.append(ImpossibleWish(numbers, reason, tuple(graph.edges_within(numbers))))
    return wishes


def _answered(rooms: PlacementRooms | None, pairs: list[Pair], page: str | None) -> dict[str, Any]:
    """Return requests as the placement answers them, those that it does not honour first.

    ``page`` is that of the address when all are asked for, None when only the first few are.
    """
    apart, together = split_by_honoured(rooms, pairs) if rooms else (pairs, [])
    paginator = Paginator([*apart, *together], SHOWN if page is None else A_PAGE)
    found = paginator.get_page(page or 1)
    shown = list(found.object_list)
    return {
        "rows": [] if rooms else shown,
        "answers": asked_pairs(rooms, shown) if rooms else [],
        "n_apart": len(apart) if rooms else None,
        "page_of": None if page is None or paginator.num_pages < 2 else found,
    }


def requests_context(cohort: Cohort, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of requests of a cohort."""
    graph = graph_of(cohort)
    reference = reference_placement(cohort)
    counts = counts_context(cohort, reference, graph) if reference else {}
    impossible = impossible_of(cohort, graph)
    unknown = _unknown_names(cohort, graph)
    splits = splits_of(cohort, graph)
    shown = parameters.get("show", "")
    sources = Counter(
        RoommateRequest.objects.filter(cohort=cohort).values_list("source", flat=True)
    )

    def page_of(name: str) -> str | None:
        return parameters.get("page", "") if shown == name else None

    def part(name: str, rows: list[Any]) -> list[Any]:
        return rows if shown == name else rows[:SHOWN]

    rooms = counts.get("reference_rooms")
    return counts | {
        "cohort": cohort,
        "show": shown,
        "impossible": part("impossible", impossible),
        "n_impossible": len(impossible),
        "n_in_impossible": sum(len(wish.members) for wish in impossible),
        "n_requests": sum(sources.values()),
        "n_askers": graph.n_askers,
        "n_ignored": graph.n_ignored,
        "n_to_decide": sum(
            map(len, (unknown, splits, impossible, graph.circles, graph.themselves))
        ),
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
        "one_sided": _answered(rooms, graph.one_sided, page_of("one-sided")),
        "n_one_sided": len(graph.one_sided),
        "mutual": _answered(rooms, graph.mutual, page_of("mutual")),
        "n_mutual": len(graph.mutual),
        "sources": sources.most_common(),
        "n_choices": cohort.preferences.count(),
    }
