"""Edge probabilities against enumeration of all spanning trees."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from engine.core.errors import InvalidProblemError
from engine.graphs.conditioning_shares import conditioning_shares
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph
from engine.graphs.spanning_trees import (
    balanced_tree_probabilities,
    constant_tree_probability,
    maximum_spanning_tree,
    tree_probabilities,
    uniform_tree_probabilities,
)
from tests.reference.grid_resistances import grid_tree_probabilities
from tests.reference.pairwise_models import random_model


def spanning_trees(graph: PairwiseGraph) -> np.ndarray:
    rows = []
    for chosen in itertools.combinations(range(graph.n_edges), graph.n_nodes - 1):
        tree = nx.Graph([tuple(graph.edges[e]) for e in chosen])
        if tree.number_of_nodes() == graph.n_nodes and nx.is_connected(tree):
            rows.append(np.isin(np.arange(graph.n_edges), chosen))
    return np.array(rows, dtype=float)


def connected_graph(seed: int) -> PairwiseGraph:
    for k in itertools.count(seed * 100):
        graph = random_model(k, 5, density=0.7).graph
        joined = nx.Graph([tuple(e) for e in graph.edges])
        if joined.number_of_nodes() == 5 and nx.is_connected(joined):
            return graph
    raise AssertionError


@pytest.mark.parametrize("seed", range(4))
def test_uniform_probabilities_are_shares_of_all_trees(seed):
    graph = connected_graph(seed)
    expected = spanning_trees(graph).mean(axis=0)
    np.testing.assert_allclose(uniform_tree_probabilities(graph), expected, atol=1e-12)
    constant = constant_tree_probability(graph)
    assert 0 < constant <= expected.min() + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_the_maximum_tree_is_one(seed):
    graph = connected_graph(seed)
    weights = np.random.default_rng(seed).normal(size=graph.n_edges)
    trees = spanning_trees(graph)
    found = maximum_spanning_tree(graph, weights)
    assert weights @ found == pytest.approx((trees @ weights).max())
    assert (trees == found).all(axis=1).any()


@pytest.mark.parametrize("seed", range(4))
def test_balanced_probabilities_are_those_of_a_mixture_of_trees(seed):
    graph = connected_graph(seed)
    rho = balanced_tree_probabilities(graph)
    assert rho.min() > 0
    assert rho.sum() == pytest.approx(graph.n_nodes - 1)
    trees = spanning_trees(graph)
    system = np.vstack([trees.T, np.ones(len(trees))])
    assert linprog(np.zeros(len(trees)), A_eq=system, b_eq=[*rho, 1.0]).status == 0


@pytest.mark.parametrize(
    ("n_nodes", "mixture"),
    [(2000, uniform_tree_probabilities), (2001, balanced_tree_probabilities)],
)
def test_beyond_two_thousand_nodes_trees_are_balanced(n_nodes, mixture):
    nodes = np.arange(n_nodes)
    chords = np.stack([nodes[::500], (nodes[::500] + 250) % n_nodes], axis=1)
    ring = np.stack([nodes, (nodes + 1) % n_nodes], axis=1)
    graph = PairwiseGraph(np.full(n_nodes, 2), np.concatenate([ring, chords]))
    rho = tree_probabilities(graph)
    np.testing.assert_array_equal(rho, mixture(graph))
    assert rho.sum() == pytest.approx(n_nodes - 1)
    assert (rho > 0.0).all()
    assert (rho <= 1.0).all()


@pytest.mark.parametrize("shape", [(1, 5), (4, 1), (3, 4), (6, 5)])
def test_cosines_give_the_resistances_of_a_grid(shape):
    grid = Grid(*shape)
    np.testing.assert_allclose(
        grid_tree_probabilities(grid), uniform_tree_probabilities(grid.to_pairwise()), atol=1e-10
    )


def test_forests_of_several_components_have_a_tree_each():
    graph = PairwiseGraph(np.full(6, 2), np.array([[0, 1], [1, 2], [0, 2], [3, 4]]))
    np.testing.assert_allclose(uniform_tree_probabilities(graph), [2 / 3, 2 / 3, 2 / 3, 1])
    assert maximum_spanning_tree(graph, np.array([3.0, 2.0, 1.0, -5.0])).tolist() == [1, 1, 0, 1]


def test_a_star_needs_shares_that_are_not_halves():
    star = PairwiseGraph(np.full(6, 2), np.array([[0, k] for k in range(1, 6)]))
    shares = conditioning_shares(star, np.ones(5))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    charged = np.bincount(star.edges.ravel(), weights=shares[:, ::-1].ravel())
    assert charged.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_every_mixture_of_trees_can_be_shared_out(seed):
    graph = connected_graph(seed)
    trees = spanning_trees(graph)
    rho = np.random.default_rng(seed).dirichlet(np.ones(len(trees))) @ trees
    shares = conditioning_shares(graph, rho)
    np.testing.assert_allclose(shares.sum(axis=1), rho, atol=1e-9)
    assert shares.min() >= -1e-12
    charged = np.bincount(graph.edges.ravel(), weights=shares[:, ::-1].ravel())
    assert charged.max() <= 1.0 + 1e-12


def test_weights_of_loopy_propagation_are_refused_as_probabilities():
    complete = PairwiseGraph(np.full(5, 2), np.array(list(itertools.combinations(range(5), 2))))
    with pytest.raises(InvalidProblemError, match="not probabilities"):
        conditioning_shares(complete, np.ones(10))


def weighted_graph(seed: int) -> tuple[PairwiseGraph, np.ndarray]:
    """Edge weights near the boundary of the polytope of spanning forests, in and out of it."""
    graph = connected_graph(seed % 7)
    trees = spanning_trees(graph)
    rng = np.random.default_rng(seed)
    mixture = rng.dirichlet(np.ones(len(trees))) @ trees
    noise = rng.normal(size=graph.n_edges) * rng.choice([0.0, 0.02, 0.2])
    return graph, (mixture * rng.choice([0.9, 1.0]) + noise).clip(0.01, 1.0)


@pytest.mark.parametrize("seed", range(40))
def test_weights_are_served_exactly_if_no_set_of_nodes_has_too_much(seed):
    graph, rho = weighted_graph(seed)
    most = max(
        rho[np.isin(graph.edges, nodes).all(axis=1)].sum() - (size - 1)
        for size in range(2, 6)
        for nodes in itertools.combinations(range(5), size)
    )
    if most > 1e-6:
        with pytest.raises(InvalidProblemError, match="not probabilities"):
            conditioning_shares(graph, rho)
        return
    shares = conditioning_shares(graph, rho)
    np.testing.assert_allclose(shares.sum(axis=1), rho, atol=1e-9)
    charged = np.bincount(graph.edges.ravel(), weights=shares[:, ::-1].ravel())
    assert charged.max() <= 1.0 + 1e-9


@pytest.mark.parametrize("length", [3, 4, 7])
@pytest.mark.parametrize("tails", [0, 3])
def test_a_cycle_takes_all_but_one_of_its_edges(length, tails):
    """An orientation that charges no node more than 1 exists even with all of them."""
    cycle = [(k, (k + 1) % length) for k in range(length)]
    path = [(length - 1 + k, length + k) for k in range(tails)]
    graph = PairwiseGraph(np.full(length + tails, 2), np.array(cycle + path))
    for rho in (1.0, 0.97, 1.0 - 0.99 / length):
        weights = np.where(np.arange(graph.n_edges) < length, rho, 1.0)
        with pytest.raises(InvalidProblemError, match="not probabilities"):
            conditioning_shares(graph, weights)
    weights = np.where(np.arange(graph.n_edges) < length, 1.0 - 1.0 / length, 1.0)
    np.testing.assert_allclose(conditioning_shares(graph, weights).sum(axis=1), weights)
    known = conditioning_shares(graph, weights, from_trees=True)
    np.testing.assert_allclose(known.sum(axis=1), weights)


def test_a_large_grid_is_checked_without_a_flow_a_node():
    graph = Grid(100, 100).to_pairwise()
    assert (conditioning_shares(graph, np.full(graph.n_edges, 0.5)) == 0.25).all()
    with pytest.raises(InvalidProblemError, match="not probabilities"):
        conditioning_shares(graph, np.full(graph.n_edges, 0.6))
