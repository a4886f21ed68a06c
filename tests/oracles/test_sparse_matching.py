"""Sparse matchings against enumeration, published optima, and families made to be hard."""

import json
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.oracles.exact_matching as module
from engine.core.errors import CertificateError, InfeasibleError, InvalidProblemError
from engine.datasets.graph_files import read_graph_file
from engine.oracles.matching import Matching
from engine.oracles.sparse_matching import max_weight_matching
from tests.reference.best_matchings import best_b_weight, best_weight, count_odd_components
from tests.shared_data import shared_data

OPTIMA = "matching_known_optimum"


def check_result(matching: Matching, n: int, edges: np.ndarray, weights: np.ndarray) -> None:
    """The parts of a result agree with each other."""
    chosen = edges[matching.edge_indices]
    assert len(chosen) == matching.n_matched
    assert len(set(chosen.ravel().tolist())) == 2 * len(chosen)
    assert matching.weight == math.fsum(weights[matching.edge_indices])
    for i, j in chosen:
        assert matching.partner[i] == j
        assert matching.partner[j] == i
    assert (matching.partner >= 0).sum() == 2 * len(chosen)
    assert len(matching.partner) == n
    assert matching.upper_bound >= matching.weight


def random_graph(rng: np.random.Generator, most: int = 12) -> tuple[int, np.ndarray, np.ndarray]:
    """A small random graph: integer ties, negative weights, missing and parallel edges, loops."""
    n = int(rng.integers(1, most + 1))
    density = rng.uniform(0.15, 1)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < density]
    if pairs and rng.random() < 0.3:
        pairs += [pairs[k] for k in rng.integers(0, len(pairs), 2)] + [(n - 1, n - 1)]
    spread = int(rng.choice([1, 2, 5, 100]))
    weights = rng.integers(-spread, spread + 1, len(pairs)).astype(float)
    if rng.random() < 0.3:
        weights += rng.normal(size=len(pairs))
    return n, np.array(pairs, dtype=np.int64).reshape(-1, 2), weights


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_enumeration_on_random_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(200):
        n, edges, weights = random_graph(rng)
        listed = [(int(i), int(j)) for i, j in edges]
        best = best_weight(n, listed, weights.tolist(), perfect=False)
        found = max_weight_matching(n, edges, weights, "any")
        check_result(found, n, edges, weights)
        assert found.weight == pytest.approx(best, abs=1e-12)
        assert found.gap <= 1e-12
        best = best_weight(n, listed, weights.tolist(), perfect=True)
        try:
            found = max_weight_matching(n, edges, weights)
        except InfeasibleError as error:
            assert best == -np.inf
            removed = list(error.deficient_set)
            assert count_odd_components(n, listed, removed) > len(removed)
        else:
            check_result(found, n, edges, weights)
            assert found.n_matched == n // 2
            assert found.weight == pytest.approx(best, abs=1e-12)


@st.composite
def dense_tied_graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[int]]:
    n = 2 * draw(st.integers(1, 6))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    weights = draw(st.lists(st.integers(-2, 2), min_size=len(pairs), max_size=len(pairs)))
    present = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    kept = [k for k in range(len(pairs)) if present[k]]
    return n, [pairs[k] for k in kept], [weights[k] for k in kept]


@settings(max_examples=300)
@given(dense_tied_graphs(), st.randoms(use_true_random=False))
def test_tied_graphs_agree_with_enumeration_however_labelled(graph, random) -> None:  # type: ignore[no-untyped-def]
    n, edges, weights = graph
    new = list(range(n))
    random.shuffle(new)
    moved = [(new[i], new[j]) for i, j in edges]
    found = max_weight_matching(n, edges, weights, "any")
    assert found.weight == best_weight(n, edges, weights, perfect=False)
    assert max_weight_matching(n, moved, weights, "any").weight == found.weight
    best = best_weight(n, edges, weights, perfect=True)
    for listed in (edges, moved):
        try:
            assert max_weight_matching(n, listed, weights).weight == best
        except InfeasibleError as error:
            assert best == -np.inf
            removed = list(error.deficient_set)
            assert count_odd_components(n, listed, removed) > len(removed)


@pytest.mark.parametrize("seed", range(4))
def test_b_matchings_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        n = int(rng.integers(2, 7))
        edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.7][:9]
        if edges and rng.random() < 0.3:
            edges.append(edges[0])
        weights = rng.integers(-3, 8, len(edges)).astype(float)
        degrees = rng.integers(0, 4, n)
        found = max_weight_matching(n, edges, weights, "b", degrees)
        assert found.weight == best_b_weight(edges, weights.tolist(), degrees, exact=False)
        assert found.gap == 0
        best = best_b_weight(edges, weights.tolist(), degrees, exact=True)
        if best == -np.inf:
            with pytest.raises(InfeasibleError):
                max_weight_matching(n, edges, weights, "b", degrees, exact_degrees=True)
        else:
            exact = max_weight_matching(n, edges, weights, "b", degrees, exact_degrees=True)
            assert exact.weight == best
            used = np.bincount(np.array(edges)[exact.edge_indices].ravel(), minlength=n)
            assert (used == degrees).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spread", [1, 10, 10**6])
def test_it_agrees_with_networkx_on_larger_graphs(seed: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(60, 240, seed=seed)
    edges = np.array(graph.edges)
    weights = rng.integers(-spread // 4, spread + 1, len(edges))
    for (i, j), weight in zip(edges, weights, strict=True):
        graph.edges[i, j]["weight"] = int(weight)
    reference = nx.max_weight_matching(graph)
    best = sum(graph.edges[pair]["weight"] for pair in reference)
    assert max_weight_matching(60, edges, weights, "any").weight == best


def compact(edges: list[list[float]], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Node numbers from 0, whatever the file starts at."""
    ends = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2)
    if ends.size and ends.max() >= n:
        ends = np.unique(ends, return_inverse=True)[1].reshape(-1, 2)
    return ends, np.array([edge[2] for edge in edges], dtype=float)


def test_published_general_graphs() -> None:
    cases = json.loads((shared_data(OPTIMA) / "general_graph_cases.json").read_text())
    assert len(cases) == 29
    for case in cases:
        edges, weights = compact(case["edges"], case["n_vertices"])
        for sign, key in ((1, "max_weight"), (-1, "min_weight")):
            found = max_weight_matching(case["n_vertices"], edges, sign * weights, case["kind"])
            assert sign * found.weight == case[key], case["name"]
            assert found.gap == 0, case["name"]


def test_published_blossom_cases() -> None:
    cases = json.loads((shared_data(OPTIMA) / "small_blossom_cases.json").read_text())
    assert len(cases) == 27
    for case in cases:
        n = 1 + max((max(edge[:2]) for edge in case["edges"]), default=0)
        edges, weights = compact(case["edges"], n)
        # Many edges first, then weight: lift every edge by more than all weights together.
        lift = 1 + np.abs(weights).sum() if case["max_cardinality_first"] else 0.0
        found = max_weight_matching(n, edges, weights + lift, "any")
        weight = weights[found.edge_indices].sum()
        assert weight == pytest.approx(case["expected_weight"], abs=1e-9), case["name"]
        assert found.n_matched == len(case["expected_matching"]), case["name"]


@pytest.mark.parametrize("name", ["chain_n1000", "random_n1000_m10000", "sparse_delta_n1004"])
def test_published_dimacs_graphs(name: str) -> None:
    graph = read_graph_file(shared_data(OPTIMA) / f"{name}.edge")
    best = float((shared_data(OPTIMA) / f"{name}.out").read_text().split()[1])
    found = max_weight_matching(graph.n_nodes, graph.edges, graph.weights, "any")
    assert found.weight == best
    assert found.upper_bound == best


def triangle_chain(links: int) -> tuple[int, list[tuple[int, int]]]:
    """Triangles in a row, joined tip to base, with a pendant node at both ends."""
    edges = []
    for k in range(links):
        a, b, c = 3 * k, 3 * k + 1, 3 * k + 2
        edges += [(a, b), (b, c), (a, c)]
        if k:
            edges.append((a - 1, a))
    n = 3 * links
    return n + 2, [*edges, (n, 0), (n + 1, n - 1)]


def nested_triangles(depth: int) -> tuple[int, list[tuple[int, int]]]:
    """A triangle of which one corner is a triangle of which one corner is ..., and a free node."""
    edges = [(0, 1), (1, 2), (0, 2)]
    n = 3
    for _ in range(depth):
        edges += [(n - 1, n), (n, n + 1), (n + 1, n - 3)]
        n += 2
    return n + 1, [*edges, (0, n)]


@pytest.mark.parametrize("build", [triangle_chain, nested_triangles])
@pytest.mark.parametrize("size", [2, 3, 4, 20, 80])
def test_chains_of_blossoms(build, size: int) -> None:  # type: ignore[no-untyped-def]
    n, edges = build(size)
    rng = np.random.default_rng(size)
    for spread in (0, 1, 3, 1000):
        weights = rng.integers(-spread, spread + 1, len(edges))
        graph = nx.Graph()
        for (i, j), weight in zip(edges, weights, strict=True):
            graph.add_edge(i, j, weight=int(weight))
        reference = nx.max_weight_matching(graph, maxcardinality=True)
        if 2 * len(reference) < n:
            with pytest.raises(InfeasibleError):
                max_weight_matching(n, edges, weights)
            continue
        best = sum(graph.edges[pair]["weight"] for pair in reference)
        assert max_weight_matching(n, edges, weights).weight == best


@pytest.mark.parametrize("n", [50, 400])
def test_points_in_the_plane_nest_many_blossoms(n: int) -> None:
    """Shortest pairs of scattered points: deep blossoms that open again level by level."""
    points = np.random.default_rng(n).random((n, 2))
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    distance = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    nearest = np.argsort(distance, axis=1)[:, 1:7]
    for i in range(n):
        for j in nearest[i].tolist():
            graph.add_edge(i, j, weight=-int(1e6 * distance[i, j]))
    for i in range(0, n, 2):
        graph.add_edge(i, i + 1, weight=-int(1e6 * distance[i, i + 1]))
    edges = np.array(graph.edges)
    weights = np.array([graph.edges[edge]["weight"] for edge in graph.edges])
    reference = nx.max_weight_matching(graph, maxcardinality=True)
    best = sum(graph.edges[pair]["weight"] for pair in reference)
    found = max_weight_matching(n, edges, weights)
    assert found.weight == found.upper_bound == best


def test_near_ties_are_told_apart() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        n = 10
        edges = [(i, j) for i in range(n) for j in range(i)]
        steps = rng.integers(0, 4, len(edges))
        weights = 1 + steps * 1e-12
        found = max_weight_matching(n, edges, weights)
        best = best_weight(n, edges, steps.tolist(), perfect=True)
        assert steps[found.edge_indices].sum() == best


def test_a_bipartite_graph_in_disguise_agrees_with_assignment() -> None:
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(2)
    names = rng.permutation(60)
    scores = rng.integers(0, 20, (30, 30))
    edges = [(names[i], names[30 + j]) for i in range(30) for j in range(30)]
    found = max_weight_matching(60, edges, scores.ravel())
    rows, columns = linear_sum_assignment(scores, maximize=True)
    assert found.weight == scores[rows, columns].sum()


def test_two_odd_components_have_an_empty_deficient_set() -> None:
    with pytest.raises(InfeasibleError, match="no perfect matching") as caught:
        max_weight_matching(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], np.ones(6))
    assert caught.value.deficient_set == ()


def test_a_star_names_its_centre() -> None:
    with pytest.raises(InfeasibleError) as caught:
        max_weight_matching(4, [(0, 1), (0, 2), (0, 3)], [1.0, 2.0, 3.0])
    assert caught.value.deficient_set == (0,)


@pytest.mark.parametrize("factor", [1e-300, 1e-12, 1.0, 1e12, 1e298])
def test_huge_and_tiny_weights(factor: float) -> None:
    rng = np.random.default_rng(1)
    edges = [(i, j) for i in range(8) for j in range(i)]
    whole = rng.integers(-9, 10, len(edges))
    found = max_weight_matching(8, edges, whole * factor)
    assert whole[found.edge_indices].sum() == best_weight(8, edges, whole.tolist(), perfect=True)
    assert found.gap <= 1e-14 * abs(found.weight)


def test_adding_a_constant_to_every_edge_keeps_the_perfect_matching() -> None:
    rng = np.random.default_rng(4)
    edges = [(i, j) for i in range(40) for j in range(i)]
    weights = rng.integers(0, 10**6, len(edges))
    first = max_weight_matching(40, edges, weights)
    second = max_weight_matching(40, edges, weights - 10**6)
    assert second.weight == first.weight - 20 * 10**6


def sabotage(monkeypatch: pytest.MonkeyPatch, change) -> None:  # type: ignore[no-untyped-def]
    honest = module.solve_perfect_matching

    def corrupted(start, neighbour, cost, dual, mate):  # type: ignore[no-untyped-def]
        answer = honest(start, neighbour, cost, dual, mate)
        change(dual, mate, answer[1])
        return answer

    monkeypatch.setattr(module, "solve_perfect_matching", corrupted)


def raise_a_dual(dual: np.ndarray, mate: np.ndarray, blossom_dual: np.ndarray) -> None:
    dual[0] += 2


def lower_a_dual(dual: np.ndarray, mate: np.ndarray, blossom_dual: np.ndarray) -> None:
    dual[1] -= 2


def swap_partners(dual: np.ndarray, mate: np.ndarray, blossom_dual: np.ndarray) -> None:
    i, j = 0, int(mate[0])
    k = next(v for v in range(len(mate)) if v not in (i, j))
    m = int(mate[k])
    mate[[i, k, j, m]] = k, i, m, j


def negate_a_blossom(dual: np.ndarray, mate: np.ndarray, blossom_dual: np.ndarray) -> None:
    blossom_dual[len(dual)] = -2


@pytest.mark.parametrize("change", [raise_a_dual, lower_a_dual, swap_partners, negate_a_blossom])
def test_a_corrupted_answer_is_rejected(monkeypatch: pytest.MonkeyPatch, change) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(8) for j in range(i)]
    weights = rng.random(len(edges))
    sabotage(monkeypatch, change)
    with pytest.raises(CertificateError):
        max_weight_matching(8, edges, weights)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((2, [(0, 2)], [1.0]), "edge 0"),
        ((2, [(0, -1)], [1.0]), "edge 0"),
        ((2, [(0, 1)], [np.nan]), "finite"),
        ((2, [(0, 1)], [np.inf]), "entry 0 is inf"),
        ((2, [(0, 1)], [1j]), "real number"),
        ((2, [(0, 1)], [10**400]), "magnitudes"),
        ((2, [(0, 1)], [1.0, 2.0]), "shape"),
        ((2, [(0, 1, 2)], [1.0]), "shape"),
        ((2, [(0.0, 1.0)], [1.0]), "integers"),
        ((2, [(0, 1)], [1e301]), "magnitudes"),
        ((2, [(0, 1)], [1.0], "some"), "kind"),
        ((2, [(0, 1)], [1.0], "b"), "degree"),
        ((2, [(0, 1)], [1.0], "b", [1]), "shape"),
        ((2, [(0, 1)], [1.0], "b", [1, -1]), "0 or more"),
        ((2, [(0, 0)], [1.0], "b", [2, 1]), "itself"),
        ((-1, [], []), "n_nodes"),
    ],
)
def test_malformed_graphs_get_one_sentence(arguments, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidProblemError, match=sentence):
        max_weight_matching(*arguments)


def test_the_empty_graph_has_the_empty_matching() -> None:
    for kind in ("perfect", "any"):
        found = max_weight_matching(0, [], [], kind)  # type: ignore[arg-type]
        assert (found.weight, found.n_matched) == (0.0, 0)


def test_an_odd_number_of_nodes_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="odd"):
        max_weight_matching(3, [(0, 1), (1, 2)], [1.0, 1.0])


def test_numbers_of_numpy_and_ragged_edges() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    assert max_weight_matching(edges.max() + 1, edges, np.ones(3)).weight == 2.0
    with pytest.raises(InvalidProblemError, match="pairs of nodes"):
        max_weight_matching(3, [(0, 1), (1, 2, 0)], [1.0, 1.0])


def test_degrees_that_cannot_be_met_say_so_in_terms_of_the_graph() -> None:
    star = [(0, 1), (0, 2), (0, 3)]
    with pytest.raises(InfeasibleError, match="cannot be met by these edges") as caught:
        max_weight_matching(4, star, [1.0] * 3, "b", [1, 1, 1, 1], exact_degrees=True)
    assert caught.value.deficient_set == ()


def test_degrees_beyond_the_edges_are_refused_before_anything_of_their_size_is_made() -> None:
    with pytest.raises(InfeasibleError, match="999999999 edges are asked for at a node that has 1"):
        max_weight_matching(2, [(0, 1)], [1.0], "b", [999_999_999, 1], exact_degrees=True)
