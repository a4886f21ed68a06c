"""Plane drawings of graphs, their faces, and the graph whose perfect matchings are their cuts.

Darts: edge e has the darts 2 e (from its first end to its second) and 2 e + 1 (back).
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import CertificateError, InvalidProblemError
from engine.graphs.pairwise import PairwiseGraph


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
    rotation : for each node its darts in counterclockwise order, empty where cliques are not plane.

    References
    ----------
    Fisher 1966; Thomas and Middleton 2007; Schraudolph and Kamenetsky 2008.
    """

    n_nodes: int
    edges: IntArray
    n_crossing: int
    rotation: tuple[tuple[int, ...], ...]


def faces_of(graph: PairwiseGraph) -> list[list[int]]:
    """Return the faces of a plane drawing as cycles of darts, each dart in one face.

    Raises
    ------
    InvalidProblemError
        If the graph cannot be drawn in the plane without crossings.

    Notes
    -----
    Linear in the edges, in Python: about 30 seconds for a million.

    References
    ----------
    Boyer and Myrvold 2004 and Brandes 2009 (the planarity test, NetworkX's).
    """
    import networkx as nx  # half a second to load, and only planar models need it

    drawing = nx.Graph()
    drawing.add_edges_from(graph.edges.tolist())
    is_planar, embedding = nx.check_planarity(drawing)
    if not is_planar:
        raise InvalidProblemError("This graph cannot be drawn in the plane without crossings.")
    number: dict[tuple[int, int], int] = {}
    for e, (i, j) in enumerate(graph.edges.tolist()):
        number[i, j], number[j, i] = 2 * e, 2 * e + 1
    left, faces = dict.fromkeys(number), []
    while left:
        first = next(iter(left))
        face, dart = [], first
        while True:
            del left[dart]
            face.append(number[dart])
            dart = (dart[1], embedding[dart[1]][dart[0]]["ccw"])
            if dart == first:
                break
        faces.append(face)
    return faces


def cut_faces(faces: list[list[int]], n_edges: int, most: int) -> tuple[list[list[int]], int]:
    """Cut faces by chords until none has more than ``most`` (3 or 4) sides.

    Return the faces and the number of edges with chords, which are numbered after the edges. A
    chord may join two nodes that are joined already, or one to itself.
    """
    cut = []
    for face in faces:
        rest = list(face)
        while len(rest) > most:
            chord, n_edges = 2 * n_edges, n_edges + 1
            cut.append([*rest[: most - 1], chord])
            rest = [chord + 1, *rest[most - 1 :]]
        cut.append(rest)
    return cut, n_edges


def matching_graph(faces: list[list[int]], n_crossing: int) -> MatchingGraph:
    """Return the graph of cliques for faces of at most four sides."""
    node_of = np.full(2 * n_crossing, -1, dtype=np.int64)
    node = 0
    cliques: list[tuple[int, int]] = []
    around: list[list[int]] = []  # darts of each node
    plane = all(len(face) <= 3 for face in faces)
    for face in faces:
        first, sides = node, len(face)
        for k, dart in enumerate(face):
            node_of[dart] = first + k
            around.append([])
        node += sides
        for k in range(sides):
            for j in range(k):
                cliques.append((first + j, first + k))
        if plane:
            _turn_clique(first, sides, 2 * (n_crossing + len(cliques)), around)
    crossing = node_of.reshape(n_crossing, 2)
    edges = np.concatenate([crossing, np.array(cliques, dtype=np.int64).reshape(-1, 2)])
    if plane:
        for dart in range(2 * n_crossing):
            around[int(node_of[dart])].insert(0, dart)
    return MatchingGraph(node, edges, n_crossing, tuple(map(tuple, around)) if plane else ())


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
