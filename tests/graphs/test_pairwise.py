"""Layout and validation of pairwise graphs and models."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from tests.reference.pairwise_models import best_labels, infeasibility, random_model


def test_views_cover_the_flat_vector_once():
    graph = random_model(0).graph
    flat = np.zeros(graph.size)
    for i in range(graph.n_nodes):
        graph.node_table(flat, i)[:] += 1
    for e in range(graph.n_edges):
        graph.edge_table(flat, e)[:] += 1
    assert (flat == 1).all()


def test_a_grid_and_its_pairwise_form_share_the_layout():
    grid = Grid(3, 4, 3)
    labels = np.random.default_rng(0).integers(0, 3, (3, 4))
    np.testing.assert_array_equal(
        grid.indicator(labels).flat, grid.to_pairwise().indicator(labels.ravel())
    )
    np.testing.assert_array_equal(grid.uniform().flat, grid.to_pairwise().uniform())


def test_indicator_score_and_uniform_agree_with_the_polytope():
    model = random_model(1)
    graph = model.graph
    labels = np.array([int(c) - 1 for c in graph.cardinalities])
    indicator = graph.indicator(labels)
    assert graph.score(model.scores, labels) == pytest.approx(indicator @ model.scores)
    cards = [int(c) for c in graph.cardinalities]
    assert infeasibility(cards, graph.edges, indicator) == 0
    assert infeasibility(cards, graph.edges, graph.uniform()) < 1e-12


def test_the_labels_of_an_indicator_are_read_back():
    graph = random_model(3, 6).graph
    labels = np.random.default_rng(0).integers(0, graph.cardinalities)
    np.testing.assert_array_equal(best_labels(graph, graph.indicator(labels)), labels)


def test_incidence_lists_name_every_end_once():
    graph = random_model(2, 7).graph
    for node in range(graph.n_nodes):
        low, high = graph.incident_start[node], graph.incident_start[node + 1]
        for end in graph.incident_edge[low:high]:
            assert graph.edges[end // 2, end % 2] == node
    assert sorted(graph.incident_edge) == list(range(2 * graph.n_edges))


@pytest.mark.parametrize(
    ("cards", "edges", "words"),
    [
        ([], [], "needs nodes"),
        ([2, 0], [], "at least one label"),
        ([2, 2], [[0, 2]], "node numbers 0 to 1"),
        ([2, 2], [[1, 1]], "itself"),
        ([2, 2], [[0, 1], [1, 0]], "same nodes"),
    ],
)
def test_bad_graphs_are_refused(cards, edges, words):
    with pytest.raises(InvalidProblemError, match=words):
        PairwiseGraph(np.array(cards, dtype=np.int64), np.array(edges, dtype=np.int64))


def test_bad_scores_and_labels_are_refused():
    graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    with pytest.raises(InvalidProblemError, match="shape"):
        PairwiseModel(graph, np.zeros(3))
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidProblemError, match="finite or minus infinity"):
            PairwiseModel(graph, np.full(graph.size, bad))
    assert PairwiseModel(graph, np.full(graph.size, -np.inf)).has_zeros
    with pytest.raises(InvalidProblemError, match="labels"):
        graph.indicator(np.array([0, 2]))
