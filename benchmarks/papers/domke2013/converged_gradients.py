"""Gradients of losses of a picture whose inference has converged (Domke 2013, sections 5 and 6).

Two methods besides back-propagation through every sweep (`engine.objectives.grid_losses`), both in
double precision and in memory that does not grow with the sweeps:

- implicit: converged messages satisfy m = F(m, theta), so the derivative solves
  g = dQ/dm + (dF/dm)^T g, by GMRES whose products are one backward sweep each; likewise converged
  mean-field marginals, in log q;
- by perturbation: the Jacobian of the marginals is symmetric, so the gradient is the difference of
  marginals at scores moved a little along the slope of the loss.

Label maps have both for messages, masks and label maps for mean field. GMRES: Saad, Schultz 1986.
"""

import numpy as np
import scipy  # submodules load when first used

from benchmarks.papers.domke2013.grid_mean_field import GridMeanField
from benchmarks.papers.domke2013.local_losses import known_labels
from benchmarks.papers.domke2013.perturbation import SIDES, perturbed_gradient
from benchmarks.papers.domke2013.perturbed_messages import bumped_sweep, sum_marginals
from benchmarks.papers.domke2013.picture_losses import (
    begin_mean_field,
    is_by_mean_field,
    loss_and_gradient,
)
from engine.core.arguments import FloatArray
from engine.core.options import check_choice
from engine.crf.class_features import ClassExample, ClassLabels
from engine.crf.grid_features import GridExample, LabelScores
from engine.kernels.class_losses import SMALLEST
from engine.kernels.class_messages import reverse_sweep
from engine.objectives.class_losses import ScoreSlopes, begin_loss, pull_back
from engine.objectives.class_messages import ClassMessages, Messages
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
    Gradient,
    LossOptions,
    logistic_loss,
    node_loss,
)

GRADIENTS = ("truncated", "implicit", *SIDES)

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


def gradient_by(
    gradient: str, example: GridExample | ClassExample, theta: FloatArray, options: LossOptions
) -> Gradient:
    """Return the loss of one picture and its gradient in theta, by one of `GRADIENTS`.

    "truncated" is that of the sweeps so far. The others sweep until messages converge (to the
    threshold of the options, `REST` by default), whatever their number of iterations, and
    differentiate there; the likelihood is stationary there and needs neither method.
    """
    check_choice("gradient", gradient, GRADIENTS)
    if gradient == "truncated":
        return loss_and_gradient(example, theta, options)
    by_mean_field = is_by_mean_field(options)
    run = of_converged_mean_field if by_mean_field else of_converged_messages
    value, slope = run(gradient, example, theta, options, is_held=False)
    if options.loss != LIKELIHOOD:
        return value, slope
    known, held = run(gradient, example, theta, options, is_held=True)
    return value - known, slope - held


def of_converged_messages(
    gradient: str, example: ClassExample, theta: FloatArray, options: LossOptions, *, is_held: bool
) -> Gradient:
    """Sweep until messages converge, and differentiate there."""
    chains = ClassMessages(example.features, theta, is_double=True)
    chains.is_plain = chains.is_plain and options.is_potts
    if is_held:
        chains.hold(example.labels)
    threshold = REST if options.threshold is None else options.threshold
    rest(chains, threshold)
    value, adjoint, slopes = begin_loss(chains, example, options)
    if options.loss == LIKELIHOOD:
        return value, pull_back(example, slopes)
    if gradient == "implicit":
        add_implicit(chains, adjoint, slopes)
        return value, pull_back(example, slopes)
    slope = marginal_slope(chains, example, options)
    return value, perturbed(chains, example.labels, slope, SIDES[gradient], threshold)


def of_converged_mean_field(
    gradient: str,
    example: GridExample | ClassExample,
    theta: FloatArray,
    options: LossOptions,
    *,
    is_held: bool,
) -> Gradient:
    """Sweep until marginals converge, and differentiate there."""
    labels = known_labels(example)
    field = GridMeanField(example.features, theta, labels if is_held else None)
    threshold = REST if options.threshold is None else options.threshold
    rest(field, threshold)
    value, adjoint, slopes = begin_mean_field(field, labels, options)
    if options.loss == LIKELIHOOD:
        return value, example.features.pull_back_labels(slopes)
    if gradient == "implicit":
        add_implicit_mean_field(field, adjoint, slopes)
        return value, example.features.pull_back_labels(slopes)
    slope = adjoint / np.maximum(field.marginals, SMALLEST)
    return value, perturbed_mean_field(field, slope, SIDES[gradient], threshold)


def rest(chains: ClassMessages | GridMeanField, threshold: float = REST) -> None:
    """Sweep until nothing changes by more than ``threshold``: messages relative to themselves."""
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


def marginal_slope(
    chains: ClassMessages, example: ClassExample, options: LossOptions
) -> FloatArray:
    """Return dQ/dtau of nodes and of edges' own entries, flat; see `perturbed`."""
    marginals, chances = own_marginals(chains, example.labels)
    edges = np.zeros_like(chances)
    if options.loss == CLIQUE:
        edges[chances < 1.0] = logistic_loss(chances[chances < 1.0])[1]
        return np.concatenate([np.zeros(marginals.size), edges.ravel()])
    n = marginals.shape[2]
    labels = example.labels.ravel().astype(np.int64)
    known = labels < n
    labels[~known] = 0
    _, slope = node_loss(
        marginals.astype(np.float64).ravel(),
        np.arange(0, marginals.size + 1, n),
        labels,
        known,
        options.loss,
        options.sharpness,
    )
    weights = np.array(options.weights or np.ones(n))[labels]
    return np.concatenate([np.repeat(weights, n) * slope, edges.ravel()])


def add_implicit_mean_field(field: GridMeanField, begun: FloatArray, slopes: LabelScores) -> None:
    """Add to ``slopes`` a loss's derivatives through converged marginals.

    Since log q = F(log q, theta) there, the derivative solves g = begun + (dF/dlog q)^T g.
    """
    spare = field.zeros()

    def back(vector: FloatArray, into: LabelScores) -> FloatArray:
        adjoint = np.array(vector).reshape(begun.shape)
        for is_forth in (False, True):
            field.undo(is_forth, field.marginals, field.marginals, adjoint, into)
        return adjoint.ravel()

    system = scipy.sparse.linalg.LinearOperator(
        (begun.size, begun.size), matvec=lambda v: np.ravel(v) - back(v, spare), dtype=float
    )
    solution, _ = scipy.sparse.linalg.gmres(
        system, begun.ravel(), rtol=ACCURACY, restart=RESTART, maxiter=ROUNDS
    )
    back(solution, slopes)


def perturbed_mean_field(
    field: GridMeanField, slope: FloatArray, sides: int, threshold: float
) -> FloatArray:
    """Return dQ/dtheta, shape (K,), of converged marginals; they end at slightly moved scores.

    ``slope`` is dQ/dq, shape (H, W, L): mean-field losses depend on pixels alone.
    """

    def solve(scores: FloatArray) -> FloatArray:
        field.nodes = scores.reshape(slope.shape)
        rest(field, threshold)
        return field.features.pull_back_labels(field.lower_bound()[2])

    return perturbed_gradient(solve, field.nodes.ravel(), slope.ravel(), sides)
