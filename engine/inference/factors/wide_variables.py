"""Exact removal of variables of very many states from a model before any method begins.

A variable that shares tables with at most one other variable is summed out, or maximised out, into
a table of that other variable. The remaining model has the same log Z, or the same best score.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.rounding import sum_allowance
from engine.graphs.factor_graph import Factor, FactorGraph

WIDE = 10_000
"""Number of states above which a variable is removed: methods store several numbers a state."""

SUM_ROUNDINGS = 64
"""Roundings of one term in a sum of many exponentials, which NumPy adds in pairs."""

MAX_ENTRIES = 40_000_000
"""Maximum number of entries of an intermediate table (320 MB)."""


@dataclass(frozen=True, slots=True, eq=False)
class TakenOut:
    """One removed variable with its factors.

    Parameters
    ----------
    variable : int, its index in the whole model.
    neighbour : int, the variable of more than one state beside it, or -1.
    shape : tuple of int, states of the variable, and of the neighbour if there is one.
    factors : tuple of Factor, all factors of the variable, in the indices of the whole model.
    """

    variable: int
    neighbour: int
    shape: tuple[int, ...]
    factors: tuple[Factor, ...]

    def joint(self) -> FloatArray:
        """Return the sum of its tables, shape (states, neighbour's states)."""
        total = np.zeros(self.shape)
        for factor in self.factors:
            places = tuple(
                slice(None) if v in {self.variable, self.neighbour} else 0 for v in factor.variables
            )
            table = factor.table[places]
            if self.neighbour not in factor.variables:
                total += table.reshape(len(table), *[1] * (len(self.shape) - 1))
            elif factor.variables.index(self.neighbour) < factor.variables.index(self.variable):
                total += table.T
            else:
                total += table
        return total


@dataclass(frozen=True, slots=True, eq=False)
class NarrowModel:
    """Remaining model with the variables that were removed, in the order of removal.

    Parameters
    ----------
    graph : FactorGraph
    kept : ndarray, indices of its variables in the whole model.
    taken : tuple of TakenOut
    rounding : float, nats, by which rounding may have moved log Z.
    """

    graph: FactorGraph
    kept: IntArray
    taken: tuple[TakenOut, ...]
    rounding: float

    def labels_of(self, labels: IntArray) -> IntArray:
        """Return the best labels of the whole model, given those of the remaining model."""
        whole = np.zeros(len(self.kept) + len(self.taken), dtype=np.int64)
        whole[self.kept] = labels
        for one in reversed(self.taken):
            table = one.joint()
            row = table if one.neighbour < 0 else table[:, whole[one.neighbour]]
            whole[one.variable] = int(row.argmax())
        return whole

    def marginals_of(self, marginals: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
        """Return the marginals of the whole model, given those of the remaining model."""
        whole = dict(zip(self.kept.tolist(), marginals, strict=True))
        for one in reversed(self.taken):
            table = one.joint()
            if one.neighbour < 0:
                whole[one.variable] = np.exp(table - log_sum_exp(table))
                continue
            total = log_sum_exp(table)
            with np.errstate(invalid="ignore"):
                given = np.where(np.isfinite(total), np.exp(table - total), 0.0)
            whole[one.variable] = given @ whole[one.neighbour]
        return tuple(whole[variable] for variable in range(len(whole)))


def take_out_wide(graph: FactorGraph, *, is_sum: bool, beside_others: bool = True) -> NarrowModel:
    """Remove variables of more than ``WIDE`` states from a model where that is exact and cheap.

    Parameters
    ----------
    graph : FactorGraph
    is_sum : bool, whether variables are summed out (log Z and marginals), or maximised out.
    beside_others : bool
        Whether variables that depend on another one are removed too; that would change the
        result of mean field, a product of distributions.
    """
    factors = list(graph.factors)
    taken: list[TakenOut] = []
    rounding = 0.0
    for variable in np.flatnonzero(graph.cardinalities > WIDE).tolist():
        own = tuple(f for f in factors if variable in f.variables)
        beside = {v for f in own for v in f.variables} - {variable}
        neighbours = [v for v in sorted(beside) if graph.cardinalities[v] > 1]
        size = int(graph.cardinalities[variable])
        size *= int(np.prod(graph.cardinalities[neighbours], dtype=np.int64))
        if len(neighbours) > int(beside_others) or size > MAX_ENTRIES:
            continue
        shape = tuple(int(graph.cardinalities[v]) for v in [variable, *neighbours])
        one = TakenOut(variable, neighbours[0] if neighbours else -1, shape, own)
        table = log_sum_exp(one.joint()) if is_sum else one.joint().max(axis=0)
        factors = [f for f in factors if variable not in f.variables]
        factors.append(Factor(() if one.neighbour < 0 else (one.neighbour,), table))
        taken.append(one)
        rounding += sum_allowance(SUM_ROUNDINGS, float(np.abs(table[np.isfinite(table)]).sum()) + 1)
    gone = {one.variable for one in taken}
    kept = np.array([v for v in range(graph.n_variables) if v not in gone], dtype=np.int64)
    number = {v: k for k, v in enumerate(kept.tolist())}
    left = tuple(Factor(tuple(number[v] for v in f.variables), f.table) for f in factors)
    return NarrowModel(FactorGraph(graph.cardinalities[kept], left), kept, tuple(taken), rounding)


def log_sum_exp(table: FloatArray) -> FloatArray:
    """Return log sum exp over the first axis; -inf where all entries are."""
    largest = table.max(axis=0)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.exp(table - shift).sum(axis=0)))
