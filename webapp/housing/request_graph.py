"""Requests of one cohort by kind: mutual, one-sided, unknown, of oneself, and groups."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import lazy_loader
from django.db.models import QuerySet

from webapp.housing.models import RoommateRequest

nx = lazy_loader.load("networkx")  # slow to load, and most pages draw no requests
Pair = tuple[int, int]


@dataclass
class RequestPairs:
    """Roommate requests within a cohort, by the students' numbers on screen.

    ``mutual`` and ``one_sided`` hold pairs, asker first in the latter.
    """

    mutual: list[Pair] = field(default_factory=list)
    one_sided: list[Pair] = field(default_factory=list)

    @classmethod
    def of(cls, asked: Iterable[Pair]) -> Self:
        """Sort requests (asker, target) by kind; requests for oneself are ignored."""
        pairs = {(a, b) for a, b in asked if a != b}
        return cls(
            mutual=sorted((a, b) for a, b in pairs if a < b and (b, a) in pairs),
            one_sided=sorted((a, b) for a, b in pairs if (b, a) not in pairs),
        )

    @cached_property
    def groups(self) -> list[list[int]]:
        """The sets of three or more students whom mutual requests connect."""
        components = (sorted(part) for part in nx.connected_components(nx.Graph(self.mutual)))
        return sorted(part for part in components if len(part) > 2)

    @cached_property
    def circles(self) -> list[list[Pair]]:
        """The one-sided requests that form a circle of three or more students, asker first."""
        return _circles(self.one_sided)

    def too_large(self, beds: int) -> list[list[int]]:
        """Return the groups that do not fit a room with the given number of beds."""
        return [group for group in self.groups if len(group) > beds]

    def edges_within(self, group: Sequence[int]) -> list[Pair]:
        """Return the mutual requests within one group."""
        members = set(group)
        return [pair for pair in self.mutual if members.issuperset(pair)]


@dataclass
class RequestGraph(RequestPairs):
    """All requests of a cohort by kind, including those that do not count yet.

    ``unknown`` requests name no certain student; ``themselves`` are requests for oneself.
    """

    unknown: list[RoommateRequest] = field(default_factory=list)
    themselves: list[RoommateRequest] = field(default_factory=list)
    n_askers: int = 0
    n_ignored: int = 0


def request_pairs(requests: QuerySet[RoommateRequest]) -> RequestPairs:
    """Return the requests that count, without loading other columns of their rows."""
    counting = requests.filter(is_ignored=False, target__isnull=False).order_by()
    return RequestPairs.of(counting.values_list("student__number", "target__number"))


def read_requests(requests: Sequence[RoommateRequest]) -> RequestGraph:
    """Sort the requests of a cohort by kind; ignored requests do not count."""
    counting = [request for request in requests if not request.is_ignored]
    known = [(r.student.number, r.target.number) for r in counting if r.target is not None]
    found = RequestGraph.of(known)
    found.unknown = [request for request in counting if request.target_id is None]
    found.themselves = [r for r in counting if r.target_id == r.student_id]
    found.n_askers = len({request.student_id for request in requests})
    found.n_ignored = len(requests) - len(counting)
    return found


def _circles(one_sided: Sequence[Pair]) -> list[list[Pair]]:
    """Return the one-sided requests within each set of students who can reach each other."""
    parts = nx.strongly_connected_components(nx.DiGraph(list(one_sided)))
    rings = sorted(sorted(part) for part in parts if len(part) > 2)
    return [[pair for pair in one_sided if set(pair) <= set(ring)] for ring in rings]


def split_group(group: Sequence[int], mutual: Sequence[Pair], beds: int) -> list[list[int]]:
    """Split a group into parts that fit rooms of ``beds`` beds, cutting few requests.

    Parts are about equal in size. Students are added one by one to the part they share most
    requests with, densest first: a proposal for staff to look at, not an optimum.
    """
    graph = nx.Graph()
    graph.add_nodes_from(group)
    graph.add_edges_from(mutual)
    parts: list[list[int]] = []
    left = set(group)
    while left:
        size = -(-len(left) // -(-len(left) // beds))
        start = max(left, key=lambda k: (len(left & set(graph[k])), -k))
        part = [start]
        left.remove(start)
        while left and len(part) < size:
            near = max(left, key=lambda k: (len(set(part) & set(graph[k])), -k))
            if not set(part) & set(graph[near]):
                break
            part.append(near)
            left.remove(near)
        parts.append(sorted(part))
    return parts
