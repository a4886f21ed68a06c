"""Primal-dual interior-point solver for linear programmes with relative entropies.

    min costs x + sum_t weight_t x_a log(x_a / x_b)     rows x = right,  x > 0

Tree-reweighted problems of pairwise models are of this kind (`engine.inference.pairwise`). This is
not the barrier loop of matchings and assignments (`engine.solvers.barrier`), nor a polytope of it:

- curvature: a term couples x_a and x_b, so that the Hessian is no diagonal. The barrier loop takes
  one rate an entry, and what is left to solve are sums at nodes and in sets. Here the inner
  variables stay in a sparse saddle-point matrix beside the multipliers.
- constraints: any sparse equations, dependent ones too, from a start that violates them. The
  barrier loop starts inside a polytope of degrees, adds odd sets during the search, and may learn
  the weights at the same time; none of this occurs here.
- barrier: a second solve with the same factors predicts how far it may fall (Mehrotra); in the
  barrier loop it falls by one factor after each nearly full step.
- bound: the caller turns the multipliers into messages, whose bound needs no point. There the
  polytope bounds its own optimum.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # submodules load when first used: a command that solves no programme starts faster

from engine.core.arguments import FloatArray, IntArray
from engine.core.tolerances import TOLERANCES
from engine.solvers.core_factors import Factors, factorise
from engine.solvers.saddle_factors import SaddleFactors, plan_saddle

FIRST_BARRIER = 0.1  # share of the largest slope at the start, times the mean entry
LEAST_CUT = 0.02  # smallest factor of the barrier in one step
# While slopes are further below 0 than this, the barrier is at most halved: where entries fall
# towards exp(-1000), a step changes their logarithms by only a few nats.
SHORTFALL, SLOW_CUT = 0.1, 0.5
LONG_STEP = 0.9  # a shorter step, far from the optimum, has not met the slopes yet
# Share of its own size subtracted from the pivot of each equation: some equations depend on others,
# and their pivots would be rounding errors.
REGULARISED = 1e-14
# Rows^3 over this predicts the multiplications without a plan: some seconds for 30,000 rows.
UNPLANNED = 540.0
REFINEMENTS = 2  # of the factors' solutions, which lose digits near nearly integral points
CORRECTIONS, EXACT = 10, 1e-14  # maximum corrections of a direction, and the error that needs none


@dataclass(frozen=True, slots=True, eq=False)
class EntropyTerms:
    """Convex function costs x + sum_t weight_t x_a log(x_a / x_b) over x > 0.

    Parameters
    ----------
    costs : ndarray, shape (n,)
    weights : ndarray, one number above 0 a term.
    first, second : ndarray of int, a and b of each term; b = n stands for the number 1.

    Examples
    --------
    >>> terms = EntropyTerms(np.zeros(2), np.ones(1), np.array([0]), np.array([1]))
    >>> terms.gradient(np.array([2.0, 2.0])).tolist()
    [1.0, -1.0]
    """

    costs: FloatArray
    weights: FloatArray
    first: IntArray
    second: IntArray

    def value(self, x: FloatArray) -> float:
        """Return the function at x."""
        upper, lower = self._ends(x)
        return float(self.costs @ x + (self.weights * upper) @ np.log(upper / lower))

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the function's gradient, shape (n,)."""
        upper, lower = self._ends(x)
        slopes = self.weights * (np.log(upper / lower) + 1.0)
        return self.costs + self._gather(slopes, -self.weights * upper / lower)

    def curvature(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the diagonal of the Hessian, and the entry (a, b) that each term adds."""
        upper, lower = self._ends(x)
        diagonal = self._gather(self.weights / upper, self.weights * upper / lower**2)
        return diagonal, -self.weights / lower

    def _ends(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        extended = np.append(x, 1.0)
        return extended[self.first], extended[self.second]

    def _gather(self, at_first: FloatArray, at_second: FloatArray) -> FloatArray:
        length = len(self.costs) + 1
        total = np.bincount(self.first, at_first, minlength=length)
        total = total + np.bincount(self.second, at_second, minlength=length)
        return np.asarray(total[:-1], dtype=np.float64)


class EntropyProgrammeSolver:
    """Minimiser of `EntropyTerms` over x > 0 with rows x = right, one Newton step a call.

    Mehrotra's predictor chooses the barrier. The start need not satisfy the equations.

    Parameters
    ----------
    terms : EntropyTerms
    rows : sparse array, shape (m, n); linearly dependent rows are allowed.
    right : ndarray, shape (m,)
    start : ndarray, shape (n,), above 0.
    most_work : float, multiplications of a step beyond which ``work`` is infinite.

    Notes
    -----
    Variables that are no b have a diagonal Hessian and are eliminated first, then the remains of
    equations of few variables (`SaddleFactors`). A step factorises one matrix with one row for each
    different b, less one for each equation of theirs.

    References
    ----------
    Mehrotra 1992; Nesterov and Nemirovskii 1994, 5.3 (entropies beside the logarithmic barrier).
    """

    def __init__(
        self,
        terms: EntropyTerms,
        rows: "scipy.sparse.csr_array",
        right: FloatArray,
        start: FloatArray,
        most_work: float = np.inf,
    ) -> None:
        """Store the problem, and choose a barrier that fits its slopes."""
        self.terms, self.point, self.multipliers = terms, start.copy(), np.zeros(len(right))
        self._rows, self._right, self._squares = rows, right, rows.power(2)
        steepest = max(1.0, float(np.abs(terms.gradient(start)).max()))
        self._slack = FIRST_BARRIER * steepest * float(start.mean()) / start
        self._length = 0.0
        n = len(start)
        is_second = np.zeros(n + 1, dtype=bool)
        is_second[terms.second] = True
        self._inner, self._outer = np.flatnonzero(is_second[:n]), np.flatnonzero(~is_second[:n])
        columns = rows.tocsc()
        self._inner_rows, self._outer_rows = columns[:, self._inner], columns[:, self._outer]
        self._place = np.zeros(n + 1, dtype=np.int64)
        self._place[self._inner] = np.arange(len(self._inner))
        self._place[self._outer] = np.arange(len(self._outer))
        self._is_inner = is_second
        self._is_mixed = terms.second < n
        square, below = self._joined(np.ones(len(terms.second)), np.ones(n))
        blocks = _saddle(square, abs(self._inner_rows))
        pattern = blocks + abs(below) @ abs(below).T
        self._plan = plan_saddle(pattern, len(self._inner), most_work)

    @property
    def work(self) -> float:
        """Predicted multiplications of a step's factorisation."""
        if self._plan is None:
            return float(len(self._inner) + len(self._right)) ** 3 / UNPLANNED
        return self._plan.elimination.multiplications

    @property
    def infeasibility(self) -> float:
        """Largest error of an equation."""
        return float(np.abs(self._rows @ self.point - self._right).max(initial=0.0))

    def _joined(self, mixed: FloatArray, diagonal: FloatArray) -> tuple[Any, Any]:
        """Return the Hessian of the inner variables, and the rows below the outer ones' diagonal.

        ``mixed`` has the Hessian's entry (a, b) of each term, ``diagonal`` the Hessian's diagonal.
        """
        terms, place, sparse = self.terms, self._place, scipy.sparse
        a, b = terms.first[self._is_mixed], terms.second[self._is_mixed]
        values, both = mixed[self._is_mixed], self._is_inner[a]
        n_inner, n_outer = len(self._inner), len(self._outer)
        coupled = sparse.csr_array(
            (values[~both], (place[b[~both]], place[a[~both]])), shape=(n_inner, n_outer)
        )
        rows, columns = place[b[both]], place[a[both]]
        square = sparse.csr_array(
            (np.tile(values[both], 2), (np.append(rows, columns), np.append(columns, rows))),
            shape=(n_inner, n_inner),
        ) + sparse.diags_array(diagonal[self._inner])
        return square, sparse.vstack([coupled, self._outer_rows], format="csr")

    def step(self) -> bool:
        """Take one step; return False, and change nothing, if floating point allows no step."""
        x, slack = self.point, self._slack
        slopes = self.terms.gradient(x) + self._rows.T @ self.multipliers
        missing = self._right - self._rows @ x
        barrier = float(x @ slack) / len(x)
        with np.errstate(all="ignore"):
            try:
                system = _NewtonSystem(self)
            except RuntimeError:  # exactly singular
                return False
            dx, _ = system.solve(-slopes, missing)
            ds = -slack - slack / x * dx
            length = min(_longest(x, dx), _longest(slack, ds))
            predicted = float((x + length * dx) @ (slack + length * ds)) / len(x)
            cut = min(1.0, max(LEAST_CUT, (predicted / barrier) ** 3))
            if self._length > LONG_STEP and slopes.min() < -SHORTFALL:
                cut = max(cut, SLOW_CUT)
            wanted = cut * barrier - (dx * ds if length > SHORTFALL else 0.0)
            dx, dm = system.solve(wanted / x - slopes, missing)
            ds = wanted / x - slack - slack / x * dx
            length = min(
                1.0,
                TOLERANCES.to_the_boundary_corrected * min(_longest(x, dx), _longest(slack, ds)),
            )
            moved = x + length * dx, slack + length * ds, self.multipliers + length * dm
            if not all(np.isfinite(part).all() for part in moved) or moved[0].min() <= 0.0:
                return False
        self.point, self._slack, self.multipliers = moved
        self._length = length
        return True


class _NewtonSystem:
    """Factorised Newton equations at the present point of a run."""

    def __init__(self, run: EntropyProgrammeSolver) -> None:
        x, inner, outer = run.point, run._inner, run._outer
        self._inner, self._outer, self._n, self._rows = inner, outer, len(x), run._rows
        diagonal, mixed = run.terms.curvature(x)
        diagonal = diagonal + run._slack / x
        square, self._below = run._joined(mixed, diagonal)
        self._inverse = 1.0 / diagonal[outer]
        self._scaled = self._below @ scipy.sparse.diags_array(self._inverse)
        whole = _saddle(square, run._inner_rows)
        self._matrix = scipy.sparse.csc_array(whole - self._scaled @ self._below.T)
        lifted = REGULARISED * (run._squares @ (1.0 / diagonal))
        self._factors: Factors
        if run._plan is None:
            added = np.concatenate([np.zeros(len(inner)), lifted])
            self._factors = factorise(self._matrix - scipy.sparse.diags_array(added))
        else:
            self._factors = SaddleFactors(self._matrix, lifted, run._plan, x[inner])

    def solve(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the directions of the point and of the multipliers, refined once.

        Further directions, free of large slopes, correct the errors left in the equations.
        """
        direction, multipliers = self._reduce(first, second)
        for _ in range(CORRECTIONS):
            missing = second - self._rows @ direction
            if np.abs(missing).max(initial=0.0) <= EXACT:
                break
            other, more = self._reduce(np.zeros_like(first), missing)
            direction, multipliers = direction + other, multipliers + more
        return direction, multipliers

    def _reduce(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        right = np.concatenate([first[self._inner], second]) - self._scaled @ first[self._outer]
        found = self._factors.solve(right)
        for _ in range(REFINEMENTS):
            found += self._factors.solve(right - self._matrix @ found)
        direction = np.empty(self._n)
        direction[self._inner] = found[: len(self._inner)]
        direction[self._outer] = self._inverse * (first[self._outer] - self._below.T @ found)
        return direction, found[len(self._inner) :]


def _saddle(square: Any, rows: Any) -> Any:
    """Return the sparse array [[square, rows^T], [rows, 0]]."""
    blocks: list[list[Any]] = [[square, rows.T], [rows, None]]
    return scipy.sparse.block_array(blocks, format="csr")


def _longest(values: FloatArray, direction: FloatArray) -> float:
    """Return the longest step, at most 1, that keeps values + step direction at 0 or above."""
    falls = direction < 0.0
    return float(min(1.0, (-values[falls] / direction[falls]).min(initial=1.0)))
