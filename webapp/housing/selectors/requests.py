"""The page of requests: the causes that stop a placement, in order, with one fix each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Max
from django.utils.translation import ngettext

from webapp.cohorts.models import Cohort
from webapp.cohorts.student_finder import Candidates, StudentFinder
from webapp.common.listing import page_at
from webapp.housing.models import Room, RoommateRequest
from webapp.housing.request_graph import Pair, RequestGraph, read_requests, split_group
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.request_counts import counts_context, reference_placement
from webapp.housing.selectors.togetherness import (
    AskedPair,
    ImpossibleWish,
    asked_pairs,
    cheapest_first,
    impossible_wishes,
    split_by_honoured,
)
from webapp.housing.services.checks import forbidden_numbers
from webapp.housing.services.needs import NEEDS_COLUMN

ANSWERS = ("answers", "attributes")  # columns of a student that nothing here reads
# Causes that the address may select, and their names on the page.
CAUSES = {
    "groups": "splits",
    "impossible": "impossible",
    "themselves": "themselves",
    "circles": "circles",
    "unknown": "unknown",
    "one-sided": "one_sided",
    "mutual": "mutual",
    "left-out": "left_out",
}
ANSWERED = ("one_sided", "mutual")  # causes for which the placement answers each request
TO_DECIDE = ("splits", "impossible", "circles", "themselves", "unknown")
SHOWN = 5  # rows of a cause before "Show all"
A_PAGE = 160  # requests of one kind that a page shows whole: 151 ms at 2,500 students
DEFAULT_BEDS = 4  # beds of the largest room if there is no building list yet


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A request that names no certain student, with the possible targets and reasons."""

    request: RoommateRequest
    near: Candidates

    @property
    def question(self) -> Any:
        """The mail that asked the student about the target, or None."""
        return getattr(self.request, "question", None)


@dataclass(frozen=True, slots=True)
class GroupSplit:
    """A group too large for any room, with the proposed parts and the requests cut by them."""

    parts: tuple[tuple[int, ...], ...]
    cut: tuple[Pair, ...]
    kept: tuple[Pair, ...]

    @property
    def members(self) -> list[int]:
        """The students of all parts."""
        return sorted(number for part in self.parts for number in part)

    @property
    def words(self) -> str:
        """Sizes of the parts: 3 + 2."""
        return " + ".join(str(len(part)) for part in self.parts)


def graph_of(cohort: Cohort) -> RequestGraph:
    """Return the requests of a cohort by kind."""
    related = ("student", "target", "question")
    requests = RoommateRequest.objects.filter(cohort=cohort).select_related(*related)
    unread = (f"{who}__{field}" for who in ("student", "target") for field in ANSWERS)
    return read_requests(list(requests.defer(*unread)))


def largest_room(cohort: Cohort) -> int:
    """Return the beds of the organisation's largest open room, or four."""
    rooms = Room.objects.filter(buildings__organisation=cohort.organisation_id, state="open")
    return rooms.aggregate(most=Max(F("capacity") + F("extra_beds")))["most"] or DEFAULT_BEDS


def splits_of(cohort: Cohort, graph: RequestGraph | None = None) -> list[GroupSplit]:
    """Return a split of each group of mutual requests that fits no room."""
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


def unknown_names(cohort: Cohort, graph: RequestGraph | None = None) -> list[UnknownName]:
    """Return the requests that name no certain student, those with one possible target first."""
    graph = graph or graph_of(cohort)
    if not graph.unknown:
        return []
    finder = StudentFinder(cohort)
    found = [
        UnknownName(request, finder.close(request.written).but(request.student_id))
        for request in graph.unknown
    ]
    return sorted(found, key=lambda entry: (not entry.near.is_sure, not entry.near.students))


def unsure_requests(cohort: Cohort) -> set[int]:
    """Return the keys of the requests that need a question: several possible targets, or none."""
    return {one.request.pk for one in unknown_names(cohort) if not one.near.is_sure}


def _circles(graph: RequestGraph) -> list[dict[str, Any]]:
    """Return the students of each circle of one-sided requests, and the requests in it."""
    return [
        {"members": sorted({n for pair in circle for n in pair}), "pairs": circle}
        for circle in graph.circles
    ]


def _count_needs(cohort: Cohort) -> int:
    """Return how many students have a need from a file."""
    if NEEDS_COLUMN not in cohort.constraints:
        return 0
    rows = cohort.students.values_list("attributes", flat=True)
    return sum(bool(attributes.get(NEEDS_COLUMN)) for attributes in rows)


def impossible_of(
    cohort: Cohort, graph: RequestGraph | None = None, read: PlacementRooms | None = None
) -> list[ImpossibleWish]:
    """Return the mutual requests that no room allows under the current placement's rules.

    ``read`` is that placement if a page has read its rooms already.
    """
    placement = read.placement if read else reference_placement(cohort)
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
        read.rooms if read else placement.buildings.rooms.all(),
        [[known[number] for number in group] for group in groups],
        forbidden_numbers(placement),
    )
    wishes = []
    for members, reason in found:
        numbers = tuple(student.number for student in members)
        wishes.append(ImpossibleWish(numbers, reason, tuple(graph.edges_within(numbers))))
    return wishes


def musts_apart(
    rooms: PlacementRooms, impossible: list[ImpossibleWish], splits: list[GroupSplit]
) -> list[Pair]:
    """Return the requests that are a must and that a placement could honour but does not.

    Requests that no room allows, and groups too large for a room, have their own cause.
    """
    sets = [frozenset(wish.members) for wish in impossible]
    sets += [frozenset(number for part in split.parts for number in part) for split in splits]
    return [pair for pair in rooms.musts_apart() if not any(s.issuperset(pair) for s in sets)]


def musts_apart_sentence(cohort: Cohort) -> str:
    """Return a sentence on the musts that the current placement does not honour, or ""."""
    placement = reference_placement(cohort)
    if placement is None or not placement.is_computed:
        return ""
    rooms, graph = PlacementRooms(placement), graph_of(cohort)
    apart = musts_apart(rooms, impossible_of(cohort, graph, rooms), splits_of(cohort, graph))
    if not apart:
        return ""
    return " " + ngettext(
        "%(count)s request that is a must is not honoured in %(placement)s: the top of this page "
        "has the way.",
        "%(count)s requests that are a must are not honoured in %(placement)s: the top of this "
        "page has the way.",
        len(apart),
    ) % {"count": f"{len(apart):,}", "placement": placement.name}


def _answered(
    rooms: PlacementRooms | None, pairs: list[Pair], page: str | None, *, by_cost: bool
) -> dict[str, Any]:
    """Return requests with the placement's answers, those not honoured first.

    ``page`` is the page in the address if all are requested, None for only the first few.
    ``by_cost``: the cheapest to honour first, which computes the best move of each.
    """
    apart, together = split_by_honoured(rooms, pairs) if rooms else (pairs, [])
    by_cost = by_cost and rooms is not None and page is not None
    listed = [*apart, *together]
    rows: Sequence[Pair | AskedPair] = listed
    if by_cost and rooms is not None:
        rows = cheapest_first(asked_pairs(rooms, listed))
    found = page_at(rows, page or 1, SHOWN if page is None else A_PAGE)
    shown = list(found.object_list)
    answers = shown if by_cost else asked_pairs(rooms, shown) if rooms else []
    return {
        "rows": [] if rooms else shown,
        "answers": answers,
        "n_apart": len(apart) if rooms else None,
        "page_of": None if page is None or found.paginator.num_pages < 2 else found,
        "is_whole": page is not None,
        "by_cost": by_cost,
    }


def _left_out(cohort: Cohort) -> list[tuple[Any, ...]]:
    """Return the left-out requests that name a student and can be counted again."""
    rows = RoommateRequest.objects.filter(cohort=cohort, is_ignored=True)
    pairs = rows.order_by("student__number", "pk").values_list(
        "pk", "student__number", "target__number", "written"
    )
    return list(pairs)


def _name_counts(unknown: list[UnknownName]) -> dict[str, int]:
    """Return the number of uncertain names for each possible resolution."""
    return {
        "n_close": sum(entry.near.is_sure for entry in unknown),
        "n_several": sum(bool(e.near.students) and not e.near.is_sure for e in unknown),
        "n_nobody": sum(not entry.near.students for entry in unknown),
        "n_to_ask": sum(not e.near.is_sure and e.question is None for e in unknown),
    }


def _rows_by_cause(
    cohort: Cohort, graph: RequestGraph, rooms: PlacementRooms | None
) -> dict[str, list[Any]]:
    """Return all open or left-out requests, by their cause on the page."""
    return {
        "splits": splits_of(cohort, graph),
        "impossible": impossible_of(cohort, graph, rooms),
        "themselves": graph.themselves,
        "circles": _circles(graph),
        "unknown": unknown_names(cohort, graph),
        "one_sided": graph.one_sided,
        "mutual": graph.mutual,
        "left_out": _left_out(cohort) if graph.n_ignored else [],
    }


def requests_context(cohort: Cohort, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of requests of a cohort."""
    graph = graph_of(cohort)
    reference = reference_placement(cohort)
    counts = counts_context(cohort, reference, graph) if reference else {}
    rooms = counts.get("reference_rooms")
    causes = _rows_by_cause(cohort, graph, rooms)
    apart = musts_apart(rooms, causes["impossible"], causes["splits"]) if rooms else []
    show = parameters.get("show", "") if parameters.get("show") in CAUSES else ""
    alone = CAUSES.get(show)
    sources = Counter(
        RoommateRequest.objects.filter(cohort=cohort).values_list("source", flat=True)
    )

    def part(name: str, rows: list[Any]) -> Any:
        if alone not in (None, name) or not rows:
            return []
        if name not in ANSWERED:
            return rows if alone else rows[:SHOWN]
        page = parameters.get("page", "") if alone else None
        return _answered(rooms, rows, page, by_cost=parameters.get("sort") == "cost")

    return (
        counts
        | {name: part(name, rows) for name, rows in causes.items()}
        | {f"n_{name}": len(rows) for name, rows in causes.items()}
        | _name_counts(causes["unknown"])
        | {
            "is_nothing": alone is not None and not causes[alone],
            "cohort": cohort,
            "show": show,
            "n_in_impossible": sum(len(wish.members) for wish in causes["impossible"]),
            "n_requests": sum(sources.values()),
            "n_askers": graph.n_askers,
            "n_ignored": graph.n_ignored,
            "n_to_decide": len(apart) + sum(len(causes[name]) for name in TO_DECIDE),
            "musts": _answered(rooms, apart, None, by_cost=False) if apart and not show else None,
            "n_musts": len(apart),
            "n_needs": _count_needs(cohort),
            "largest": largest_room(cohort),
            "n_in_splits": sum(len(p) for s in causes["splits"] for p in s.parts),
            "sources": sources.most_common(),
            "n_choices": cohort.preferences.count(),
        }
    )
