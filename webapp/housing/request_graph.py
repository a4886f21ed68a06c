"""Requests of one cohort told apart: mutual, one-sided, unknown, of oneself, and groups."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx

from webapp.housing.models import RoommateRequest

Pair = tuple[int, int]


@dataclass(slots=True)
class RequestGraph:
    """What the requests of a cohort amount to; students are named by their number on screen.

    ``mutual`` and ``one_sided`` hold pairs (asker first in the latter); ``groups`` the sets of
    three and more whom mutual requests tie together; ``circles`` the one-sided requests that lead
    around a circle of three and more, asker first; ``themselves`` those of oneself.
    """

    unknown: list[RoommateRequest] = field(default_factory=list)
    mutual: list[Pair] = field(default_factory=list)
    one_sided: list[Pair] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    circles: list[list[Pair]] = field(default_factory=list)
    themselves: list[RoommateRequest] = field(default_factory=list)
    n_askers: int = 0
    n_ignored: int = 0

    def too_large(self, beds: int) -> list[list[int]]:
        """Return the groups that no room of so many beds holds."""
        return [group for group in self.groups if len(group) > beds]

    def edges_within(self, group: Sequence[int]) -> list[Pair]:
        """Return the mutual requests inside one group."""
        members = set(group)
        return [pair for pair in self.mutual if members.issuperset(pair)]


def read_requests(requests: Sequence[RoommateRequest]) -> RequestGraph:
    """Tell the requests of a cohort apart; ignored ones count for nothing."""
    found = RequestGraph()
    asked: set[Pair] = set()
    for request in requests:
        if request.is_ignored:
            found.n_ignored += 1
        elif request.target is None:
            found.unknown.append(request)
        elif request.target.number == request.student.number:
            found.themselves.append(request)
        else:
            asked.add((request.student.number, request.target.number))
    found.n_askers = len({request.student_id for request in requests})
    found.mutual = sorted((a, b) for a, b in asked if a < b and (b, a) in asked)
    found.one_sided = sorted((a, b) for a, b in asked if (b, a) not in asked)
    found.circles = _circles(found.one_sided)
    graph = nx.Graph(found.mutual)
    components = (sorted(part) for part in nx.connected_components(graph))
    found.groups = sorted(part for part in components if len(part) > 2)
    return found


def _circles(one_sided: Sequence[Pair]) -> list[list[Pair]]:
    """Return the requests within each set of people who reach each other by asking around."""
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
