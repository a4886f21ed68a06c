"""Chains, trees and models of low treewidth: exact, held against enumeration."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from engine.baselines.decoding import decode
from engine.baselines.structured_svm import train_structured_svm
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.estimators import StructuredModel
from engine.graphs.junction_tree import JunctionTree
from engine.inference.factors.junction_tree import calibrate, statistics_covariance
from engine.oracles.junction_tree import JunctionTreeOracle
from engine.structures.junction_tree import JunctionTreeStructure


def random_scopes(rng: np.random.Generator, n: int, kind: str) -> tuple[tuple[int, ...], ...]:
    """A chain, a forest, a cycle, a ladder or factors of up to three variables, axes shuffled."""
    chain = [(v - 1, v) for v in range(1, n)]
    if kind == "chain":
        scopes = chain
    elif kind == "forest":
        scopes = [(int(rng.integers(v)), v) for v in range(1, n) if rng.random() < 0.7]
    elif kind == "cycle":
        scopes = [*chain, (0, n - 1)]
    elif kind == "ladder":
        scopes = [*chain, *((v - 2, v) for v in range(2, n))]
    else:
        count = int(rng.integers(1, n))
        scopes = [
            tuple(rng.choice(n, int(rng.integers(1, 4)), replace=False)) for _ in range(count)
        ]
    return tuple(tuple(int(v) for v in rng.permutation(scope)) for scope in scopes)


KINDS = ("chain", "forest", "cycle", "ladder", "factors")


def enumerate_tables(tree: JunctionTree) -> tuple[np.ndarray, np.ndarray]:
    """All labellings, and the 0/1 tables of nodes and factors of each."""
    labellings = np.array(list(itertools.product(*(range(c) for c in tree.cardinalities))))
    tables = np.zeros((len(labellings), tree.n_table_entries))
    for row, labels in zip(tables, labellings, strict=True):
        at = 0
        for scope in [*((v,) for v in range(len(labels))), *tree.scopes]:
            shape = [int(tree.cardinalities[v]) for v in scope]
            row[at + np.ravel_multi_index([int(labels[v]) for v in scope], shape)] = 1.0
            at += int(np.prod(shape))
    return labellings, tables


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_sums_maxima_and_covariances_are_those_of_enumeration(kind, zeros, seed):
    rng = np.random.default_rng(seed)
    tree = JunctionTree(rng.integers(1, 4, 6), random_scopes(rng, 6, kind))
    _, indicators = enumerate_tables(tree)
    tables = 3.0 * rng.normal(size=tree.n_table_entries)
    tables[rng.random(len(tables)) < zeros] = -np.inf
    values = np.where(indicators > 0.0, tables, 0.0).sum(axis=1)
    scores = np.zeros(tree.size)
    tree.split(scores)[2][:] = tables
    oracle = JunctionTreeOracle(tree)
    if values.max() == -np.inf:
        with pytest.raises(InfeasibleError):
            oracle.compute_extreme_point(scores)
        with pytest.raises(InfeasibleError):
            calibrate(tree, tables)
        return
    best = oracle.compute_extreme_point(scores)
    assert best.value == pytest.approx(values.max())
    assert values.max() <= best.upper_bound <= values.max() + 1e-9
    log_partition, point = calibrate(tree, tables)
    assert log_partition == pytest.approx(np.logaddexp.reduce(values))
    chances = np.exp(values - log_partition)
    np.testing.assert_allclose(tree.split(point)[2], chances @ indicators, atol=1e-12)
    features = rng.normal(size=(tree.n_table_entries, 2))
    covariance = np.cov((indicators @ features).T, aweights=chances, bias=True)
    np.testing.assert_allclose(statistics_covariance(tree, features, point), covariance, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_entropy_is_exact_and_the_start_uniform(kind):
    rng = np.random.default_rng(7)
    cards = rng.integers(1, 4, 6)
    scopes = random_scopes(rng, 6, kind)
    tree = JunctionTree(cards, scopes)
    structure = JunctionTreeStructure(
        cards, scopes, rng.normal(size=(tree.n_table_entries, 2)), cards - 1
    )
    assert structure.entropy.value(structure.start) == pytest.approx(float(np.log(cards).sum()))
    theta = rng.normal(size=2)
    solution = structure.maximise(theta, None, 0.0)
    exact = float(theta @ solution.statistics) + solution.entropy
    assert exact == pytest.approx(solution.log_partition)
    for node, table in enumerate(structure.node_marginals(solution.state)):
        assert len(table) == cards[node]
        assert table.sum() == pytest.approx(1.0)


def labelled(rng: np.random.Generator, kind: str, n: int = 5) -> JunctionTreeStructure:
    """A model of random features and labels."""
    cards = rng.integers(2, 4, n)
    scopes = random_scopes(rng, n, kind)
    entries = JunctionTree(cards, scopes).n_table_entries
    return JunctionTreeStructure(
        cards, scopes, rng.normal(size=(entries, 3)), rng.integers(0, cards)
    )


@pytest.mark.parametrize("solver", ["theta", "block-coordinate"])
def test_learning_is_maximum_likelihood(solver):
    """The certified interval holds the exact optimum, found by enumeration."""
    rng = np.random.default_rng(0)
    structures = [labelled(rng, kind) for kind in KINDS]
    rows = [enumerate_tables(s.tree)[1] @ s.features for s in structures]
    observed = sum(s.observed for s in structures)

    def loss(theta):
        partitions = sum(np.logaddexp.reduce(row @ theta) for row in rows)
        return partitions - theta @ observed + 0.5 * theta @ theta

    best = minimize(loss, np.zeros(3), tol=1e-12)
    gap = 1e-9 if solver == "theta" else 1e-2
    model = StructuredModel(ridge=1.0, solver=solver, relative_gap=gap, max_iterations=3000)
    result = model.fit(structures).result_
    assert result.status.is_converged
    assert result.lower_bound - 1e-9 <= -best.fun <= result.objective + 1e-9
    np.testing.assert_allclose(model.theta_, best.x, atol=1e-4 if solver == "theta" else 0.3)


def test_its_hamming_loss_counts_nodes_and_the_margin_is_learned():
    rng = np.random.default_rng(3)
    structures = [labelled(rng, "chain") for _ in range(3)]
    machine = train_structured_svm(structures, ridge=0.1, rng=rng, relative_gap=1e-3)
    assert machine.status.is_converged
    answer = decode(structures[0], np.zeros(3))
    assert 5 * answer.loss == pytest.approx(round(5 * answer.loss))


def test_a_chain_of_thousands_takes_no_time():
    rng = np.random.default_rng(0)
    n = 3000
    scopes = tuple((v - 1, v) for v in range(1, n))
    features = np.zeros((3 * n + 9 * (n - 1), 2))
    features[: 3 * n, 0] = rng.normal(size=3 * n)
    features[3 * n :, 1] = np.tile(np.eye(3).ravel(), n - 1)
    chain = JunctionTreeStructure(np.full(n, 3), scopes, features, rng.integers(0, 3, n))
    assert chain.tree.width == 1
    model = StructuredModel(solver="theta", relative_gap=1e-8).fit([chain])
    assert model.result_.status.is_converged


def test_what_it_cannot_serve_is_refused_by_name():
    cards = np.full(3, 2)
    with pytest.raises(InvalidProblemError, match="names a node twice"):
        JunctionTree(cards, ((1, 1),))
    with pytest.raises(InvalidProblemError, match="does not exist"):
        JunctionTree(cards, ((1, 3),))
    with pytest.raises(InvalidProblemError, match="too wide"):
        JunctionTree(np.full(20, 2), tuple(itertools.combinations(range(20), 2)), 1 << 10)
    with pytest.raises(InvalidProblemError, match="features"):
        JunctionTreeStructure(cards, ((0, 1),), np.zeros((4, 1)), np.zeros(3))
    with pytest.raises(InvalidProblemError, match="own range"):
        JunctionTreeStructure(cards, ((0, 1),), np.zeros((10, 1)), np.array([0, 1, 2]))
