"""Tree-reweighted inference on grids: bounds, feasibility and what they are bounds of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from engine.core.errors import InvalidProblemError, StoppedError
from engine.crf.grid_features import GridExample
from engine.entropies.pairwise import grid_entropy
from engine.graphs.grid import Grid
from engine.objectives.grid_chains import GridChains
from engine.objectives.grid_inner import GridSetInnerProblem
from engine.solvers.iterate import find_direction
from engine.structures.grid import GridStructure
from tests.reference.tiny_grids import all_statistics, tiny_example


def solve(example: GridExample, theta: np.ndarray, rho: float = 0.5, accuracy: float = 1e-9):
    problem = GridSetInnerProblem([example], rho)
    problem.maximise(theta, None, accuracy)  # the first settles for less
    return problem.maximise(theta, None, accuracy)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 3.0), rho=st.sampled_from([0.5, 0.3]))
def test_bound_is_above_log_z_and_point_below_the_bound(
    seed: int, scale: float, rho: float
) -> None:
    rng = np.random.default_rng(seed)
    example = tiny_example(rng)
    theta = scale * rng.normal(size=example.features.n_parameters)
    log_z = np.logaddexp.reduce(all_statistics(example.features) @ theta)
    chains = GridChains(example.features, rho, theta)
    bounds = []
    for _ in range(6):
        chains.sweep(1)
        bounds.append(chains.upper_bound())
        statistics, entropy = chains.summarise(chains.marginals())
        assert bounds[-1] >= theta @ statistics + entropy - 1e-9
        assert bounds[-1] >= log_z - 1e-9
    assert bounds[-1] <= bounds[0] + 1e-9


def test_a_chain_is_exact_when_its_edges_are_certain() -> None:
    """On a single row every edge would deserve weight 1; rho = 1/2 must lie above log Z."""
    rng = np.random.default_rng(0)
    example = tiny_example(rng, rows=1, columns=7)
    theta = rng.normal(size=example.features.n_parameters)
    solution = solve(example, theta)
    log_z = np.logaddexp.reduce(all_statistics(example.features) @ theta)
    assert solution.log_partition > log_z
    assert solution.log_partition < log_z + 7 * np.log(2)


def test_without_coupling_everything_is_exact() -> None:
    rng = np.random.default_rng(1)
    example = tiny_example(rng)
    theta = rng.normal(size=example.features.n_parameters)
    theta[6:] = 0.0
    table = all_statistics(example.features)
    log_z = np.logaddexp.reduce(table @ theta)
    expected = np.exp(table @ theta - log_z) @ table
    solution = solve(example, theta)
    assert solution.log_partition == pytest.approx(log_z, abs=1e-9)
    assert_allclose(solution.statistics, expected, atol=1e-9)


@pytest.mark.parametrize("rho", [0.5, 0.35])
def test_statistics_are_the_gradient_of_the_bound(rho: float) -> None:
    rng = np.random.default_rng(2)
    example = tiny_example(rng)
    theta = rng.normal(size=example.features.n_parameters)
    direction = rng.normal(size=len(theta))
    step = 1e-5
    ends = [solve(example, theta + s * direction, rho).log_partition for s in (step, -step)]
    slope = (ends[0] - ends[1]) / (2 * step)
    assert slope == pytest.approx(solve(example, theta, rho).statistics @ direction, abs=1e-5)


def test_pseudomarginals_lie_in_the_local_polytope_at_any_sweep() -> None:
    rng = np.random.default_rng(3)
    example = tiny_example(rng, rows=5, columns=6)
    chains = GridChains(example.features, 0.5, 4 * rng.normal(size=14))
    for _ in range(3):
        chains.sweep(1)
        nodes = chains.marginals()
        horizontal, vertical = chains.edge_marginals(nodes)
        assert min(horizontal.min(), vertical.min(), nodes.min()) >= 0.0
        assert_allclose(horizontal[:, :, 1].sum(axis=2), nodes[:, :-1], atol=1e-12)
        assert_allclose(horizontal[:, :, :, 1].sum(axis=2), nodes[:, 1:], atol=1e-12)
        assert_allclose(vertical[:, :, 1].sum(axis=2), nodes[:-1], atol=1e-12)
        assert_allclose(vertical.sum(axis=(2, 3)), 1.0, atol=1e-12)


def test_frank_wolfe_block_sees_the_same_entropy_and_statistics() -> None:
    rng = np.random.default_rng(4)
    example = tiny_example(rng, rows=4, columns=5)
    chains = GridChains(example.features, 0.5, rng.normal(size=14))
    chains.sweep(3)
    nodes = chains.marginals()
    horizontal, vertical = chains.edge_marginals(nodes)
    point = np.concatenate(
        [np.stack([1 - nodes, nodes], axis=2).ravel(), horizontal.ravel(), vertical.ravel()]
    )
    statistics, entropy = chains.summarise(nodes)
    block = GridStructure([example], 0.5)
    assert block.entropy.value(point) == pytest.approx(entropy, abs=1e-10)
    assert_allclose(block.statistics(point), statistics, atol=1e-10)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_frank_wolfe_gap_bounds_the_true_suboptimality(seed: int) -> None:
    rng = np.random.default_rng(seed)
    example = tiny_example(rng)
    theta = 1.5 * rng.normal(size=example.features.n_parameters)
    best = solve(example, theta).log_partition
    block = GridStructure([example], 0.5)
    point = block.start
    for t in range(1, 15):
        value = theta @ block.statistics(point) + block.entropy.value(point)
        direction = find_direction(block, theta, point)
        assert direction.gap >= best - value - 1e-6
        assert_allclose(direction.statistics, block.statistics(direction.vertex), atol=1e-9)
        direction.vertex.move(point, 2 / (t + 2))
    value = theta @ block.statistics(point) + block.entropy.value(point)
    assert value <= best + 1e-6


def test_entropy_along_a_segment_has_the_right_derivatives() -> None:
    rng = np.random.default_rng(5)
    example = tiny_example(rng, rows=4, columns=4)
    block = GridStructure([example], 0.4)
    point = block.start
    vertex = find_direction(block, rng.normal(size=14), point).vertex
    along = block.entropy.along(point, vertex)
    step, small = 0.37, 1e-6
    above, below = along(step + small), along(step - small)
    value, slope, curvature = along(step)
    assert slope == pytest.approx((above[0] - below[0]) / (2 * small), rel=1e-6)
    assert curvature == pytest.approx((above[1] - below[1]) / (2 * small), rel=1e-5)
    assert curvature < 0
    vertex.move(point, step)
    assert block.entropy.value(point) == pytest.approx(value, rel=1e-12)


def test_the_entropy_without_coefficients_is_that_with_them() -> None:
    rng = np.random.default_rng(6)
    block = GridStructure([tiny_example(rng, rows=4, columns=3)], 0.3)
    point = block.start
    find_direction(block, rng.normal(size=14), point).vertex.move(point, 0.4)
    plain = grid_entropy(Grid(4, 3), 0.3)
    assert block.entropy.value(point) == pytest.approx(plain.value(point), rel=1e-12)
    assert_allclose(block.entropy.gradient(point), plain.gradient(point), atol=1e-12)


def test_extreme_scores_keep_the_bound_a_bound() -> None:
    rng = np.random.default_rng(6)
    example = tiny_example(rng)
    theta = 400 * rng.normal(size=example.features.n_parameters)
    chains = GridChains(example.features, 0.5, theta)
    chains.sweep(20)
    best = (all_statistics(example.features) @ theta).max()
    assert np.isfinite(chains.upper_bound())
    assert chains.upper_bound() >= best - 1e-6 * abs(best)
    assert np.isfinite(chains.marginals()).all()


def test_learned_curvature_reproduces_the_last_change() -> None:
    rng = np.random.default_rng(7)
    example = tiny_example(rng, rows=6, columns=6)
    problem = GridSetInnerProblem([example], 0.5)
    theta = 0.3 * rng.normal(size=14)
    following = theta + 0.05 * rng.normal(size=14)
    problem.maximise(theta, None, 1e-10)
    first = problem.maximise(theta, None, 1e-10).statistics
    second = problem.maximise(following, None, 1e-10).statistics
    matrix = problem.learned_curvature()
    assert_allclose(matrix @ (following - theta), second - first, rtol=1e-6, atol=1e-8)


def test_rho_above_one_half_is_refused() -> None:
    example = tiny_example(np.random.default_rng(8))
    for rho in (0.0, 0.6, 1.0, float("nan")):
        with pytest.raises(InvalidProblemError, match=r"above 0 and at most 0\.5"):
            GridSetInnerProblem([example], rho)


def test_a_stop_is_heard_between_pictures() -> None:
    example = tiny_example(np.random.default_rng(9))
    problem = GridSetInnerProblem([example], 0.5, should_stop=lambda: True)
    with pytest.raises(StoppedError):
        problem.maximise(np.zeros(14), None, 1.0)
