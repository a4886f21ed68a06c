"""Integer programmes of HiGHS with a budget of solver steps instead of time.

The same programme with the same budget ends at the same place on any machine, however busy: HiGHS
calls back at the same steps of every run, and the budget is a number of these calls.
"""

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from engine.core.arguments import BoolArray, FloatArray
from engine.core.rounding import sum_allowance
from engine.rooms.clock import SearchClock

Bounds = tuple[FloatArray, FloatArray]

SECONDS_A_LOOK = 2e-3  # seconds between two calls, measured: fixed, per entry, per rows squared
SECONDS_AN_ENTRY = 3e-7
SECONDS_ROWS_SQUARED = 5e-7
TOLERANCE = 1e-10  # of the solver's duals: how far a column may violate its prices (nats)
EXACT: dict[str, Any] = {
    "mip_abs_gap": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
}


@dataclass(frozen=True, slots=True, eq=False)
class ProgrammeResult:
    """Result of an integer programme.

    Parameters
    ----------
    values : ndarray, shape (columns,), of the best solution; None if none was found.
    bound : float, upper bound on every solution's value, without the solver's tolerances.
    is_best : bool, whether the budget was enough to prove the solution to the requested gap.
    mip_gap : float, relative gap that was proved.
    """

    values: FloatArray | None
    bound: float
    is_best: bool
    mip_gap: float


def maximise(
    worth: FloatArray,
    matrix: csc_array,
    rows: Bounds,
    columns: Bounds,
    is_integer: BoolArray,
    clock: SearchClock,
    seconds: float,
    options: dict[str, Any] | None = None,
) -> ProgrammeResult:
    """Maximise ``worth`` x over integer solutions with ``matrix`` x within the row bounds.

    Parameters
    ----------
    worth : ndarray, shape (columns,)
    matrix : sparse array, shape (rows, columns)
    rows, columns : pairs of ndarrays, lower and upper bounds, infinities allowed.
    is_integer : ndarray, shape (columns,), bool
    clock : SearchClock, which is charged, and which may stop the programme.
    seconds : float, budget in counted seconds; see `SearchClock`.
    options : options of HiGHS in addition to those that make runs repeatable.
    """
    model = _quiet_solver({"mip_rel_gap": 0.0, **(options or {})})
    _fill(model, worth, matrix, rows, columns)
    whole = np.flatnonzero(is_integer).astype(np.int32)
    kinds = np.full(len(whole), highspy.HighsVarType.kInteger)
    model.changeColsIntegrality(len(whole), whole, kinds)
    a_look = SECONDS_A_LOOK + SECONDS_AN_ENTRY * matrix.nnz
    a_look += SECONDS_ROWS_SQUARED * matrix.shape[0] ** 2
    counter = _Counter(clock, a_look, max(1.0, seconds / a_look))
    model.cbMipInterrupt.subscribe(counter.look)
    model.run()
    found = model.getInfo()
    has_solution = found.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(model.getSolution().col_value) if has_solution else None
    is_best = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return ProgrammeResult(values, -float(found.mip_dual_bound), is_best, float(found.mip_gap))


def rounded_up(bound: float, worth: FloatArray, most_used: int) -> float:
    """Return the bound of an EXACT programme plus its tolerance and the rounding of its sums.

    ``worth`` (columns,); a solution uses at most ``most_used`` columns.
    """
    size = most_used * float(np.abs(worth).max(initial=0.0))
    return bound + TOLERANCE * most_used + sum_allowance(most_used, size)


def row_prices(worth: FloatArray, matrix: csc_array, rows: Bounds, columns: Bounds) -> FloatArray:
    """Return the value of one more unit of every row in the relaxation, shape (rows,)."""
    model = _quiet_solver({"solver": "simplex"})
    _fill(model, worth, matrix, rows, columns)
    model.run()
    return -np.array(model.getSolution().row_dual)


def _quiet_solver(options: dict[str, Any]) -> highspy.Highs:
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, "random_seed": 1, **options}.items():
        model.setOptionValue(name, value)
    return model


def _fill(
    model: highspy.Highs, worth: FloatArray, matrix: csc_array, rows: Bounds, columns: Bounds
) -> None:
    none: NDArray[np.int32] = np.empty(0, dtype=np.int32)
    model.addRows(matrix.shape[0], *_finite(rows), 0, none, none, np.empty(0))
    count = len(worth)
    start, index = matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32)
    entries = matrix.data.astype(np.float64)
    model.addCols(count, -worth, *_finite(columns), matrix.nnz, start, index, entries)


def _finite(bounds: Bounds) -> Bounds:
    low, high = (np.clip(x, -highspy.kHighsInf, highspy.kHighsInf) for x in bounds)
    return low.astype(np.float64), high.astype(np.float64)


class _Counter:
    """Callback that stops a programme after a number of calls, or when its clock is over."""

    def __init__(self, clock: SearchClock, a_look: float, most: float) -> None:
        self._clock, self._a_look, self._left = clock, a_look, most

    def look(self, event: Any) -> None:
        """Answer the solver's callback, and interrupt it at the limit."""
        self._left -= 1
        self._clock.charge(self._a_look)
        if self._left <= 0 or self._clock.is_over():
            event.interrupt()
