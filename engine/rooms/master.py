"""The restricted master: the best fractional mixture of the groups found so far, by HiGHS."""

import time

import highspy
import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.progress import StopCallback
from engine.rooms.columns import Columns
from engine.rooms.prices import Prices
from engine.rooms.problem import RoomProblem

SLICE = 1.0  # seconds between two looks at whether to stop


class Master:
    """Every atom in one group or unplaced at a penalty, at most so many groups a kind and room.

    The simplex basis is kept: after columns were added, HiGHS goes on from it.
    """

    def __init__(self, problem: RoomProblem, columns: Columns, penalty: float) -> None:
        self._problem = problem
        self._columns = columns
        self._n_added = 0
        self._model = _quiet_solver()
        self._add_rows(penalty)

    def _add_rows(self, penalty: float) -> None:
        problem, n = self._problem, self._problem.n_atoms
        t, r = problem.n_kinds, len(problem.row_kind)
        lower = np.concatenate((np.ones(n), np.full(t + r, -highspy.kHighsInf)))
        upper = np.concatenate((np.ones(n), problem.count.astype(float), np.ones(r)))
        none = np.empty(0, dtype=np.int32)
        self._model.addRows(n + t + r, lower, upper, 0, none, none, np.empty(0))
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

    def set_penalty(self, penalty: float) -> None:
        """Change what an unplaced person costs."""
        n = self._problem.n_atoms
        costs = np.asarray(penalty * self._problem.sizes, dtype=np.float64)
        self._model.changeColsCost(n, np.arange(n, dtype=np.int32), costs)

    def add_new_columns(self) -> None:
        """Add the columns that joined the list since the last call."""
        columns, first = self._columns, self._n_added
        members, kind, row = (x[first:] for x in (columns.members, columns.kind, columns.row))
        if not len(kind):
            return
        n, t = self._problem.n_atoms, self._problem.n_kinds
        table = np.column_stack((members, n + kind, np.where(row >= 0, n + t + row, -1)))
        present = table >= 0
        start = np.concatenate(([0], np.cumsum(present.sum(axis=1))[:-1])).astype(np.int32)
        index = table[present].astype(np.int32)
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

    def solve(self, max_seconds: float, should_stop: StopCallback) -> bool:
        """Solve; False when the limit came first or somebody asked to stop.

        The solver is asked for a second at a time and goes on from its basis.
        """
        left = max_seconds
        while left > 0.0 and not should_stop():
            started = time.monotonic()
            # The solver's clock runs on from solve to solve.
            limit = self._model.getRunTime() + min(left, SLICE)
            self._model.setOptionValue("time_limit", limit)
            self._model.run()
            if self._model.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                return True
            left -= max(time.monotonic() - started, 0.01)
        return False

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
        n, t = self._problem.n_atoms, self._problem.n_kinds
        return Prices(dual[:n], np.maximum(dual[n : n + t], 0.0), np.maximum(dual[n + t :], 0.0))

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Return how much of each atom is unplaced (n,) and how much of each group is used (g,)."""
        values = np.array(self._model.getSolution().col_value)
        return values[: self._problem.n_atoms], values[self._problem.n_atoms :]

    def fix(self, chosen: IntArray, value: float) -> None:
        """Hold groups at 0 or 1."""
        index = (self._problem.n_atoms + chosen).astype(np.int32)
        bounds = np.full(len(index), value)
        self._model.changeColsBounds(len(index), index, bounds, bounds)

    def free(self) -> None:
        """Let all groups vary again."""
        index = np.arange(
            self._problem.n_atoms, self._problem.n_atoms + self._n_added, dtype=np.int32
        )
        upper = np.full(len(index), highspy.kHighsInf)
        self._model.changeColsBounds(len(index), index, np.zeros(len(index)), upper)


def _quiet_solver() -> highspy.Highs:
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    # A presolved model would be begun anew in every slice.
    model.setOptionValue("presolve", "off")
    model.setOptionValue("random_seed", 1)
    return model
