"""Factor graphs as flat arrays, for kernels that move through configurations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.graphs.factor_graph import FactorGraph

if TYPE_CHECKING:  # a layout alone needs no compiler
    from engine.kernels.factor_search import FactorArrays


@dataclass(frozen=True, slots=True, eq=False)
class FactorLayout:
    """Layout of the entries of all tables in one vector.

    Factor f is over ``scope_variable[scope_start[f] : scope_start[f + 1]]``; its entry for labels
    x is at ``table_start[f] + sum scope_stride x``. The factors of variable v, each with the
    stride of v in it, are ``variable_factor[variable_start[v] : variable_start[v + 1]]``. Vectors
    of one entry per label of each variable are laid out by ``label_start``. Factors without
    variables are left out.

    Parameters
    ----------
    scores : ndarray, flat log tables; -inf is impossible.
    arrays : the other arrays, in the order in which kernels take them.
    """

    scores: FloatArray
    arrays: "FactorArrays"

    @property
    def cardinalities(self) -> IntArray:
        """Number of labels of each variable."""
        return self.arrays[0]

    @property
    def table_start(self) -> IntArray:
        """Index of each factor's first entry, and the length of ``scores``."""
        return self.arrays[4]

    @property
    def label_start(self) -> IntArray:
        """Index of each variable's first label in vectors of one entry per label."""
        return self.arrays[8]

    def places(self, labels: IntArray) -> IntArray:
        """Return the index of each factor's entry for a configuration."""
        _, scope_start, scope_variable, scope_stride, table_start, *_ = self.arrays
        steps = np.concatenate([[0], np.cumsum(scope_stride * labels[scope_variable])])
        places: IntArray = table_start[:-1] + np.diff(steps[scope_start])
        return places

    def with_finite_penalty(self) -> FloatArray:
        """Return the scores with -inf replaced by a penalty that no other entries can outweigh.

        A factor whose entries are all impossible counts as indifferent.
        """
        possible = np.isfinite(self.scores)
        if possible.all() or len(self.scores) == 0:
            return self.scores
        starts = self.table_start[:-1]
        highest = np.maximum.reduceat(self.scores, starts)
        lowest = np.minimum.reduceat(np.where(possible, self.scores, np.inf), starts)
        some = np.isfinite(highest)
        highest, lowest = np.where(some, highest, 0.0), np.where(some, lowest, 0.0)
        ranges = float((highest - lowest).sum())
        penalty = np.repeat(lowest - ranges - 1.0, np.diff(self.table_start))
        return np.where(possible, self.scores, penalty)


def lay_out_factors(graph: FactorGraph) -> FactorLayout:
    """Return the flat arrays of a factor graph."""
    cards = np.ascontiguousarray(graph.cardinalities, dtype=np.int64)
    factors = [f for f in graph.factors if f.variables]
    scopes = [np.array(f.variables, dtype=np.int64) for f in factors]
    strides = []
    for factor in factors:
        shape = factor.table.shape
        steps = np.concatenate([np.cumprod(shape[:0:-1])[::-1], [1]])
        strides.append(steps.astype(np.int64))
    none = [np.zeros(0, dtype=np.int64)]
    variable, stride = np.concatenate(scopes + none), np.concatenate(strides + none)
    owner = np.repeat(np.arange(len(factors)), [len(s) for s in scopes]).astype(np.int64)
    order = np.argsort(variable, kind="stable")
    counts = np.bincount(variable, minlength=len(cards))
    arrays = (
        cards,
        _starts([len(s) for s in scopes]),
        variable,
        stride,
        _starts([f.table.size for f in factors]),
        _starts(counts),
        owner[order],
        stride[order],
        _starts(cards),
    )
    tables = [np.ravel(f.table) for f in factors] + [np.zeros(0)]
    return FactorLayout(np.concatenate(tables).astype(np.float64), arrays)


def _starts(sizes: IntArray | list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
