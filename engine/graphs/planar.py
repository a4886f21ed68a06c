"""Plane drawings of graphs, their faces, and the graph whose perfect matchings are their cuts.

Darts: edge e has the darts 2 e (from its first end to its second) and 2 e + 1 (back).
"""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import CertificateError, InvalidProblemError
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.planar import count_cycles, walk_cycles


@dataclass(frozen=True, slots=True, eq=False)
class MatchingGraph:
    """A plane graph whose perfect matchings are the cuts of a connected plane graph, one to one.

    Each face is a clique with a node for each of its sides (a corner for each two that follow each
    other); faces are cut by chords until they have few sides. The two nodes of an edge's sides are
    joined: that edge is in the matching where the ends of the cut's edge agree.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (n_edges, 2): first one a edge of the graph, one a chord, then cliques.
    n_crossing : number of edges and chords.
    rotation : for each node its darts in counterclockwise order.

    References
    ----------
    Fisher 1966; Thomas and Middleton 2007; Schraudolph and Kamenetsky 2008.
    """

    n_nodes: int
    edges: IntArray
    n_crossing: int
    rotation: tuple[tuple[int, ...], ...]


def faces_of(graph: PairwiseGraph) -> list[list[int]]:
    """Return the faces of a plane drawing of a connected graph as cycles of darts.

    Each dart is in one face.

    Raises
    ------
    InvalidProblemError
        If the graph cannot be drawn in the plane without crossings.

    Notes
    -----
    Nodes numbered row by row on a square lattice are drawn as such, in a second for a million
    edges; other graphs take the planarity test, in Python some 80 seconds for a million.

    References
    ----------
    Boyer and Myrvold 2004 and Brandes 2009 (the planarity test, NetworkX's).
    """
    following = _turn_on_lattice(graph)
    if following is None or count_cycles(following) != graph.n_edges - graph.n_nodes + 2:
        following = _turn_by_planarity(graph)
    face, ends = walk_cycles(following)
    darts, bounds = face.tolist(), [0, *ends.tolist()]
    return [darts[low:high] for low, high in pairwise(bounds)]


def _turn_on_lattice(graph: PairwiseGraph) -> IntArray | None:
    """Return for each dart the next in its face, if all edges go to the next node or row."""
    steps = np.unique(graph.edges[:, 1] - graph.edges[:, 0])
    width = int(steps[-1])
    if steps[0] < 1 or len(steps) > 2 or (len(steps) == 2 and steps[0] != 1):
        return None
    heads = graph.edges.ravel()  # dart d leaves this node
    horizontal = (graph.edges[:, 1] - graph.edges[:, 0] == 1) & (width > 1)
    sides = np.where(np.repeat(horizontal, 2), 0, 1) + 2 * (np.arange(len(heads)) % 2)
    at = np.full((graph.n_nodes, 4), -1, dtype=np.int64)  # right, down, left, up
    at[heads, sides] = np.arange(len(heads))
    back = np.arange(len(heads)) ^ 1
    following = np.full(len(heads), -1, dtype=np.int64)
    for turn in (4, 3, 2, 1):  # the nearest side wins: written last; four sides on is the same
        candidate = at[heads[back], (sides[back] + turn) % 4]
        following = np.where(candidate >= 0, candidate, following)
    return np.asarray(following, dtype=np.int64)


def _turn_by_planarity(graph: PairwiseGraph) -> IntArray:
    """Return for each dart the next in its face, by a planarity test."""
    import networkx as nx  # half a second to load, and only planar models need it

    drawing = nx.Graph()
    drawing.add_edges_from(graph.edges.tolist())
    is_planar, embedding = nx.check_planarity(drawing)
    if not is_planar:
        raise InvalidProblemError("This graph cannot be drawn in the plane without crossings.")
    number: dict[tuple[int, int], int] = {}
    for e, (i, j) in enumerate(graph.edges.tolist()):
        number[i, j], number[j, i] = 2 * e, 2 * e + 1
    following = np.empty(2 * graph.n_edges, dtype=np.int64)
    for (i, j), dart in number.items():
        following[dart] = number[j, embedding[j][i]["ccw"]]
    return following


def cut_faces(faces: list[list[int]], n_edges: int) -> tuple[list[list[int]], int]:
    """Cut faces by chords until none has more than three sides.

    Return the faces and the number of edges with chords, which are numbered after the edges. A
    chord may join two nodes that are joined already, or one to itself.
    """
    cut = []
    for face in faces:
        rest = list(face)
        while len(rest) > 3:
            chord, n_edges = 2 * n_edges, n_edges + 1
            cut.append([*rest[:2], chord])
            rest = [chord + 1, *rest[2:]]
        cut.append(rest)
    return cut, n_edges


def matching_graph(faces: list[list[int]], n_crossing: int) -> MatchingGraph:
    """Return the graph of cliques for faces of at most three sides."""
    node_of = np.full(2 * n_crossing, -1, dtype=np.int64)
    node = 0
    cliques: list[tuple[int, int]] = []
    around: list[list[int]] = []  # darts of each node
    for face in faces:
        first, sides = node, len(face)
        for k, dart in enumerate(face):
            node_of[dart] = first + k
            around.append([])
        node += sides
        for k in range(sides):
            for j in range(k):
                cliques.append((first + j, first + k))
        _turn_clique(first, sides, 2 * (n_crossing + len(cliques)), around)
    crossing = node_of.reshape(n_crossing, 2)
    edges = np.concatenate([crossing, np.array(cliques, dtype=np.int64).reshape(-1, 2)])
    for dart in range(2 * n_crossing):
        around[int(node_of[dart])].insert(0, dart)
    return MatchingGraph(node, edges, n_crossing, tuple(map(tuple, around)))


def _turn_clique(first: int, sides: int, end: int, around: list[list[int]]) -> None:
    """Append the darts of a clique of at most three, the last ones before ``end``, in order."""
    if sides == 2:  # one edge, (0, 1)
        around[first].append(end - 2)
        around[first + 1].append(end - 1)
    if sides == 3:  # (0, 1), (0, 2), (1, 2); counterclockwise: out, to the next, to the one before
        one, two, three = end - 6, end - 4, end - 2
        around[first] += [one, two]
        around[first + 1] += [three, one + 1]
        around[first + 2] += [two + 1, three + 1]


def orient(graph: MatchingGraph) -> IntArray:
    """Return 1 for each edge directed as it stands, -1 for the others: Kasteleyn's orientation.

    Around every face but one the number of edges that run clockwise is odd, so that all perfect
    matchings have one sign in the Pfaffian.

    Raises
    ------
    CertificateError
        If the rotation is not that of a plane drawing (Euler's formula).

    References
    ----------
    Kasteleyn 1967.
    """
    n_edges = len(graph.edges)
    previous = np.zeros(2 * n_edges, dtype=np.int64)  # the dart before, counterclockwise
    for darts in graph.rotation:
        for k, dart in enumerate(darts):
            previous[dart] = darts[k - 1]
    face = np.full(2 * n_edges, -1, dtype=np.int64)
    walks: list[list[int]] = []
    for start in range(2 * n_edges):
        if face[start] >= 0:
            continue
        walk, dart = [], start
        while face[dart] < 0:
            face[dart] = len(walks)
            walk.append(dart)
            dart = int(previous[dart ^ 1])
        walks.append(walk)
    if graph.n_nodes - n_edges + len(walks) != 2:
        raise CertificateError("The rotation of the matching graph is not that of a plane drawing.")
    return _direct_edges(graph, face, walks)


def _direct_edges(graph: MatchingGraph, face: IntArray, walks: list[list[int]]) -> IntArray:
    """Direct a spanning tree at will, and the other edges, a tree of faces, from its leaves."""
    is_tree = _spanning_tree(graph)
    sign = np.where(is_tree, 1, 0)
    open_edges = [{d >> 1 for d in walk if not is_tree[d >> 1]} for walk in walks]
    ready = deque(f for f, left in enumerate(open_edges) if len(left) == 1)
    while ready:
        f = ready.popleft()
        if not open_edges[f]:
            continue  # the last face: its parity follows from the others
        edge = open_edges[f].pop()
        clockwise = 0
        for dart in walks[f]:
            if dart >> 1 != edge:
                clockwise += (sign[dart >> 1] == 1) == bool(dart & 1)
        own = 2 * edge if face[2 * edge] == f else 2 * edge + 1
        wants_clockwise = clockwise % 2 == 0
        sign[edge] = 1 if wants_clockwise == bool(own & 1) else -1
        other = int(face[own ^ 1])
        open_edges[other].discard(edge)
        if len(open_edges[other]) == 1:
            ready.append(other)
    return np.asarray(sign, dtype=np.int64)


def _spanning_tree(graph: MatchingGraph) -> np.ndarray:
    """Mark the edges of a spanning tree."""
    is_tree = np.zeros(len(graph.edges), dtype=bool)
    seen = np.zeros(graph.n_nodes, dtype=bool)
    seen[0] = True
    waiting = deque([0])
    while waiting:
        for dart in graph.rotation[waiting.popleft()]:
            other = int(graph.edges[dart >> 1, 1 - (dart & 1)])
            if not seen[other]:
                seen[other] = True
                is_tree[dart >> 1] = True
                waiting.append(other)
    return is_tree
