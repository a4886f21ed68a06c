"""Tree-reweighted messages of one picture with several classes: marginals and bounds."""

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassFeatures, ClassLabels
from engine.crf.grid_features import CodeArray
from engine.kernels import class_messages as kernels
from engine.kernels.class_bounds import bound_log_partition, complete_edges
from engine.kernels.threads import for_row_ranges

NODE_RANGE = 60.0
"""Largest distance of a node score below its pixel's best, nats; lower ones are raised to it."""

EDGE_RANGE = 18.0
"""Largest spread of label-pair scores in one table, nats: exp(2 x this) must fit in float32."""

ROUNDS = 60
"""Scalings of an edge's table to its margins before the remaining error is corrected."""

ROUNDING = 5e-7
"""Allowance for rounding in the bound, as a share of the size of the float32 scores."""

SMALL_GRID = 512
"""Number of rows from which threads share a sweep, if the caller allows it."""

Messages = NDArray[np.float32]
"""Messages of one picture, (4, rows, columns, L); float64 in double precision."""


class ClassMessages:
    """Tree-reweighted messages of one picture at one theta.

    Parameters
    ----------
    features : ClassFeatures
    theta : ndarray, shape (K,)
    messages : ndarray, shape (4, rows, columns, L), float32, optional
        Warm start, changed in place; ones by default.
    is_shared : bool, whether sweeps may use several threads.
    is_double : bool, whether all arrays are in double precision; ``messages`` must be too.
    """

    def __init__(
        self,
        features: ClassFeatures,
        theta: FloatArray,
        messages: Messages | None = None,
        *,
        is_shared: bool = False,
        is_double: bool = False,
    ) -> None:
        # The type checker sees single precision everywhere.
        kind: type[np.float32] = np.float64 if is_double else np.float32  # type: ignore[assignment]
        self.features, self.scores = features, features.scores(theta)
        self._is_shared = is_shared
        self._nodes = nodes = self.scores.nodes.astype(kind, copy=False)
        tops = nodes.max(axis=2, keepdims=True)
        nodes -= tops
        np.maximum(nodes, kind(-NODE_RANGE), out=nodes)
        self.potentials = np.exp(nodes)
        pairs = self.scores.pairs
        highest = pairs.max(axis=(1, 2))
        pairs = pairs - highest[:, None, None]
        sizes = [codes.size for codes in features.codes]
        self.level = float(tops.sum(dtype=np.float64)) + float(highest @ sizes)
        # Scores are float32: the bound allows for their rounding.
        size = float(np.abs(tops).sum(dtype=np.float64)) - float(nodes.sum(dtype=np.float64))
        self._offset = self.level + ROUNDING * size
        self._pairs = np.exp(2.0 * np.maximum(pairs, -EDGE_RANGE))
        self._agreement = np.exp(2.0 * np.clip(self.scores.agreement, -EDGE_RANGE, EDGE_RANGE))
        h, v = self._pairs.astype(kind)
        self.tables = np.ascontiguousarray(np.stack([h, h.T, v, v.T]))
        self.extra = (self._agreement - 1.0).astype(kind)
        self.is_plain = bool((self.tables == 1).all())
        shape = (4, *self.potentials.shape)
        self.messages = np.ones(shape, kind) if messages is None else messages

    @property
    def fixed(self) -> tuple[Messages, CodeArray, CodeArray, Messages, Messages, bool]:
        """First arguments of every kernel."""
        right, down = self.features.codes
        return self.potentials, right, down, self.tables, self.extra, self.is_plain

    def hold(self, labels: ClassLabels) -> None:
        """Fix pixels of known label to that label; ``level``, of all scores, then counts these."""
        count = self.potentials.shape[2]
        known = labels < count
        held = (*np.nonzero(known), labels[known])
        kept = self.potentials[held]
        self.level += float(np.log(kept).sum(dtype=np.float64))
        self.potentials[known] = 0.0
        self.potentials[held] = 1.0

    def sweep(self, count: int = 1) -> float:
        """Pass ``count`` times forward and backward; return the last largest relative change."""
        change = 0.0
        for _ in range(count):
            change = self._sweep_once()
        return change

    def _sweep_once(self) -> float:
        """Sweep all rows, or one range of rows a thread and then between the ranges."""
        changes: dict[int, float] = {}

        def some(first: int, last: int) -> None:
            changes[first] = float(kernels.sweep(*self.fixed, self.messages, first, last))

        height = self.features.shape[0]
        for_row_ranges(height, some, SMALL_GRID if self._is_shared else height + 1)
        for row in sorted(changes)[1:]:
            kernels.cross(*self.fixed, self.messages, row)
        return max(changes.values())

    def marginals(self) -> NDArray[np.float32]:
        """Return tau_i(x), shape (rows, columns, L)."""
        out = np.empty_like(self.potentials)

        def some(first: int, last: int) -> None:
            kernels.fill_marginals(
                self.potentials[first:last], self.messages[:, first:last], out[first:last]
            )

        for_row_ranges(len(out), some, SMALL_GRID if self._is_shared else 2**40)
        return out

    def upper_bound(self) -> float:
        """Return an upper bound of log Z_rho, nats.

        Raising low scores only raises the bound. Clipping agreement beyond the range, which learned
        weights never reach, would not, so that its full size is added.
        """
        bound = bound_log_partition(
            self._nodes, *self.features.codes, self._pairs, self._agreement, self.messages
        )
        for codes, agreement in zip(self.features.codes, self.scores.agreement, strict=True):
            cut = np.maximum(agreement - EDGE_RANGE, 0.0)
            if cut.any():
                bound += float(cut[codes].sum())
        return float(bound) + self._offset

    def summarise(self, marginals: NDArray[np.float32]) -> tuple[FloatArray, float]:
        """Return phi(tau) and H_rho(tau) of node marginals with near-optimal edge tables."""
        nodes = marginals.astype(np.float64)
        nodes /= nodes.sum(axis=2, keepdims=True)
        n = nodes.shape[2]
        by_code, by_pair = np.zeros_like(self._agreement), np.zeros((2, n, n))
        entropy = complete_edges(
            nodes, *self.features.codes, self._pairs, self._agreement, ROUNDS, by_code, by_pair
        )
        return self.features.pull_back(nodes, by_code, by_pair), float(entropy)
