"""Losses of a picture with several classes under mean field, with exact derivatives.

The counterpart of `engine.objectives.class_losses`, for tree-reweighted messages: the same losses,
truncated, with a threshold, or converged with implicit differentiation or perturbation. The
surrogate likelihood is here the negative of mean field's lower bound for the known labels,

    log Z >= F(q) = sum_i <theta_i, q_i> + sum_ij q_i^T theta_ij q_j - sum_i <q_i, log q_i>.

References
----------
Domke 2013, sections 3.2, 5, 6 and algorithm 2.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # submodules load when first used

from engine.core.arguments import BoolArray, FloatArray
from engine.crf.class_features import ClassFeatures, ClassLabels
from engine.kernels.class_mean_field import pass_once, reverse_pass
from engine.objectives.perturbation import perturbed_gradient

ACCURACY, RESTART, ROUNDS = 1e-10, 30, 20
"""Limits of GMRES: the relative residual, the vectors that it keeps, and the restarts."""


@dataclass(slots=True)
class MeanFieldSlopes:
    """Derivatives in scores: nodes (H, W, L), agreement (2, n_codes) and label pairs (2, L, L)."""

    nodes: FloatArray
    agreement: FloatArray
    pairs: FloatArray


class ClassMeanField:
    """Mean-field marginals of one picture at one theta, uniform to begin with.

    Parameters
    ----------
    features : ClassFeatures
    theta : ndarray, shape (K,)
    labels : ndarray, shape (rows, columns), uint8, optional: known pixels are fixed to their label.
    """

    def __init__(
        self, features: ClassFeatures, theta: FloatArray, labels: ClassLabels | None = None
    ) -> None:
        self.features, scores = features, features.scores(theta)
        self.nodes = scores.nodes.astype(np.float64)
        if labels is not None:
            n = self.nodes.shape[2]
            others = (labels < n)[..., None] & (labels[..., None] != np.arange(n))
            self.nodes[others] = -np.inf
        right, down = scores.pairs
        tables = np.ascontiguousarray(np.stack([right, right.T, down, down.T]))
        self._edges = (*features.codes, tables, scores.agreement)
        self.marginals = np.full(self.nodes.shape, 1.0 / self.nodes.shape[2])
        self.logs = np.log(self.marginals)

    def zeros(self) -> MeanFieldSlopes:
        """Return slopes that are all 0."""
        _, _, tables, agreement = self._edges
        pairs = np.zeros((2, *tables.shape[1:]))
        return MeanFieldSlopes(np.zeros_like(self.nodes), np.zeros_like(agreement), pairs)

    def sweep(self, states: list[FloatArray] | None = None) -> float:
        """Pass forth and back, keeping marginals before each pass; return the last change."""
        change = 0.0
        for is_forth in (True, False):
            if states is not None:
                states.append(self.marginals.copy())
            change = pass_once(self.nodes, *self._edges, is_forth, self.marginals, self.logs)
        return change

    def rest(self, threshold: float, most_sweeps: int) -> None:
        """Sweep until no marginal changes by more than the threshold."""
        for _ in range(most_sweeps):
            if not self.sweep() > threshold:
                break

    def go_back(
        self, states: list[FloatArray], adjoint: FloatArray, slopes: MeanFieldSlopes
    ) -> None:
        """Back-propagate derivatives in log q through the passes of ``sweep`` to the scores."""
        ends = list(pairwise([*states, self.marginals]))
        for place in range(len(ends) - 1, -1, -1):
            self._undo(place % 2 == 0, *ends[place], adjoint, slopes)

    def add_implicit(self, begun: FloatArray, slopes: MeanFieldSlopes) -> None:
        """Add to ``slopes`` a loss's derivatives through converged marginals.

        Since log q = F(log q, theta) there, the derivative solves g = begun + (dF/dlog q)^T g.
        """
        spare = self.zeros()

        def back(vector: FloatArray, into: MeanFieldSlopes) -> FloatArray:
            adjoint = np.array(vector).reshape(begun.shape)
            for is_forth in (False, True):
                self._undo(is_forth, self.marginals, self.marginals, adjoint, into)
            return adjoint.ravel()

        system = scipy.sparse.linalg.LinearOperator(
            (begun.size, begun.size), matvec=lambda v: np.ravel(v) - back(v, spare), dtype=float
        )
        solution, _ = scipy.sparse.linalg.gmres(
            system, begun.ravel(), rtol=ACCURACY, restart=RESTART, maxiter=ROUNDS
        )
        back(solution, slopes)

    def perturbed(
        self, slope: FloatArray, sides: int, threshold: float, most_sweeps: int
    ) -> FloatArray:
        """Return dQ/dtheta, shape (K,), of converged marginals; they end at slightly moved scores.

        ``slope`` is dQ/dq, shape (H, W, L): mean-field losses depend on pixels alone.
        """

        def solve(scores: FloatArray) -> FloatArray:
            self.nodes = scores.reshape(slope.shape)
            self.rest(threshold, most_sweeps)
            slopes = self.lower_bound()[2]
            return self.features.pull_back(slopes.nodes, slopes.agreement, slopes.pairs)

        return perturbed_gradient(solve, self.nodes.ravel(), slope.ravel(), sides)

    def _undo(
        self,
        is_forth: bool,
        before: FloatArray,
        after: FloatArray,
        adjoint: FloatArray,
        slopes: MeanFieldSlopes,
    ) -> None:
        sums = (slopes.nodes, slopes.agreement, slopes.pairs)
        reverse_pass(*self._edges, is_forth, before, after, adjoint, *sums)

    def lower_bound(self) -> tuple[float, FloatArray, MeanFieldSlopes]:
        """Return F(q), never above log Z, with its derivatives in log q and in the scores."""
        q, slopes = self.marginals, self.zeros()
        codes, tables, agreement = self._edges[:2], self._edges[2], self._edges[3]
        slopes.nodes[...] = q
        logits = np.where(q > 0.0, self.nodes, 0.0)
        value = float((q * (logits - np.where(q > 0.0, self.logs, 0.0))).sum())
        for axis in range(2):
            first, second = (q[:, :-1], q[:, 1:]) if axis == 0 else (q[:-1], q[1:])
            equal = (first * second).sum(axis=2)
            np.add.at(slopes.agreement[axis], codes[axis], equal)
            slopes.pairs[axis] = np.einsum("ijx,ijy->xy", first, second)
            value += float((slopes.pairs[axis] * tables[2 * axis]).sum())
            value += float((equal * agreement[axis][codes[axis]]).sum())
            strengths = agreement[axis][codes[axis]][..., None]
            to_first = second @ tables[2 * axis + 1] + strengths * second
            to_second = first @ tables[2 * axis] + strengths * first
            if axis == 0:
                logits[:, :-1] += to_first
                logits[:, 1:] += to_second
            else:
                logits[:-1] += to_first
                logits[1:] += to_second
        slope = q * (logits - np.where(q > 0.0, self.logs, 0.0) - 1.0)
        return value, slope, slopes


def clique_loss(
    logs: FloatArray, labels: ClassLabels, known: BoolArray
) -> tuple[float, FloatArray]:
    """Return the clique logistic loss of products of marginals, and its slope in log q."""
    counts = np.zeros(labels.shape)
    across, down = known[:, :-1] & known[:, 1:], known[:-1] & known[1:]
    counts[:, :-1] += across
    counts[:, 1:] += across
    counts[:-1] += down
    counts[1:] += down
    slope = np.zeros_like(logs)
    rows, columns = np.nonzero(known)
    own = (rows, columns, labels[rows, columns])
    slope[own] = -counts[rows, columns]
    return float((slope[own] * logs[own]).sum()), slope
