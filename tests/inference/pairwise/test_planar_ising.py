"""Planar Ising models without field, against enumeration; large ones in seconds."""

import itertools

import numpy as np
import pytest
from scipy.spatial import Delaunay

from benchmarks.map_estimates import solve_planar
from engine.core.errors import InvalidProblemError
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.factors.map_portfolio import map_estimate
from engine.inference.pairwise.planar_ising import PlanarIsing
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
    log_z = np.logaddexp.reduce(values)
    assert ising.log_partition(scores) == pytest.approx(log_z, abs=1e-9)
    answer = ising.marginals(scores)
    assert answer.error < 1e-7
    same = labellings[:, graph.edges[:, 0]] == labellings[:, graph.edges[:, 1]]
    np.testing.assert_allclose(answer.agreement, np.exp(values - log_z) @ same, atol=1e-7)


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
