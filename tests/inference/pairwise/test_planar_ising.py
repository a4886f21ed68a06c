"""Planar Ising models without field, against enumeration; large ones in seconds."""

import itertools

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu
from scipy.spatial import Delaunay

from benchmarks.peers.map_estimates import solve_planar
from engine.core.errors import CertificateError, InvalidProblemError
from engine.graphs.dissection import dissect
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.graphs.planar import cut_faces, faces_of, matching_graph, orient
from engine.inference.factors.map_portfolio import map_estimate
from engine.inference.pairwise.planar_ising import PlanarIsing
from engine.kernels.pfaffian import eliminate, invert_edges
from tests.reference.pairwise_models import as_factor_graph, enumerate_model


def planar_graph(seed: int) -> PairwiseGraph:
    """Some edges of a triangulation of a few random points: bridges, parts and single nodes too."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 11))
    triangles = Delaunay(rng.random((n, 2))).simplices
    pairs = {tuple(sorted(p)) for t in triangles.tolist() for p in itertools.combinations(t, 2)}
    kept = [pair for pair in sorted(pairs) if rng.random() < rng.choice((0.4, 0.7, 1.0))]
    return PairwiseGraph(np.full(n, 2), np.array(kept, dtype=np.int64).reshape(-1, 2))


def couplings(graph: PairwiseGraph, rng: np.random.Generator, strength: float) -> np.ndarray:
    """Scores without a field."""
    nodes = np.repeat(rng.normal(size=graph.n_nodes), 2)
    values = strength * rng.normal(size=(graph.n_edges, 2))
    return np.concatenate([nodes, values[:, [0, 1, 1, 0]].ravel()])


def tied(graph: PairwiseGraph, strength: np.ndarray) -> np.ndarray:
    """Scores of which agreement counts ``strength`` and difference its negative."""
    tables = np.stack([strength, -strength, -strength, strength], axis=1)
    return np.concatenate([np.zeros(2 * graph.n_nodes), tables.ravel()])


def triangulation(n: int, seed: int) -> PairwiseGraph:
    """All edges of a triangulation of random points."""
    triangles = Delaunay(np.random.default_rng(seed).random((n, 2))).simplices
    pairs = np.sort(triangles[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2), axis=1)
    return PairwiseGraph(np.full(n, 2), np.unique(pairs, axis=0).astype(np.int64))


def check_sums(
    graph: PairwiseGraph, scores: np.ndarray, values: np.ndarray, labellings: np.ndarray
) -> None:
    """Log Z and marginals against all labellings and what they are worth."""
    log_z = np.logaddexp.reduce(values)
    answer = PlanarIsing(graph).marginals(scores)
    assert answer.error < 1e-7
    assert answer.log_partition == pytest.approx(log_z, rel=1e-11, abs=1e-9)
    same = labellings[:, graph.edges[:, 0]] == labellings[:, graph.edges[:, 1]]
    np.testing.assert_allclose(answer.agreement, np.exp(values - log_z) @ same, atol=1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_small_models_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    graph = planar_graph(seed)
    scores = couplings(graph, rng, 10.0 ** rng.uniform(-1.0, 1.0))
    values, labellings = enumerate_model(PairwiseModel(graph, scores))
    ising = PlanarIsing(graph)
    best = ising.best(scores)
    assert best.value == pytest.approx(values.max())
    assert best.upper_bound >= values.max()
    assert best.is_exact
    check_sums(graph, scores, values, labellings)


def small_graphs() -> dict[str, PairwiseGraph]:
    ring = np.stack([np.arange(8), (np.arange(8) + 1) % 8], axis=1)
    wheel = np.concatenate([ring, np.stack([np.arange(8), np.full(8, 8)], axis=1)])
    rng = np.random.default_rng(7)
    tree = np.array([[rng.integers(0, v), v] for v in range(1, 9)])
    parts = np.array([[0, 1], [2, 3], [3, 4], [4, 2], [5, 6], [6, 7], [7, 8], [8, 5]])
    edges = {"ring": ring, "wheel": wheel, "tree": tree, "parts": parts}
    graphs = {name: PairwiseGraph(np.full(9, 2), pairs) for name, pairs in edges.items()}
    return graphs | {"grid": Grid(3, 3).to_pairwise(), "triangles": triangulation(9, 3)}


@pytest.mark.parametrize("name", small_graphs())
@pytest.mark.parametrize("strength", [0.1, 1.0, 5.0, 20.0])
def test_ties_cancellations_and_zeros_agree_with_enumeration(name, strength):
    """Equal couplings cancel exactly in elimination; zeros leave rows without large entries."""
    graph = small_graphs()[name]
    rng = np.random.default_rng(5)
    n = graph.n_edges
    labellings = np.array(list(itertools.product((0, 1), repeat=graph.n_nodes)))
    signs = np.where(labellings[:, graph.edges[:, 0]] == labellings[:, graph.edges[:, 1]], 1, -1)
    for sizes in (
        np.ones(n),
        -np.ones(n),
        rng.choice([-1.0, 1.0], n),
        rng.choice([-1.0, 0.0, 1.0], n),
        rng.normal(size=n),
    ):
        values = strength * sizes
        check_sums(graph, tied(graph, values), signs @ values, labellings)


def test_without_couplings_ends_agree_half_of_the_time():
    graph = triangulation(200, 0)
    answer = PlanarIsing(graph).marginals(np.zeros(graph.size))
    np.testing.assert_allclose(answer.agreement, 0.5, atol=1e-12)
    assert answer.log_partition == pytest.approx(200 * np.log(2.0))


def test_flipped_nodes_turn_agreement_into_difference():
    graph = triangulation(300, 1)
    rng = np.random.default_rng(2)
    strength, flips = rng.normal(size=graph.n_edges), rng.choice([-1.0, 1.0], graph.n_nodes)
    turned = flips[graph.edges].prod(axis=1)
    ising = PlanarIsing(graph)
    one, other = (ising.marginals(tied(graph, strength * by)) for by in (1.0, turned))
    assert one.log_partition == pytest.approx(other.log_partition, rel=1e-13)
    expected = np.where(turned > 0.0, one.agreement, 1.0 - one.agreement)
    np.testing.assert_allclose(other.agreement, expected, atol=1e-11)


@pytest.mark.parametrize("ties", [False, True])
def test_selected_inversion_agrees_with_a_solve_for_every_column(ties):
    """With equal entries, which cancel, and with a matrix of random signs."""
    graph = triangulation(80, 4)
    matchings = matching_graph(*cut_faces(faces_of(graph), graph.n_edges))
    order, edges = dissect(matchings), matchings.edges
    normal = np.random.default_rng(6).normal(size=len(edges))
    weights = orient(matchings).astype(np.float64) if ties else normal
    ends = order.inside, order.edge_ends, order.halves
    log_pfaffian, fronts, members, blocks = eliminate(
        edges, weights, order.owner, order.nodes, order.node_ends, *ends
    )
    found = invert_edges(edges, *ends, fronts, members, blocks)
    n = matchings.n_nodes
    matrix = coo_array((weights, (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsc()
    factors = splu((matrix - matrix.T).tocsc())
    inverse = factors.solve(np.eye(n))
    assert 2.0 * log_pfaffian == pytest.approx(np.log(np.abs(factors.U.diagonal())).sum())
    size = np.abs(inverse).max()
    np.testing.assert_allclose(found, inverse[edges[:, 1], edges[:, 0]], atol=1e-10 * size)


def test_sums_that_rounding_has_spoilt_are_refused():
    """A glass of 40 x 8 with couplings of 300: its matrix is singular in this arithmetic."""
    graph = Grid(40, 8).to_pairwise()
    strength = 300.0 * np.random.default_rng(1).choice([-1.0, 1.0], graph.n_edges)
    with pytest.raises(CertificateError, match="too strong"):
        PlanarIsing(graph).log_partition(tied(graph, strength))


def test_marginals_of_a_glass_of_thousands_are_the_derivatives_of_its_sum():
    graph = Grid(60, 60).to_pairwise()
    rng = np.random.default_rng(3)
    strength = rng.choice([-1.0, 1.0], graph.n_edges)
    ising = PlanarIsing(graph)
    answer = ising.marginals(tied(graph, strength))
    assert answer.error < 1e-9
    way = rng.normal(size=graph.n_edges)
    above, below = (ising.log_partition(tied(graph, strength + h * way)) for h in (1e-4, -1e-4))
    slope = float((2.0 * answer.agreement - 1.0) @ way)
    assert (above - below) / 2e-4 == pytest.approx(slope, abs=1e-4)


def test_the_square_lattice_has_onsagers_free_energy_in_the_middle():
    """log Z of an infinite lattice a node at the critical point: log(2)/2 + 2 G / pi."""
    critical = 0.5 * np.log(1.0 + np.sqrt(2.0))

    def log_z(side: int) -> float:
        grid = Grid(side, side)
        scores = grid.zeros()
        scores.horizontal[:] = scores.vertical[:] = critical * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return PlanarIsing(grid.to_pairwise()).log_partition(scores.flat)

    # Boundaries cancel in the second difference of sides 10, 20 and 30, corners nearly.
    bulk = (log_z(30) - 2.0 * log_z(20) + log_z(10)) / 200.0
    assert bulk == pytest.approx(0.5 * np.log(2.0) + 2.0 * 0.915965594 / np.pi, abs=2e-4)


def test_strong_couplings_neither_overflow_nor_lose_the_answer():
    graph = Grid(3, 4).to_pairwise()
    scores = couplings(graph, np.random.default_rng(0), 300.0)
    values, _ = enumerate_model(PairwiseModel(graph, scores))
    ising = PlanarIsing(graph)
    assert ising.log_partition(scores) == pytest.approx(np.logaddexp.reduce(values), rel=1e-9)
    assert ising.best(scores).value == pytest.approx(values.max())


def test_a_spin_glass_of_thousands_is_solved_with_its_proof():
    graph = Grid(50, 50).to_pairwise()
    rng = np.random.default_rng(1)
    scores = couplings(graph, rng, 1.0)
    ising = PlanarIsing(graph)
    best = ising.best(scores)
    assert best.is_exact
    log_z = ising.log_partition(scores)
    assert best.value <= log_z <= best.value + graph.n_nodes * np.log(2.0)


def test_the_benchmark_prints_a_proven_value():
    assert " = " in solve_planar(12)


def test_what_it_cannot_serve_is_refused_by_name():
    complete = PairwiseGraph(np.full(5, 2), np.array(list(itertools.combinations(range(5), 2))))
    with pytest.raises(InvalidProblemError, match="without crossings"):
        PlanarIsing(complete)
    graph = Grid(2, 2).to_pairwise()
    scores = np.zeros(graph.size)
    scores[3] = 1.0
    with pytest.raises(InvalidProblemError, match="node 1 prefers"):
        PlanarIsing(graph).best(scores)
    scores[3] = 0.0
    scores[-1] = 1.0
    with pytest.raises(InvalidProblemError, match="edge 3 changes"):
        PlanarIsing(graph).log_partition(scores)
    with pytest.raises(InvalidProblemError, match="two labels"):
        PlanarIsing(PairwiseGraph(np.full(2, 3), np.array([[0, 1]])))


def test_the_choice_of_an_algorithm_knows_planar_models():
    """Too wide for elimination, and the linear programme leaves a gap."""
    graph = Grid(30, 30).to_pairwise()
    scores = couplings(graph, np.random.default_rng(4), 2.0)
    answer = map_estimate(as_factor_graph(PairwiseModel(graph, scores)))
    assert answer.method == "planar"
    assert answer.is_exact
    assert answer.value == pytest.approx(PlanarIsing(graph).best(scores).value)
