"""The restricted master: the best fractional mixture of the groups found so far, by HiGHS."""

import time
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback
from engine.rooms.columns import Columns
from engine.rooms.cuts import NONE, payers
from engine.rooms.prices import Prices
from engine.rooms.problem import RoomProblem

LOOK_EVERY = 0.2  # seconds between two looks at whether to stop
SMALL = 200  # atoms up to which the simplex method is as fast as the interior point
INTERIOR_TOLERANCE = 1e-5  # relative; what is proved is proved by pricing
OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",  # a presolved model would be begun anew after every change
    "random_seed": 1,
    "run_crossover": "off",
    "ipm_optimality_tolerance": INTERIOR_TOLERANCE,
}


@dataclass(frozen=True, slots=True)
class Left:
    """What is not taken yet: atoms (n,), rooms of each kind (t,), rooms that some stay in (r,)."""

    atoms: BoolArray
    count: IntArray
    rows: FloatArray


class Master:
    """Every atom in one group or unplaced at a penalty, at most so many groups a kind and room.

    Prices come from an interior point: where many are optimal it stands in their middle, so that
    fewer rounds of columns are needed than from a corner, and no round depends on how degenerate
    the master is. Fixing groups needs a corner, where few are used: the simplex method, whose basis
    is kept from solve to solve. With ``left`` it is about what others leave; columns must fit that.
    ``cuts`` (c, 3) are triples of atoms of which at most one group holds two.
    """

    def __init__(
        self,
        problem: RoomProblem,
        columns: Columns,
        penalty: float,
        left: Left | None = None,
        cuts: IntArray = NONE,
    ) -> None:
        self._problem = problem
        self._columns, self.cuts = columns, cuts
        self._left = left or Left(
            np.ones(problem.n_atoms, dtype=bool), problem.count, np.ones(len(problem.row_kind))
        )
        self._n_added = 0
        self._interruption = _Interruption()
        self._model = _quiet_solver(self._interruption)
        self._add_rows(penalty)

    def _add_rows(self, penalty: float) -> None:
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
            np.asarray(penalty * problem.sizes, dtype=np.float64),
            np.zeros(n),
            np.full(n, highspy.kHighsInf),
            n,
            np.arange(n, dtype=np.int32),
            np.arange(n, dtype=np.int32),
            np.ones(n),
        )

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
        """Return where each group's entries begin (g,), and the row of the model of each entry."""
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

    def solve(self, max_seconds: float, should_stop: StopCallback, *, at_corner: bool) -> bool:
        """Solve; False when the limit came first or somebody asked to stop.

        ``at_corner`` asks for a solution of the simplex method.
        """
        self._interruption.begin(max_seconds, should_stop)
        if not at_corner and self._left.atoms.sum() > SMALL:
            self._model.setOptionValue("solver", "ipx")
            if self._run():
                return True
        self._model.setOptionValue("solver", "simplex")
        return not self._interruption.is_over and self._run()

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
        """Return how much of each atom is unplaced (n,) and how much of each group is used (g,)."""
        values = np.array(self._model.getSolution().col_value)
        return values[: self._problem.n_atoms], values[self._problem.n_atoms :]


class _Interruption:
    """Stops a solve when its time is up or somebody asks; looks up a few times a second."""

    def begin(self, max_seconds: float, should_stop: StopCallback) -> None:
        """Set the limit of the next solves."""
        self._end = time.monotonic() + max_seconds
        self._should_stop, self._next_look = should_stop, 0.0
        self.is_over = False

    def look(self, event: Any) -> None:
        """Answer the solver, which asks at every iteration."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_EVERY
            self.is_over = self.is_over or now >= self._end or self._should_stop()
        if self.is_over:
            event.interrupt()


def _quiet_solver(interruption: _Interruption) -> highspy.Highs:
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in OPTIONS.items():
        model.setOptionValue(option, value)
    model.cbSimplexInterrupt.subscribe(interruption.look)
    model.cbIpmInterrupt.subscribe(interruption.look)
    return model
