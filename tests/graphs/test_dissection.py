"""Nested dissection: no edge joins two parts that a third one cuts from each other."""

import numpy as np

from engine.graphs.dissection import dissect
from engine.graphs.grid import Grid
from engine.graphs.planar import cut_faces, faces_of, matching_graph


def test_edges_join_only_a_part_and_one_that_holds_it() -> None:
    graph = Grid(20, 20).to_pairwise()
    matchings = matching_graph(*cut_faces(faces_of(graph), graph.n_edges))
    found = dissect(matchings)
    parents = np.full(len(found.halves), -1)
    for part, halves in enumerate(found.halves):
        parents[halves[halves >= 0]] = part
    for first, second in np.sort(found.owner[matchings.edges], axis=1).tolist():
        part = second
        while part > first:
            part = int(parents[part])
        assert part == first
    cut = int((found.owner == 0).sum())
    assert cut <= 40  # of some 2,400 nodes on 20 rows
