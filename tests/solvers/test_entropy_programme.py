"""Interior points of linear programmes with relative entropies: closed forms and derivatives."""

import numpy as np
import pytest
import scipy

from engine.solvers.entropy_programme import EntropyProgrammeSolver, EntropyTerms


def softmax_problem(costs: np.ndarray, copies: int = 1) -> EntropyProgrammeSolver:
    """Minimise costs x + sum x log x over the simplex, the one equation written several times."""
    n = len(costs)
    terms = EntropyTerms(costs, np.ones(n), np.arange(n), np.full(n, n))
    rows = scipy.sparse.csr_array(np.ones((copies, n)))
    return EntropyProgrammeSolver(terms, rows, np.ones(copies), np.full(n, 0.3))


@pytest.mark.parametrize("strength", [0.1, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_simplex_has_its_softmax(strength, copies):
    costs = strength * np.random.default_rng(0).normal(size=7)
    solver = softmax_problem(costs, copies)
    for _ in range(40):
        if solver.point @ solver._slack < 1e-13 or not solver.step():
            break
    assert solver.infeasibility < 1e-9
    best = -np.logaddexp.reduce(-costs)
    assert solver.terms.value(solver.point) == pytest.approx(best, rel=1e-9, abs=1e-9)
    expected = np.exp(-costs + best)
    np.testing.assert_allclose(solver.point, expected, atol=1e-8)


def test_derivatives_are_those_of_differences():
    rng = np.random.default_rng(1)
    n = 5
    first, second = np.array([0, 1, 2, 3, 4, 0]), np.array([1, 2, 5, 4, 5, 2])
    terms = EntropyTerms(rng.normal(size=n), rng.random(6) + 0.1, first, second)
    x, step = rng.random(n) + 0.2, 1e-6
    moves = step * np.eye(n)
    slopes = [(terms.value(x + m) - terms.value(x - m)) / (2 * step) for m in moves]
    np.testing.assert_allclose(terms.gradient(x), slopes, atol=1e-7)
    diagonal, mixed = terms.curvature(x)
    hessian = np.diag(diagonal)
    for a, b, value in zip(first, second, mixed, strict=True):
        if b < n:
            hessian[a, b] += value
            hessian[b, a] += value
    rows = [(terms.gradient(x + m) - terms.gradient(x - m)) / (2 * step) for m in moves]
    np.testing.assert_allclose(hessian, rows, atol=1e-6)
    assert np.linalg.eigvalsh(hessian).min() > -1e-12


def test_equations_without_a_solution_end_without_a_point():
    solver = softmax_problem(np.zeros(3), 2)
    solver._right = np.array([1.0, 2.0])
    for _ in range(30):
        if not solver.step():
            break
    assert solver.infeasibility > 0.1
    assert np.isfinite(solver.point).all()
