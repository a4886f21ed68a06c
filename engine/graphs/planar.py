"""Plane drawings of graphs, their faces, and the graph whose perfect matchings are their cuts.

Darts: edge e has the darts 2 e (from its first end to its second) and 2 e + 1 (back).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import CertificateError, InvalidProblemError
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels.planar import count_cycles, direct_edges, walk_cycles

CLIQUES = {2: ((0, 1),), 3: ((0, 1), (0, 2), (1, 2))}
"""Edges of the clique of a face, by its number of sides."""

CLIQUE_DARTS = {2: ((0,), (1,)), 3: ((0, 2), (4, 1), (3, 5))}
"""Darts of each side counterclockwise: out, to the next side, to the previous one."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchingGraph:
    """Plane graph whose perfect matchings are the cuts of a connected plane graph, one to one.

    Each face is a clique with a node for each of its sides (a corner for each two consecutive
    sides); faces are cut by chords until they have few sides. The two nodes of an edge's sides are
    joined: that edge is in the matching if the ends of the original edge agree in the cut.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (n_edges, 2): first one per edge of the graph, one per chord, cliques.
    n_crossing : number of edges and chords.
    rotation : ndarray, shape (n_nodes, 3): the darts of each node in counterclockwise order, -1
        for missing ones.
    face_starts : ndarray, shape (n_faces + 1,): the first node of each face.

    References
    ----------
    Fisher 1966; Thomas and Middleton 2007; Schraudolph and Kamenetsky 2008.
    """

    n_nodes: int
    edges: IntArray
    n_crossing: int
    rotation: IntArray
    face_starts: IntArray


def faces_of(graph: PairwiseGraph) -> list[list[int]]:
    """Return the faces of a plane drawing of a connected graph as cycles of darts.

    Each dart is in exactly one face.

    Raises
    ------
    InvalidProblemError
        If the graph cannot be drawn in the plane without crossings.

    Notes
    -----
    Nodes numbered row by row on a square lattice are drawn as a lattice, in 1 s for a million
    edges; other graphs take the planarity test, in Python about 80 s for a million.

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
    """Return the next dart in the face of each dart, if all edges go to the next node or row."""
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
    for turn in (4, 3, 2, 1):  # the nearest side, written last, wins; four sides on is the same
        candidate = at[heads[back], (sides[back] + turn) % 4]
        following = np.where(candidate >= 0, candidate, following)
    return np.asarray(following, dtype=np.int64)


def _turn_by_planarity(graph: PairwiseGraph) -> IntArray:
    """Return the next dart in the face of each dart, by a planarity test."""
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
    chord may join two nodes that are already joined, or a node to itself.
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
    sides = np.array([len(face) for face in faces])
    first = np.cumsum(sides) - sides  # node of each face's first side
    node_of = np.empty(2 * n_crossing, dtype=np.int64)
    node_of[np.concatenate([np.asarray(face, dtype=np.int64) for face in faces])] = np.arange(
        2 * n_crossing
    )
    rotation = np.full((2 * n_crossing, 3), -1, dtype=np.int64)
    rotation[node_of, 0] = np.arange(2 * n_crossing)
    sizes = sides * (sides - 1) // 2
    inside = n_crossing + np.cumsum(sizes) - sizes  # each face's first edge
    edges = np.empty((n_crossing + int(sizes.sum()), 2), dtype=np.int64)
    edges[:n_crossing] = node_of.reshape(n_crossing, 2)
    for count, joined in CLIQUES.items():
        node, edge = first[sides == count], inside[sides == count]
        for k, ends in enumerate(joined):
            edges[edge + k] = np.stack([node + ends[0], node + ends[1]], axis=1)
        for k, darts in enumerate(CLIQUE_DARTS[count]):
            for place, dart in enumerate(darts):
                rotation[node + k, 1 + place] = 2 * edge + dart
    starts = np.append(first, 2 * n_crossing)
    return MatchingGraph(2 * n_crossing, edges, n_crossing, rotation, starts)


def orient(graph: MatchingGraph) -> IntArray:
    """Return 1 for each edge directed as stored, -1 for the others: Kasteleyn's orientation.

    Around every face but one, the number of edges that run clockwise is odd, so that all perfect
    matchings have the same sign in the Pfaffian.

    Raises
    ------
    CertificateError
        If the rotation is not that of a plane drawing (Euler's formula).

    References
    ----------
    Kasteleyn 1967.
    """
    previous = np.empty(2 * len(graph.edges), dtype=np.int64)  # dart before, counterclockwise
    at, degrees = graph.rotation, (graph.rotation >= 0).sum(axis=1)
    for k in range(at.shape[1]):
        there = degrees > k
        before = (k - 1) % degrees[there]
        previous[at[there, k]] = at[there, before]
    darts, ends = walk_cycles(previous[np.arange(len(previous)) ^ 1])
    if graph.n_nodes - len(graph.edges) + len(ends) != 2:
        raise CertificateError("The rotation of the matching graph is not that of a plane drawing.")
    return np.asarray(direct_edges(graph.edges, graph.rotation, darts, ends))
