"""Matchings in whole numbers of any size: rounding to fewer bits loses no optimum."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import engine.oracles.exact_matching as module
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.oracles.exact_matching import best_perfect_matching
from engine.oracles.sparse_matching import match_any, max_weight_matching, with_bonus


def scattered_points(rng: np.random.Generator, n: int, scale: int) -> nx.Graph:
    """Near neighbours in the plane, short edges preferred: blossoms that nest."""
    points = rng.random((n, 2))
    distance = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    graph = nx.empty_graph(n)
    for i in range(n):
        for j in np.argsort(distance[i])[1 : int(rng.integers(3, 7))].tolist():
            graph.add_edge(i, j, weight=-int(scale * distance[i, j]))
    return graph


@pytest.mark.parametrize("bits", [15, 18, 22])
def test_few_bits_at_a_time_give_what_all_at_once_give(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With weights of at most 2^15, the solver finds optima in several steps."""
    monkeypatch.setattr(module, "HEADROOM_BITS", bits)
    steps = []
    honest = module.near_optimal
    monkeypatch.setattr(module, "near_optimal", lambda *given: steps.append(1) or honest(*given))
    rng = np.random.default_rng(bits)
    for trial in range(60):
        graph = scattered_points(rng, int(rng.integers(4, 30)), 2 ** int(rng.integers(6, 24)))
        edges = np.array(graph.edges)
        weights = np.array([w for _, _, w in graph.edges(data="weight")], dtype=object)
        lifted = weights - min(weights) + trial % 5
        for most, counts in ((False, lifted), (True, with_bonus(len(graph), weights))):
            try:
                chosen = match_any(len(graph), edges, counts)
            except InvalidProblemError:  # "round the weights": 30 nodes are many for 15 bits
                continue
            for (u, v), weight in zip(edges.tolist(), weights if most else lifted, strict=True):
                graph.edges[u, v]["weight"] = weight
            expected = nx.max_weight_matching(graph, maxcardinality=most)
            best = sum(graph.edges[pair]["weight"] for pair in expected)
            assert sum(graph.edges[tuple(edges[k])]["weight"] for k in chosen) == best
            assert len(chosen) == len(expected) or not most
    assert len(steps) > 50


@pytest.mark.parametrize("lift", [2**44, 2**52, 2**60, 10**40])
def test_ties_but_for_the_last_digit_of_many_nodes(lift: int) -> None:
    rng = np.random.default_rng(0)
    n = 4_000
    corners = np.arange(n).reshape(-1, 4)
    edges = np.concatenate([corners[:, [k, (k + 1) % 4]] for k in range(4)])
    small = rng.integers(0, 8, len(edges))
    first, second, third, fourth = small.reshape(4, -1)
    best = np.maximum(first + third, second + fourth)
    weights = [lift + int(v) for v in small]
    for kind in ("any", "perfect"):
        found = max_weight_matching(n, edges, weights, kind)
        assert small[found.edge_indices].sum() == best.sum()
        assert found.weight == found.upper_bound == float(lift * n // 2 + int(best.sum()))


def test_weights_from_the_smallest_to_the_largest_float() -> None:
    """On a path of four nodes the ends outweigh the middle by the smallest number there is."""
    weights = [1e299, 1e299 + 2.0**960, 5e-324]
    small = max_weight_matching(4, [(0, 1), (1, 2), (2, 3)], [1.0, 1.0, 5e-324], "any")
    assert small.edge_indices.tolist() == [0, 2]
    large = max_weight_matching(4, [(0, 1), (1, 2), (2, 3)], weights, "any")
    exact = [Fraction(weight) for weight in weights]
    assert (large.edge_indices.tolist() == [0, 2]) == (exact[0] + exact[2] > exact[1])


def test_a_b_matching_of_the_least_float_is_not_lost() -> None:
    """Half of it, which the gadget once had on each of two edges, is 0."""
    found = max_weight_matching(2, [(0, 1)], [5e-324], "b", [1, 1])
    assert (found.edge_indices.tolist(), found.weight) == ([0], 5e-324)


def test_no_perfect_matching_is_found_out_whatever_the_size_of_the_weights() -> None:
    edges = np.array([(0, 1), (0, 2), (0, 3)])
    with pytest.raises(InfeasibleError) as caught:
        best_perfect_matching(4, edges, np.array([10**40, 1, 2], dtype=object))
    assert caught.value.deficient_set == (0,)
