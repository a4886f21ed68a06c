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
    grid_tree_probabilities,
    maximum_spanning_tree,
    uniform_tree_probabilities,
)
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
