"""Reweighted messages on grids: bounds against enumeration, feasibility, honesty about limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.graphs.grid import Grid, GridTables
from engine.inference.pairwise.grid_tree_reweighted import GridTreeReweighted
from tests.reference.pairwise_models import exact_log_partition, infeasibility


def random_scores(grid: Grid, seed: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=grid.size) * scale


@settings(max_examples=30)
@given(
    shape=st.sampled_from([(1, 1), (1, 6), (5, 1), (2, 2), (3, 4), (4, 3)]),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.1, 1.0, 5.0]),
    iterations=st.sampled_from([1, 2, 3, 10]),
    rho=st.sampled_from([0.5, 0.4]),
    damping=st.sampled_from([0.0, 0.3]),
)
def test_the_upper_bound_holds_from_the_first_iteration_on(
    shape, seed, scale, iterations, rho, damping
):
    grid = Grid(*shape)
    scores = random_scores(grid, seed, scale)
    log_z, _ = exact_log_partition(grid, scores)
    answer = GridTreeReweighted(grid, rho).solve(scores, max_iterations=iterations, damping=damping)
    assert answer.upper_bound >= log_z - 1e-9 * abs(log_z)
    assert answer.upper_bound >= answer.log_partition - 1e-9 * abs(log_z)
    assert infeasibility([2] * grid.n_nodes, grid.edges(), answer.tables) < 1e-12


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_both_sides_meet_at_convergence(seed, damping):
    grid = Grid(6, 7)
    answer = GridTreeReweighted(grid).solve(
        random_scores(grid, seed), tolerance=1e-12, damping=damping
    )
    assert answer.status is Status.CONVERGED
    assert abs(answer.dual_gap) < 1e-9
    assert answer.change < 1e-10


@pytest.mark.parametrize(("rho", "scale"), [(0.5, 2.0), (0.4, 1.0), (1.0, 0.4)])
def test_damped_messages_converge_to_the_same_point(rho, scale):
    """Loopy propagation (rho = 1) too, where couplings are weak and the fixed point is unique."""
    grid = Grid(6, 5)
    scores = random_scores(grid, 7, scale)
    one, two = (
        GridTreeReweighted(grid, rho).solve(scores, tolerance=1e-12, damping=damping)
        for damping in (0.0, 0.3)
    )
    assert one.is_converged
    assert two.is_converged
    early = GridTreeReweighted(grid, rho).solve(scores, max_iterations=1)
    assert np.abs(early.tables - one.tables).max() > 1e-3  # there was a way to go
    np.testing.assert_allclose(two.tables, one.tables, atol=1e-8)
    assert two.log_partition == pytest.approx(one.log_partition, abs=1e-8)
    assert (one.upper_bound is None) == (rho == 1.0)


def test_the_first_iterations_match_the_update_written_out():
    """One sequential iteration, message by message, from equation 18 of Domke 2013."""
    grid = Grid(3, 4)
    scores = GridTables(grid, random_scores(grid, 5))
    rho = 0.5
    edges = [(int(i), int(j)) for i, j in grid.edges()]
    tables = np.concatenate(
        [scores.horizontal.reshape(-1, 2, 2), scores.vertical.reshape(-1, 2, 2)]
    )
    unary = scores.nodes.reshape(-1, 2)
    messages = {(e, end): np.zeros(2) for e in range(len(edges)) for end in (0, 1)}

    def belief(node):
        total = unary[node].copy()
        for e, ends in enumerate(edges):
            for end in (0, 1):
                if ends[end] == node:
                    total += rho * messages[e, end]
        return total

    def send(e, end):
        source = belief(edges[e][1 - end]) - messages[e, 1 - end]
        table = tables[e] / rho if end == 1 else tables[e].T / rho
        new = np.logaddexp.reduce(table + source[:, None], axis=0)
        messages[e, end] = new - new[0]

    for node in range(grid.n_nodes):
        for e, ends in enumerate(edges):
            if ends[0] == node:
                send(e, 1)
    for node in reversed(range(grid.n_nodes)):
        for e, ends in enumerate(edges):
            if ends[1] == node:
                send(e, 0)
    expected = np.array([np.exp(b - np.logaddexp.reduce(b)) for b in map(belief, range(12))])
    answer = GridTreeReweighted(grid, rho).solve(scores.flat, max_iterations=1)
    nodes = GridTables(grid, answer.tables).nodes.reshape(-1, 2)
    np.testing.assert_allclose(nodes, expected, atol=1e-13)
    assert answer.status is Status.ITERATION_LIMIT


def test_chains_are_exact_for_rho_one():
    grid = Grid(1, 9)
    scores = random_scores(grid, 2)
    log_z, marginals = exact_log_partition(grid, scores)
    answer = GridTreeReweighted(grid, 1.0).solve(scores)
    assert answer.log_partition == pytest.approx(log_z, abs=1e-9)
    np.testing.assert_allclose(answer.tables, marginals, atol=1e-9)
    assert answer.upper_bound is None


def test_a_certified_gap_stops_early_and_a_warm_start_earlier_still():
    grid = Grid(30, 30)
    scores = random_scores(grid, 0)
    solver = GridTreeReweighted(grid)
    first = solver.solve(scores, accuracy=1e-3, tolerance=0.0)
    assert first.is_converged
    assert 0 <= first.dual_gap + 1e-12 <= 1e-3 + 1e-12
    again = solver.solve(scores * 1.001, accuracy=1e-3, tolerance=0.0, warm=True)
    assert again.iterations <= first.iterations
    exact = GridTreeReweighted(grid).solve(scores, tolerance=1e-13)
    assert first.log_partition <= exact.upper_bound + 1e-9 <= first.upper_bound + 2e-9


def test_labels_can_be_swapped():
    grid = Grid(4, 5)
    scores = GridTables(grid, random_scores(grid, 4))
    flipped = grid.tables(
        scores.nodes[..., ::-1],
        scores.horizontal[..., ::-1, ::-1],
        scores.vertical[..., ::-1, ::-1],
    )
    one = GridTables(grid, GridTreeReweighted(grid).solve(scores.flat).tables)
    two = GridTables(grid, GridTreeReweighted(grid).solve(flipped.flat).tables)
    np.testing.assert_allclose(one.nodes, two.nodes[..., ::-1], atol=1e-7)
    np.testing.assert_allclose(one.vertical, two.vertical[..., ::-1, ::-1], atol=1e-7)


def test_an_iteration_limit_never_reads_as_converged():
    grid = Grid(8, 8)
    answer = GridTreeReweighted(grid).solve(random_scores(grid, 1), max_iterations=2)
    assert answer.status is Status.ITERATION_LIMIT
    assert not answer.is_converged
    assert answer.iterations == 2


@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_scores_beyond_the_range_of_ratios_are_solved_in_logarithms(scale):
    grid = Grid(3, 4)
    scores = random_scores(grid, 0, scale)
    log_z, _ = exact_log_partition(grid, scores)
    answer = GridTreeReweighted(grid).solve(scores)
    assert np.isfinite(answer.tables).all()
    assert answer.upper_bound >= log_z - 1e-9 * abs(log_z)
    assert infeasibility([2] * 12, grid.edges(), answer.tables) < 1e-9


def test_large_scores_are_served_without_a_bound_where_rho_has_none():
    grid = Grid(3, 3)
    answer = GridTreeReweighted(grid, 0.8).solve(random_scores(grid, 0, 300.0), damping=0.2)
    assert answer.upper_bound is None
    assert np.isfinite(answer.tables).all()


@pytest.mark.parametrize("unary", [3.0, 25.0, -10.0])
def test_margins_of_exactly_zero_or_one_have_tables(unary):
    """Strong attraction on top of them once ended in a division of zero by zero."""
    grid = Grid(20, 20)
    scores = grid.zeros()
    scores.nodes[..., 1] = unary
    scores.horizontal[:] = scores.vertical[:] = 10.0 * np.eye(2)
    answer = GridTreeReweighted(grid).solve(scores.flat)
    assert answer.is_converged
    assert abs(answer.dual_gap) < 1e-9 * answer.upper_bound
    assert infeasibility([2] * grid.n_nodes, grid.edges(), answer.tables) < 1e-12


@pytest.mark.parametrize("rho", [0.05, 0.2, 0.5])
def test_four_messages_do_not_overflow_before_they_are_raised_to_a_small_power(rho):
    """They became infinite, then no numbers, which counted as messages at rest."""
    grid = Grid(5, 5)
    spread, unary = 149.0, 599.0 - 149.0 * (4.0 * rho + 2.0)
    scores = grid.zeros()
    scores.horizontal[:] = scores.vertical[:] = spread * rho * np.array([[0.5, -0.5], [-0.5, 0.5]])
    scores.nodes[..., 1] = min(unary, 199.0)
    answer = GridTreeReweighted(grid, rho).solve(scores.flat)
    assert answer.is_converged
    assert abs(answer.dual_gap) < 1e-9 * answer.upper_bound
    assert infeasibility([2] * grid.n_nodes, grid.edges(), answer.tables) < 1e-9


def test_messages_that_are_no_numbers_never_come_to_rest():
    grid = Grid(3, 3)
    solver = GridTreeReweighted(grid)
    solver._messages[:] = np.nan
    answer = solver.solve(random_scores(grid, 0), warm=True, max_iterations=5)
    assert not answer.is_converged


@pytest.mark.parametrize(("unary", "coupling"), [(590.0, 0.1), (400.0, -20.0), (-590.0, 0.1)])
def test_large_unaries_have_a_finite_bound(unary, coupling):
    grid = Grid(2, 3)
    scores = grid.zeros()
    scores.nodes[..., 1] = unary
    scores.horizontal[:] = scores.vertical[:] = 0.5 * coupling * np.eye(2)
    log_z, _ = exact_log_partition(grid, scores.flat)
    assert GridTreeReweighted(grid).solve(scores.flat).upper_bound == pytest.approx(log_z)


@pytest.mark.parametrize("rho", [1.0, 0.8])
def test_large_scores_on_a_single_cycle_have_no_bound_either(rho):
    grid = Grid(2, 2)
    scores = random_scores(grid, 0, 300.0)
    answer = GridTreeReweighted(grid, rho).solve(scores, damping=0.2)
    assert answer.lower_bound is None
    assert answer.upper_bound is None


def test_it_refuses_what_it_cannot_do():
    grid = Grid(2, 2)
    with pytest.raises(InvalidProblemError, match="not a finite"):
        GridTreeReweighted(grid).solve(np.full(grid.size, np.nan))
    with pytest.raises(InvalidProblemError, match="rho"):
        GridTreeReweighted(grid, 0.0)
    with pytest.raises(InvalidProblemError, match="two labels"):
        GridTreeReweighted(Grid(2, 2, 3))
