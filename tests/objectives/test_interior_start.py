"""Interior starts on general graphs: inside the polytope, clamps exact, few oracle calls."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.core.errors import InfeasibleError
from engine.objectives.interior_start import find_interior_start
from engine.objectives.learning_dual import make_learning_dual
from engine.oracles.sparse_matching import max_weight_matching
from engine.solvers.control import Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.structures.graph import GraphStructure
from tests.reference.perfect_matchings import enumerate_pairs


def matchings_of(n, edges):
    index = {tuple(sorted(edge)): k for k, edge in enumerate(edges.tolist())}
    for pairs in enumerate_pairs(tuple(range(n))):
        if all(pair in index for pair in pairs):
            yield [index[pair] for pair in pairs]


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([4, 6, 8]), st.floats(0.25, 1.0))
def test_clamps_agree_with_enumeration(seed, n, density):
    rng = np.random.default_rng(seed)
    edges = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < density])
    edges = edges.reshape(-1, 2)
    found = list(matchings_of(n, np.sort(edges, axis=1)))
    assume(found)
    uses = np.zeros(len(edges))
    for chosen in found:
        uses[chosen] += 1
    start = find_interior_start(
        len(edges), lambda w: max_weight_matching(n, edges, w, "perfect").edge_indices
    )
    assert np.array_equal(start.is_never, uses == 0)
    assert np.array_equal(start.is_always, uses == len(found))
    assert start.oracle_calls <= len(edges) + 2  # two per edge would do it the slow way
    free = ~start.is_never & ~start.is_always
    assert ((start.tau[free] > 0) & (start.tau[free] < 1)).all()
    degrees = np.bincount(edges.ravel(), np.repeat(start.tau, 2), n)
    assert degrees == pytest.approx(np.ones(n))


def test_dense_graphs_need_few_calls():
    edges = np.array(nx.complete_graph(20).edges)
    start = find_interior_start(
        len(edges), lambda w: max_weight_matching(20, edges, w, "perfect").edge_indices
    )
    assert start.oracle_calls < 60  # 190 edges; one call per edge and side would be 380


def test_a_graph_without_a_perfect_matching_names_a_deficient_set():
    star = np.array([(0, 1), (0, 2), (0, 3)])
    with pytest.raises(InfeasibleError) as caught:
        GraphStructure(4, star, np.ones((3, 1)), np.array([0]), 1.0)
    assert caught.value.deficient_set == (0,)


@pytest.mark.parametrize("is_perfect", [True, False])
def test_learning_on_a_general_graph_reaches_a_small_gap(is_perfect):
    rng = np.random.default_rng(0)
    edges = np.array(nx.cycle_graph(8).edges)
    features = rng.normal(size=(8, 3))
    matched = (
        np.array([0, 2, 5, 7])
        if not is_perfect
        else np.array(max_weight_matching(8, edges, rng.normal(size=8)).edge_indices)
    )
    if not is_perfect:
        matched = np.array(max_weight_matching(8, edges, rng.normal(size=8), "any").edge_indices)
    structure = GraphStructure(8, edges, features, matched, 1.0, is_perfect=is_perfect)
    dual = make_learning_dual([structure.observed], 1.0)
    result = FrankWolfe([structure], dual, limits=Limits(1e-3, max_iterations=3000)).solve()
    assert result.relative_gap <= 1e-3
