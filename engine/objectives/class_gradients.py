"""Gradients of losses of a picture with several classes whose messages have converged.

Two methods besides back-propagation through every sweep (`engine.objectives.class_losses`), both in
double precision and in memory that does not grow with the sweeps:

- implicit: converged messages satisfy m = F(m, theta), so the derivative solves
  g = dQ/dm + (dF/dm)^T g, by GMRES whose products are one backward sweep each;
- by perturbation: the Jacobian of the marginals is symmetric, so the gradient is the difference of
  marginals at scores moved a little along the slope of the loss.

References
----------
Domke 2013, sections 5 and 6; Saad and Schultz 1986 (GMRES).
"""

from dataclasses import dataclass

import numpy as np
import scipy  # submodules load when first used

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassLabels
from engine.kernels.class_messages import reverse_sweep
from engine.kernels.class_perturbation import bumped_sweep, sum_marginals
from engine.objectives.class_messages import ClassMessages, Messages
from engine.objectives.perturbation import perturbed_gradient

RESTART = 30
"""Number of vectors, as large as the messages, that GMRES keeps."""

ROUNDS = 20
"""Maximum number of restarts of GMRES."""

ACCURACY = 1e-10
"""Relative residual at which GMRES stops."""

REST = 1e-11
"""Largest relative change of a message in a sweep at which messages count as converged."""

MOST_SWEEPS = 2000
"""Maximum number of sweeps, after which messages are used even if they have not converged."""


@dataclass(slots=True)
class ScoreSlopes:
    """Derivatives in log potentials (H, W, L), and in log tables by code and by label pair."""

    nodes: Messages
    extra: FloatArray
    pairs: FloatArray

    @classmethod
    def zeros(cls, chains: ClassMessages) -> "ScoreSlopes":
        """Return slopes that are all 0."""
        n = chains.potentials.shape[2]
        nodes, extra = np.zeros_like(chains.potentials), np.zeros_like(chains.scores.agreement)
        return cls(nodes, extra, np.zeros((2, n, n)))


def rest(chains: ClassMessages, threshold: float = REST) -> None:
    """Sweep until no message changes by more than ``threshold`` relative to itself."""
    for _ in range(MOST_SWEEPS):
        if not chains.sweep() > threshold:
            break


def add_implicit(chains: ClassMessages, begun: Messages, slopes: ScoreSlopes) -> None:
    """Add to ``slopes`` a loss's derivatives through converged messages.

    Parameters
    ----------
    chains : ClassMessages in double precision, converged
    begun : ndarray, shape (4, rows, columns, L), the loss's direct derivatives in the messages
    slopes : ScoreSlopes, changed in place

    Notes
    -----
    If messages do not converge there is no such derivative; the best solution that GMRES found is
    then used.
    """
    sent = np.ones(begun.shape[:3], dtype=bool)  # messages at the border are constants
    sent[0, :, 0] = sent[1, :, -1] = sent[2, 0] = sent[3, -1] = False
    shape, size = begun.shape, begun.size
    spare = ScoreSlopes.zeros(chains)

    def back(vector: FloatArray, into: ScoreSlopes) -> FloatArray:
        adjoint = np.where(sent[..., None], vector.reshape(shape), 0.0)
        ends = (chains.messages, chains.messages)
        reverse_sweep(*chains.fixed, *ends, adjoint, into.nodes, into.extra, into.pairs)
        return np.where(sent[..., None], adjoint, 0.0).ravel()

    system = scipy.sparse.linalg.LinearOperator(
        (size, size), matvec=lambda v: np.ravel(v) - back(v, spare), dtype=np.float64
    )
    right = np.where(sent[..., None], begun, 0.0).ravel()
    solution, _ = scipy.sparse.linalg.gmres(
        system, right, rtol=ACCURACY, restart=RESTART, maxiter=ROUNDS
    )
    back(solution, slopes)


def perturbed(
    chains: ClassMessages,
    labels: ClassLabels,
    slope: FloatArray,
    sides: int,
    threshold: float = REST,
) -> FloatArray:
    """Return dQ/dtheta, shape (K,), of converged messages.

    Parameters
    ----------
    chains : ClassMessages in double precision, converged; they are left unchanged.
    labels : ndarray, shape (rows, columns), uint8; labels from L on mean unknown
    slope : ndarray, dQ/dtau: of nodes (rows, columns, L), then of each edge's entry of its own
        labels (2, rows, columns), right and down, flat. See `own_marginals`.
    sides : 1, 2 or 4
    threshold : float, as of `rest`, at the moved scores
    """
    n, edges = chains.potentials.size, (2, *labels.shape)
    messages = chains.messages.copy()

    def solve(scores: FloatArray) -> FloatArray:
        potentials = np.exp(scores[:n]).reshape(chains.potentials.shape)
        bumps = np.expm1(2.0 * scores[n:]).reshape(edges)
        fixed = (potentials, *chains.fixed[1:])
        for _ in range(MOST_SWEEPS):
            if not bumped_sweep(*fixed, messages, labels, bumps) > threshold:
                break
        sums, chances = ScoreSlopes.zeros(chains), np.empty(edges)
        parts = (sums.nodes, sums.extra, sums.pairs, chances)
        sum_marginals(*fixed[:-1], messages, labels, bumps, *parts)
        return chains.features.pull_back(sums.nodes, sums.extra, sums.pairs)

    scores = np.concatenate([np.log(chains.potentials).ravel(), np.zeros(slope.size - n)])
    return perturbed_gradient(solve, scores, slope, sides)


def own_marginals(chains: ClassMessages, labels: ClassLabels) -> tuple[Messages, FloatArray]:
    """Return node marginals, and each edge's marginal of its own labels (1 if one is unknown)."""
    sums, chances = ScoreSlopes.zeros(chains), np.empty((2, *labels.shape))
    parts = (sums.nodes, sums.extra, sums.pairs, chances)
    sum_marginals(*chains.fixed[:-1], chains.messages, labels, np.zeros_like(chances), *parts)
    return sums.nodes, chances
