"""Restricted master: the best fractional mixture of the groups found so far, by HiGHS."""

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.rooms.clock import SearchClock
from engine.rooms.columns import Columns
from engine.rooms.cuts import NONE, payers
from engine.rooms.prices import Prices
from engine.rooms.problem import RoomProblem

LOOK_EVERY = 0.2  # counted seconds between two checks of the clock
SECONDS_AN_ENTRY = 2e-9  # measured, per iteration of a solver and entry of the model
CORNER_SECONDS = 2e-5  # added per iteration of the simplex method
SMALL = 200  # atoms up to which the simplex method is as fast as the interior point
INTERIOR_TOLERANCE = 1e-5  # relative; proofs are left to pricing
OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",  # a presolved model would start again after every change
    "random_seed": 1,
    "run_crossover": "off",
    "ipm_optimality_tolerance": INTERIOR_TOLERANCE,
}


@dataclass(frozen=True, slots=True)
class Left:
    """Remaining atoms (n,), rooms of each kind (t,) and rooms in which atoms may stay (r,)."""

    atoms: BoolArray
    count: IntArray
    rows: FloatArray


class Master:
    """Linear programme: each atom in a group or unplaced at a penalty, within the rooms by kind.

    Prices come from an interior point. If many are optimal, it lies in their middle, so that fewer
    rounds of columns are needed than from a corner, however degenerate the master is. Fixing groups
    needs a corner, where few are used: the simplex method, whose basis is kept between solves. With
    ``left``, the master covers only what remains, and columns must fit that. ``cuts`` (c, 3) are
    triples of atoms, and at most one group holds two atoms of a triple.

    With few columns, few atoms have a choice, and duals are extreme. ``set_penalties`` bounds
    them: no atom costs less than minus its penalty.
    """

    def __init__(
        self,
        problem: RoomProblem,
        columns: Columns,
        clock: SearchClock,
        left: Left | None = None,
        cuts: IntArray = NONE,
    ) -> None:
        self._problem = problem
        self._columns, self.cuts = columns, cuts
        self._left = left or Left(
            np.ones(problem.n_atoms, dtype=bool), problem.count, np.ones(len(problem.row_kind))
        )
        self._n_added = 0
        self._clock = clock
        self._interruption = _Interruption(clock)
        self._model = _quiet_solver(self._interruption)
        self._add_rows()

    def _add_rows(self) -> None:
        problem, n = self._problem, self._problem.n_atoms
        t, r = problem.n_kinds, len(problem.row_kind)
        atoms = self._left.atoms.astype(float)
        c = len(self.cuts)
        lower = np.concatenate((atoms, np.full(t + r + c, -highspy.kHighsInf)))
        upper = np.concatenate((atoms, self._left.count, self._left.rows, np.ones(c)))
        none = np.empty(0, dtype=np.int32)
        self._model.addRows(n + t + r + c, lower, upper.astype(float), 0, none, none, np.empty(0))
        self._model.addCols(
            n,
            problem.penalty.astype(np.float64),
            np.zeros(n),
            np.full(n, highspy.kHighsInf),
            n,
            np.arange(n, dtype=np.int32),
            np.arange(n, dtype=np.int32),
            np.ones(n),
        )

    def set_penalties(self, penalty: FloatArray) -> None:
        """Replace the penalties of unplaced atoms, shape (n,)."""
        n = self._problem.n_atoms
        self._model.changeColsCost(n, np.arange(n, dtype=np.int32), penalty.astype(np.float64))

    def add_new_columns(self) -> None:
        """Add the columns that joined the list since the last call."""
        columns, first = self._columns, self._n_added
        members, kind, row = (x[first:] for x in (columns.members, columns.kind, columns.row))
        if not len(kind):
            return
        start, index = self._entries(members, kind, row)
        count = len(kind)
        self._model.addCols(
            count,
            -columns.value[first:],
            np.zeros(count),
            np.full(count, highspy.kHighsInf),
            len(index),
            start,
            index,
            np.ones(len(index)),
        )
        self._n_added = len(columns)

    def _entries(
        self, members: IntArray, kind: IntArray, row: IntArray
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the start of each group's entries (g,), and the row of the model of each entry."""
        n, t, r = self._problem.n_atoms, self._problem.n_kinds, len(self._problem.row_kind)
        table = np.column_stack((members, n + kind, np.where(row >= 0, n + t + row, -1)))
        group, place = np.nonzero(table >= 0)
        index = table[group, place]
        if len(self.cuts):
            cut, payer = payers(self.cuts, members, n)
            group = np.concatenate((group, payer))
            order = np.argsort(group, kind="stable")
            group, index = group[order], np.concatenate((index, n + t + r + cut))[order]
        start = np.searchsorted(group, np.arange(len(kind)))
        return start.astype(np.int32), index.astype(np.int32)

    def solve(self, *, at_corner: bool) -> bool:
        """Solve the master; return False if the clock runs out first.

        ``at_corner`` requests a solution of the simplex method.
        """
        seconds = SECONDS_AN_ENTRY * self._model.getNumNz()
        if not at_corner and self._left.atoms.sum() > SMALL:
            self._model.setOptionValue("solver", "ipx")
            self._interruption.begin(seconds)
            if self._run():
                return True
        self._model.setOptionValue("solver", "simplex")
        self._interruption.begin(CORNER_SECONDS + seconds)
        return not self._clock.is_over() and self._run()

    def _run(self) -> bool:
        self._model.run()
        return bool(self._model.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    @property
    def n_atoms(self) -> int:
        """Number of atoms n."""
        return self._problem.n_atoms

    @property
    def value(self) -> float:
        """Value of the mixture, penalties included."""
        return -float(self._model.getInfo().objective_function_value)

    def prices(self) -> Prices:
        """Return the duals of the last solve; those of kinds and rooms are not negative."""
        dual = -np.array(self._model.getSolution().row_dual)
        n, t, r = self._problem.n_atoms, self._problem.n_kinds, len(self._problem.row_kind)
        others = np.maximum(dual[n:], 0.0)
        return Prices(dual[:n], others[:t], others[t : t + r])

    def cut_prices(self) -> FloatArray:
        """Return the duals of the cuts in the last solve, not negative, shape (c,)."""
        dual = -np.array(self._model.getSolution().row_dual)
        return np.asarray(np.maximum(dual[len(dual) - len(self.cuts) :], 0.0))

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Return the unplaced share of each atom (n,) and the used share of each group (g,)."""
        values = np.array(self._model.getSolution().col_value)
        return values[: self._problem.n_atoms], values[self._problem.n_atoms :]


class _Interruption:
    """Callback that charges the clock for every solver iteration, and stops the solver in time."""

    def __init__(self, clock: SearchClock) -> None:
        self._clock, self._seconds, self._until_look = clock, 0.0, 0.0

    def begin(self, seconds: float) -> None:
        """Set the cost of an iteration of the next solve, counted seconds."""
        self._seconds, self._until_look = seconds, 0.0

    def look(self, event: Any) -> None:
        """Answer the solver, which calls this at every iteration."""
        self._clock.charge(self._seconds)
        self._until_look -= self._seconds
        if self._until_look <= 0.0:
            self._until_look = LOOK_EVERY
            if self._clock.is_over():
                event.interrupt()


def _quiet_solver(interruption: _Interruption) -> highspy.Highs:
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in OPTIONS.items():
        model.setOptionValue(option, value)
    model.cbSimplexInterrupt.subscribe(interruption.look)
    model.cbIpmInterrupt.subscribe(interruption.look)
    return model
