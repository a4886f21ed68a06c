"""Factors of saddle matrices and of matrices with a core, against dense solves."""

import numpy as np
import pytest
import scipy

from engine.solvers import core_factors, saddle_factors
from engine.solvers.core_factors import CoreFactors, plan_elimination
from engine.solvers.saddle_factors import SaddleFactors, plan_saddle


def sparse(matrix: np.ndarray) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(matrix)


@pytest.mark.parametrize("seed", range(6))
def test_a_core_is_solved_as_the_whole(seed, monkeypatch):
    monkeypatch.setattr(core_factors, "COLUMNS", 3)
    rng = np.random.default_rng(seed)
    n = 60
    root = scipy.sparse.random_array((n, n), density=0.04, rng=rng).toarray()
    matrix = root @ root.T + np.diag(rng.random(n) + 0.1)
    plan = plan_elimination(sparse(matrix), np.arange(n), np.ones(n))
    assert sorted([*plan.first, *plan.core]) == list(range(n))
    assert len(plan.core) > 5
    right = rng.normal(size=n)
    found = CoreFactors(sparse(matrix), plan).solve(right)
    np.testing.assert_allclose(matrix @ found, right, atol=1e-9)


def test_a_core_may_be_indefinite_but_not_singular():
    matrix = np.ones((3, 3)) - 2.0 * np.eye(3)
    plan = plan_elimination(sparse(np.ones((3, 3))), np.arange(3), np.ones(3))
    assert len(plan.core) == 3
    found = CoreFactors(sparse(matrix), plan).solve(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(matrix @ found, [1.0, 2.0, 3.0], atol=1e-12)
    with pytest.raises(RuntimeError, match="singular"):
        CoreFactors(sparse(np.ones((3, 3))), plan)


def test_an_order_that_takes_too_much_work_is_infinitely_far():
    pattern = sparse(np.ones((9, 9)))
    assert plan_elimination(pattern, np.arange(9), np.ones(9)).multiplications == 243.0
    assert plan_elimination(pattern, np.arange(9), np.ones(9), 242.0).multiplications == np.inf


def saddle(seed: int, n_inner: int = 12) -> tuple[np.ndarray, int]:
    """H, blocks of one to three rows, and two equations of inner variables alone."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_inner, n_inner)) * (rng.random((n_inner, n_inner)) < 0.2)
    sizes = [1, 3, 2, 3, 1]
    blocks = [m @ m.T + 0.1 * np.eye(len(m)) for m in (rng.normal(size=(s, s)) for s in sizes)]
    across = rng.normal(size=(sum(sizes), n_inner)) * (rng.random((sum(sizes), n_inner)) < 0.3)
    equations = np.zeros((2, n_inner))
    equations[0, :4], equations[1, 3:8] = 1.0, 2.0  # share variable 3
    below = np.vstack([across[:4], equations, across[4:]])
    square = scipy.linalg.block_diag(*blocks)
    square = np.insert(np.insert(square, 4, np.zeros((2, 1)), 0), 4, np.zeros((2, 1)), 1)
    top = np.hstack([root @ root.T + 0.1 * np.eye(n_inner), below.T])
    return np.vstack([top, np.hstack([below, -square])]), n_inner


@pytest.mark.parametrize("has_core", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_saddles_are_solved_from_the_inside_out(seed, has_core, monkeypatch):
    if has_core:
        monkeypatch.setattr(core_factors, "LISTS_ALONE", 0.0)
        monkeypatch.setattr(core_factors, "BESIDE", 0.0)
    matrix, n = saddle(seed)
    plan = plan_saddle(sparse(np.abs(matrix)), n)
    assert plan.sizes == [(1, 2), (2, 1), (3, 2)]
    assert plan.fixed.tolist() == [4, 5]
    assert plan.owner.tolist() == [0, 0, 0, -1, 1, 1, 1, 1, -1, -1, -1, -1]
    rng = np.random.default_rng(seed)
    lifted = 0.1 * rng.random(len(matrix) - n)
    factors = SaddleFactors(sparse(matrix), lifted, plan, rng.random(n))
    right = rng.normal(size=len(matrix))
    found = factors.solve(right)
    lifted[plan.fixed] = 0.0
    whole = matrix - np.diag(np.concatenate([np.zeros(n), lifted]))
    np.testing.assert_allclose(whole @ found, right, atol=1e-9)


def test_what_does_not_fall_apart_has_no_plan(monkeypatch):
    matrix, n = saddle(0)
    matrix[n + 4, :3] = matrix[:3, n + 4] = 0.0  # what is left of it is in the other one, too
    assert plan_saddle(sparse(np.abs(matrix)), n) is None
    monkeypatch.setattr(saddle_factors, "LARGEST_BLOCK", 2)
    assert plan_saddle(sparse(np.abs(saddle(0)[0])), n) is None


def test_a_singular_block_is_refused():
    matrix, n = saddle(0)
    plan = plan_saddle(sparse(np.abs(matrix)), n)
    first = n + plan.rows[-3:]
    matrix[np.ix_(first, first)] = -1.0
    with pytest.raises(RuntimeError, match="singular"):
        SaddleFactors(sparse(matrix), np.zeros(len(matrix) - n), plan, np.ones(n))


def test_a_saddle_needs_no_equations_of_inner_variables_alone():
    matrix, n = saddle(1)
    kept = np.delete(np.arange(len(matrix)), [n + 4, n + 5])
    matrix = matrix[np.ix_(kept, kept)]
    plan = plan_saddle(sparse(np.abs(matrix)), n)
    factors = SaddleFactors(sparse(matrix), np.zeros(len(matrix) - n), plan, np.ones(n))
    right = np.random.default_rng(1).normal(size=len(matrix))
    np.testing.assert_allclose(matrix @ factors.solve(right), right, atol=1e-9)
