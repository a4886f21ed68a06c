"""Implicit gradients against difference quotients and back-propagation."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.marginal_gradients import (
    ImplicitGradient,
    implicit_mean_field_gradient,
    mean_field_tables,
)
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.objectives.grid_losses import loss_and_gradient
from engine.objectives.marginal_losses import HIDDEN, PAIRWISE_LOSSES, LossOptions, marginal_loss
from engine.structures.grid import GridStructure
from tests.reference.tiny_grids import tiny_example


def mixed_graph() -> PairwiseGraph:
    """A cycle with a chord and a tail; two, three and four labels."""
    edges = np.array([[0, 1], [2, 1], [2, 3], [3, 0], [0, 2], [3, 4]])
    return PairwiseGraph(np.array([2, 3, 4, 2, 3]), edges)


def reweighted(graph):
    solver = TreeReweighted(graph, 0.5, bounded=False)

    def solve(scores):
        model = PairwiseModel(graph, scores)
        return solver.solve(model, max_iterations=5000, tolerance=1e-13).tables

    return solve


def mean_field(graph):
    def solve(scores):
        n = graph.node_start[-1]
        nodes = graph.uniform()[:n].copy()
        for _ in range(200):
            for i in range(graph.n_nodes):
                field = graph.node_table(scores, i).copy()
                for e, (a, b) in enumerate(graph.edges):
                    if a == i:
                        field += graph.edge_table(scores, e) @ graph.node_table(nodes, b)
                    if b == i:
                        field += graph.edge_table(scores, e).T @ graph.node_table(nodes, a)
                graph.node_table(nodes, i)[:] = np.exp(field - np.logaddexp.reduce(field))
        return mean_field_tables(graph, nodes)

    return solve


LABELS = np.array([1, 2, HIDDEN, 0, 1])


@pytest.mark.parametrize("loss", PAIRWISE_LOSSES)
@pytest.mark.parametrize("inference", [reweighted, mean_field])
def test_gradients_are_those_of_difference_quotients(loss, inference):
    graph, rng = mixed_graph(), np.random.default_rng(1)
    solve = inference(graph)
    scores = 0.6 * rng.normal(size=graph.size)
    tables = solve(scores)
    _, slope = marginal_loss(graph, tables, LABELS, loss, 5.0)
    if inference is reweighted:
        implicit = ImplicitGradient(graph, 0.5)(tables, slope)
    else:
        implicit = implicit_mean_field_gradient(graph, scores, tables, slope)
    for _ in range(4):
        way = rng.normal(size=graph.size)
        ends = [
            marginal_loss(graph, solve(scores + t * way), LABELS, loss, 5.0)[0]
            for t in (1e-4, -1e-4)
        ]
        assert implicit @ way == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=1e-5, rel=1e-5)


@pytest.mark.parametrize("loss", PAIRWISE_LOSSES)
def test_the_implicit_gradient_is_that_of_back_propagation_to_convergence(loss):
    rng = np.random.default_rng(2)
    example = tiny_example(rng, 4, 5)
    structure = GridStructure([example], 0.5)
    theta = 0.5 * rng.normal(size=example.features.n_parameters)
    value, expected = loss_and_gradient(
        example, theta, LossOptions(loss, threshold=1e-14, sharpness=5.0)
    )
    graph = Grid(4, 5).to_pairwise()
    tables = reweighted(graph)(structure.scores(theta))
    labels = example.labels.ravel().astype(np.int64)
    ours, slope = marginal_loss(graph, tables, labels, loss, 5.0)
    assert ours == pytest.approx(value, rel=1e-8)
    gradient = ImplicitGradient(graph, 0.5)(tables, slope)
    found = [gradient @ structure.scores(way) for way in np.eye(len(theta))]
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_what_is_unknown_is_refused():
    graph = mixed_graph()
    with pytest.raises(InvalidProblemError, match="loss"):
        marginal_loss(graph, graph.uniform(), LABELS, "hinge")
    with pytest.raises(InvalidProblemError, match="own range"):
        marginal_loss(graph, graph.uniform(), np.array([2, 0, 0, 0, 0]), "clique-logistic")
    nobody = np.full(5, HIDDEN)
    for loss in PAIRWISE_LOSSES:
        value, slope = marginal_loss(graph, graph.uniform(), nobody, loss)
        assert value == 0.0
        assert not slope.any()
