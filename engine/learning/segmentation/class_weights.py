"""Learning of the weights of tree scores, maps and edges of class models, by a chosen loss."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, ignore_progress
from engine.core.status import Status
from engine.crf.class_features import ClassExample, ClassLayout
from engine.kernels.threads import count_threads, one_blas_thread
from engine.kernels.work_time import wall_seconds
from engine.metrics.classes import Confusion, confusion
from engine.objectives.class_batches import Batch, batch_loss_and_gradient, in_batches
from engine.objectives.class_messages import ClassMessages
from engine.objectives.grid_inner import GridSetInnerProblem
from engine.objectives.grid_messages import converge
from engine.objectives.marginal_losses import Gradient, LossOptions
from engine.solvers.control import Callbacks, Limits
from engine.solvers.lbfgs import minimise_by_lbfgs
from engine.solvers.result import LearningResult
from engine.solvers.theta_ascent import ThetaAscent

SWEEPS = 4
"""Number of sweeps for the univariate loss: with good unaries messages nearly converge by then."""

TOLERANCE = 5e-4
"""Relative decrease of the loss at convergence: below it the held-out error does not change."""

MAX_STEPS = 30

MEMORY = 30
"""Number of steps that L-BFGS stores."""

EM_ROUNDS = 4
"""Number of EM rounds, which estimate hidden labels: later rounds change little."""

INNER_RISE = 0.3
"""Largest error of unconverged messages, as a share of a step's predicted rise of the objective;
messages continue from there at the next step."""

EXPECTATION_SWEEPS = 20
"""Number of sweeps for the expected statistics of hidden labels."""

EDGE_VARIANCE = 0.05
"""Variance of an edge's agreement in the estimate of the curvature; the value matters little."""


ClassLoss = Callable[[ClassExample, FloatArray, LossOptions], Gradient]
"""Loss of one label map and its gradient in theta."""


def fit_loss(
    examples: Sequence[ClassExample],
    options: LossOptions,
    *,
    ridge: float,
    centre: FloatArray | None = None,
    start: FloatArray | None = None,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
    max_seconds: float | None = None,
    should_stop: StopCallback,
    loss: ClassLoss | None = None,
) -> LearningResult:
    """Minimise a loss of the known pixels, plus lambda/2 ||theta - centre||^2.

    Parameters
    ----------
    examples : sequence of ClassExample
    options : LossOptions; Potts edges may only agree or not, without a weight for pairs of classes.
    ridge : float, lambda > 0 of the whole loss
    centre : ndarray, shape (K,), centre of the ridge; by default the weights of the trees alone.
    start : ndarray, shape (K,), optional; the centre by default
    max_steps : int, of L-BFGS
    tolerance : float, relative decrease of the loss at convergence
    max_seconds : float, optional; all pictures are evaluated once even if no seconds remain.
    should_stop : StopCallback
    loss : computes the loss of one picture that the options name, one picture at a time; by default
        that of `loss_and_gradient`, of pictures side by side.

    Returns
    -------
    LearningResult
        Without a certificate: the loss is not convex.

    Raises
    ------
    StoppedError
        If stopped before all pictures had been evaluated.
    """
    layout = examples[0].features.layout
    plain = layout.plain() if centre is None else centre
    theta = plain if start is None else start
    free = free_parameters(layout, is_potts=options.is_potts)
    metric = estimate_curvature(examples, ridge)[np.ix_(free, free)]
    batches = in_batches(examples, options) if loss is None else [[one] for one in examples]

    def loss_of(batch: Batch, theta: FloatArray) -> Gradient:
        if loss is None:
            return batch_loss_and_gradient(batch, theta, options)
        return loss(batch[0], theta, options)

    def whole(change: FloatArray) -> FloatArray:
        theta = plain.copy()
        theta[free] += change
        return theta

    with ThreadPoolExecutor(count_threads()) as pool, one_blas_thread():

        def objective(change: FloatArray) -> tuple[float, FloatArray]:
            theta = whole(change)
            away = theta - plain
            value, gradient = 0.5 * ridge * float(away @ away), ridge * away
            parts = pool.map(lambda some: loss_of(some, theta), batches)
            for part, slope in parts:
                value, gradient = value + part, gradient + slope
            return value, gradient[free]

        fit = minimise_by_lbfgs(
            objective,
            (theta - plain)[free],
            metric=metric,
            memory=MEMORY,
            tolerance=tolerance,
            max_iterations=max_steps,
            max_seconds=max_seconds,
            should_stop=should_stop,
        )
    if fit.status is Status.CANCELLED:
        raise StoppedError("Learning was stopped.")
    return replace(fit, theta=read_only(whole(fit.theta))).as_result()


def fit_likelihood(
    examples: Sequence[ClassExample],
    *,
    ridge: float,
    relative_gap: float,
    start: FloatArray | None = None,
    max_seconds: float | None = None,
    should_stop: StopCallback,
) -> LearningResult:
    """Maximise the surrogate likelihood of the known labels, less lambda/2 ||theta||^2.

    If some pixels are hidden, surrogate EM: their expected statistics are computed at the current
    weights, then the weights are learned as from full labels, and so on. The certificate is that of
    the last of these problems; EM as a whole only decreases its objective.

    Parameters
    ----------
    examples, ridge, start, max_seconds, should_stop : as for `fit_loss`
    relative_gap : float, stop at this certified gap divided by the size of the objective

    References
    ----------
    Domke 2013, section 4.
    """
    started = wall_seconds()
    layout = examples[0].features.layout
    theta = layout.plain() if start is None else start
    curvature = estimate_curvature(examples, ridge)
    is_whole = all(example.n_known == example.labels.size for example in examples)
    rounds = 1 if is_whole else EM_ROUNDS
    for step in range(rounds):
        with ThreadPoolExecutor(count_threads()) as pool:
            parts = pool.map(expected_statistics, examples, repeat(theta))
            observed = np.asarray(np.sum(list(parts), axis=0))
        problem = GridSetInnerProblem(
            examples,
            0.5,
            threads=count_threads(),
            curvature=curvature,
            observed=observed,
            should_stop=should_stop,
        )
        left = None
        if max_seconds is not None:
            left = max(max_seconds - (wall_seconds() - started), 0.0) / (rounds - step)
        result = ThetaAscent(
            [problem],
            ridge,
            Limits(relative_gap=relative_gap, max_iterations=MAX_STEPS, max_seconds=left),
            Callbacks(ignore_progress, should_stop),
            memory=MEMORY,
            refresh_ratio=float("inf"),
            inner_rise=INNER_RISE,
        ).solve(theta)
        theta = result.theta
        if result.status is Status.CANCELLED:
            raise StoppedError("Learning was stopped.")
    return replace(result, seconds=wall_seconds() - started)


def expected_statistics(example: ClassExample, theta: FloatArray) -> FloatArray:
    """Return phi of the pseudomarginals given the known labels, shape (K,).

    The E step of surrogate EM: messages run with every known pixel fixed to its label.

    References
    ----------
    Domke 2013, section 4.
    """
    if example.n_known == example.labels.size:
        return example.observed_statistics()
    chains = ClassMessages(example.features, theta)
    chains.hold(example.labels)
    chains.sweep(EXPECTATION_SWEEPS)
    return chains.summarise(chains.marginals())[0]


def free_parameters(layout: ClassLayout, *, is_potts: bool) -> IntArray:
    """Return the indices of the learned parameters: all, or all but those of label pairs."""
    return np.arange(layout.size - (2 * layout.n_classes**2 if is_potts else 0))


def estimate_curvature(examples: Sequence[ClassExample], ridge: float) -> FloatArray:
    """Estimate the Hessian of a loss, (K, K), with pixels and edges treated as independent.

    It only preconditions the steps: a poor estimate costs iterations, never correctness.
    """
    layout = examples[0].features.layout
    n = layout.n_classes
    nodes = np.zeros((n, layout.n_node, layout.n_node))
    edges: FloatArray = np.zeros((1, 1))
    counts = np.zeros((2, n, n))
    for example in examples:
        features, known = example.features, example.n_known
        stride = max(1, example.labels.size // 2000)
        trees = features.trees.reshape(-1, n)[::stride].astype(np.float64)
        maps = features.maps.reshape(example.labels.size, layout.n_maps)[::stride].astype(
            np.float64
        )
        share = np.exp(trees - trees.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        scale = known / max(len(trees), 1)
        for x in range(n):
            own = trees[:, x]
            rows = np.column_stack([np.ones(len(own)), own, np.clip(own, -1.5, 1.5), maps])
            variance = share[:, x] * (1 - share[:, x]) * scale
            nodes[x] += (rows * variance[:, None]).T @ rows
        mean = share.mean(axis=0)
        for way, (codes, basis) in enumerate(
            zip(
                features.codes,
                (features.edges.horizontal_basis, features.edges.vertical_basis),
                strict=True,
            )
        ):
            often = np.bincount(codes.ravel(), minlength=len(basis)) * (known / example.labels.size)
            edges = edges + EDGE_VARIANCE * (basis * often[:, None]).T @ basis
            counts[way] += known * (EDGE_VARIANCE * np.outer(mean, mean) + 1e-3 * np.diag(mean))
    matrix = block_diag(*nodes, edges, np.diag(counts.ravel()))
    return np.asarray(
        matrix + (ridge + 1e-6 * np.trace(matrix) / len(matrix)) * np.eye(len(matrix))
    )


MESSAGE_TOLERANCE = 1e-3
MAX_SWEEPS = 60


def rest_messages(chains: ClassMessages) -> bool:
    """Sweep until no message changes by a thousandth; return True if messages converged."""
    return converge(chains, MESSAGE_TOLERANCE, batch=2, max_sweeps=MAX_SWEEPS)


def judge_classes(
    examples: Sequence[ClassExample], theta: FloatArray, should_stop: StopCallback
) -> list[Confusion]:
    """Return the confusion matrix of each picture: known labels against most probable ones."""

    def one(example: ClassExample) -> Confusion:
        if should_stop():
            raise StoppedError("Learning was stopped.")
        chains = ClassMessages(example.features, theta)
        rest_messages(chains)
        predicted = chains.marginals().argmax(axis=2).astype(np.uint8)
        return confusion(predicted, example.labels, example.features.layout.n_classes)

    with ThreadPoolExecutor(count_threads()) as pool, one_blas_thread():
        return list(pool.map(one, examples))


def network_alone(layout: ClassLayout) -> FloatArray:
    """Return the weights with which scores are the network's maps, without edges.

    The maps of the network are the last ones: one for two classes, else one for each class.
    """
    theta = np.zeros(layout.size)
    nodes = layout.split(theta)[0]
    if layout.n_classes == 2:
        nodes[1, -1] = 1.0
    else:
        nodes[:, -layout.n_classes :] = np.eye(layout.n_classes)
    return theta


def network_scores(example: ClassExample) -> NDArray[np.float32]:
    """Return the scores of all classes by the network, whose maps are the last ones."""
    n_classes, maps = example.features.layout.n_classes, example.features.maps
    if n_classes > 2:
        return maps[:, :, -n_classes:]
    return np.concatenate([np.zeros_like(maps[:, :, -1:]), maps[:, :, -1:]], axis=2)


def trees_alone(layout: ClassLayout) -> FloatArray:
    """Return the weights with which scores are those of the trees, without edges."""
    theta = np.zeros(layout.size)
    layout.split(theta)[0][:, 1] = 1.0
    return theta
