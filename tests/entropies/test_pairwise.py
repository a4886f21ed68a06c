"""Pairwise entropies: definition, gradient by finite differences, concavity."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.entropies.mean_field import mean_field_entropy
from engine.entropies.pairwise import graph_entropy, grid_entropy
from engine.graphs.grid import Grid, GridTables
from engine.graphs.spanning_trees import uniform_tree_probabilities
from engine.inference.pairwise.grid_tree_reweighted import GridTreeReweighted
from engine.oracles.protocol import Vertex
from tests.reference.pairwise_models import random_model


def entropy_of(table: np.ndarray) -> float:
    return float(-(table * np.log(table)).sum())


def interior_point(grid: Grid, seed: int) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=grid.size)
    return GridTreeReweighted(grid).solve(scores).tables


@pytest.mark.parametrize("rho", [0.5, 1.0, "edges"])
def test_it_is_node_entropies_minus_weighted_mutual_information(rho):
    grid = Grid(3, 4)
    rng = np.random.default_rng(0)
    rho_edge = rng.uniform(0.2, 0.8, grid.n_edges) if rho == "edges" else np.full(grid.n_edges, rho)
    tau = GridTables(grid, interior_point(grid, 1))
    tables = [*tau.horizontal.reshape(-1, 2, 2), *tau.vertical.reshape(-1, 2, 2)]
    expected = sum(entropy_of(t) for t in tau.nodes.reshape(-1, 2))
    for weight, table in zip(rho_edge, tables, strict=True):
        mutual = entropy_of(table.sum(0)) + entropy_of(table.sum(1)) - entropy_of(table)
        expected -= weight * mutual
    entropy = grid_entropy(grid, rho_edge if rho == "edges" else rho)
    assert entropy.value(tau.flat) == pytest.approx(expected, abs=1e-12)


def test_gradient_and_derivatives_along_a_line_match_finite_differences():
    grid = Grid(3, 3)
    entropy = grid_entropy(grid, 0.5)
    tau = interior_point(grid, 0).copy()
    direction = interior_point(grid, 1) - tau
    h = 1e-5
    numeric = (entropy.value(tau + h * direction) - entropy.value(tau - h * direction)) / (2 * h)
    assert entropy.gradient(tau) @ direction == pytest.approx(numeric, rel=1e-7)
    line = entropy.along(tau, Vertex(tau + direction))
    value, slope, curvature = line(0.3)
    at = tau + 0.3 * direction
    assert value == pytest.approx(entropy.value(at), abs=1e-12)
    assert slope == pytest.approx(entropy.gradient(at) @ direction, abs=1e-10)
    second = line(0.3 + h)[1] - line(0.3 - h)[1]
    assert curvature == pytest.approx(second / (2 * h), rel=1e-6)
    assert curvature < 0
    out = np.empty_like(tau)
    assert entropy.gradient(tau, out) is out


@pytest.mark.parametrize("kind", ["Bethe", "trees", "an edge each", "mean field"])
def test_every_partial_derivative_matches_finite_differences(kind):
    """Of all table entries, on and off the local polytope, for any number of labels."""
    rng = np.random.default_rng(2)
    graph = random_model(2, 5, most_labels=4, density=0.8).graph
    entropy = {
        "Bethe": lambda: graph_entropy(graph, 1.0),
        "trees": lambda: graph_entropy(graph, uniform_tree_probabilities(graph)),
        "an edge each": lambda: graph_entropy(graph, rng.random(graph.n_edges)),
        "mean field": lambda: mean_field_entropy(graph),
    }[kind]()
    tau = rng.uniform(0.05, 0.9, graph.size)
    steps = 1e-6 * np.eye(graph.size)
    numeric = [(entropy.value(tau + d) - entropy.value(tau - d)) / 2e-6 for d in steps]
    np.testing.assert_allclose(entropy.gradient(tau), numeric, atol=1e-7)
    edge_part = entropy.gradient(tau)[graph.edge_start[0] :]
    assert edge_part.any() == (kind != "mean field")


def test_vertices_have_no_entropy_and_a_finite_gradient():
    grid = Grid(2, 3)
    entropy = grid_entropy(grid, 0.5)
    vertex = grid.indicator(np.array([[0, 1, 1], [1, 0, 0]])).flat
    assert entropy.value(vertex) == 0.0
    assert np.isfinite(entropy.gradient(vertex)).all()


def test_bad_weights_are_refused():
    with pytest.raises(InvalidProblemError, match="rho: expected a number of at least 0"):
        grid_entropy(Grid(2, 2), 1.5)
    with pytest.raises(InvalidProblemError, match="expected 4 numbers"):
        grid_entropy(Grid(2, 2), np.ones(3))
