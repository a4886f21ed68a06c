"""Domke 2013, Figure 7: truncation, perturbation and back-propagation by where inference stops.

Scenes of several classes as in `benchmarks.papers.domke2013.backgrounds`, the univariate
logistic loss, messages of rho = 1/2. Each method learns from the same start (independent pixels)
by L-BFGS, restarted while a restart lowers the loss. Results are judged with converged messages,
whatever it learned with. Then one gradient by each way, at the parameters that most sweeps have
learned: processor seconds, and its largest difference from the implicit gradient of messages at
rest, over its largest entry. A threshold is the largest relative change of a message in the last
sweep. Perturbed messages start from those of the scores themselves.
"""

from dataclasses import dataclass, field
from time import process_time

import numpy as np

from benchmarks.common.reporting import new_figure, print_table, save_figure
from benchmarks.papers.domke2013.backgrounds import RIDGE
from benchmarks.papers.domke2013.converged_gradients import gradient_by, rest
from benchmarks.papers.domke2013.picture_losses import PaperOptions, loss_and_gradient
from engine.core.arguments import FloatArray
from engine.core.progress import never_stop
from engine.core.status import Status
from engine.crf.class_features import ClassExample
from engine.kernels.threads import one_blas_thread
from engine.learning.segmentation.class_weights import estimate_curvature, fit_loss
from engine.objectives.class_messages import ClassMessages
from engine.objectives.marginal_losses import LossOptions
from engine.solvers.lbfgs import minimise_by_lbfgs

LOSS = "univariate-logistic"
ITERATIONS = (5, 10, 20, 40)
THRESHOLDS = (1e-1, 1e-3, 1e-5)  # back-propagation is in single precision
SIDES = "two-sided"
FINER = (1e-7, 1e-9)  # perturbation only
MOST_SWEEPS = 500
TOLERANCE = 1e-6  # relative decrease in a step
MOST_STEPS = 500
LOOKS = 10  # at each descent, evenly over the logarithm of time
AT_REST = 1e-6


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds and relative error of one gradient over all pictures."""

    seconds: float
    error: float


@dataclass(slots=True)
class Descent:
    """A fit followed: what the best parameters so far are worth with messages at rest.

    Parameters
    ----------
    seconds : list of float, processor time
    loss : list of float, mean over known pixels, nats
    error : list of float, share of wrong pixels
    starts : int, how often L-BFGS was begun
    ended : str
    theta : ndarray, shape (K,), the best parameters by the way's own loss
    """

    seconds: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    starts: int = 0
    ended: str = ""
    theta: FloatArray = field(default_factory=lambda: np.zeros(0))


Way = tuple[str, LossOptions]
"""Kind of a gradient, and where inference stops."""


def ways(iterations: tuple[int, ...], thresholds: tuple[float, ...]) -> dict[str, Way]:
    """Return every way to the gradient by name."""
    made = {
        f"truncated, {n} sweeps": ("truncated", LossOptions(LOSS, iterations=n)) for n in iterations
    }
    for t in thresholds:
        made[f"back-propagation to {t:g}"] = ("truncated", LossOptions(LOSS, threshold=t))
    for t in (*thresholds, *FINER):
        made[f"perturbation to {t:g}"] = (SIDES, LossOptions(LOSS, threshold=t))
    return made


def total(examples: list[ClassExample], theta: FloatArray, way: Way) -> tuple[float, FloatArray]:
    """Return the summed loss and its gradient."""
    gradient, options = way
    parts = [gradient_by(gradient, example, theta, options) for example in examples]
    return sum(value for value, _ in parts), np.asarray(sum(slope for _, slope in parts))


def compare_gradients(
    examples: list[ClassExample], theta: FloatArray, compared: dict[str, Way]
) -> dict[str, Cost]:
    """Time one gradient of every way, and hold it against the implicit one."""
    exact = total(examples, theta, ("implicit", LossOptions(LOSS)))[1]
    costs = {}
    for name, way in compared.items():
        total(examples[:1], theta, way)  # compiles
        started = process_time()
        found = total(examples, theta, way)[1]
        seconds = process_time() - started
        costs[name] = Cost(seconds, float(np.abs(found - exact).max() / np.abs(exact).max()))
    return costs


def judge(examples: list[ClassExample], theta: FloatArray) -> tuple[float, float]:
    """Return the mean loss (nats) and the share of wrong pixels with messages at rest."""
    chances, wrong = [], []
    for example in examples:
        chains = ClassMessages(example.features, theta, is_double=True)
        rest(chains, AT_REST)
        known = example.labels < example.features.layout.n_classes
        marginals, labels = chains.marginals()[known], example.labels[known]
        chances.append(marginals[np.arange(len(labels)), labels])
        wrong.append(marginals.argmax(axis=1) != labels)
    likely = np.maximum(np.concatenate(chances), 1e-12)
    return float(-np.log(likely).mean()), float(np.concatenate(wrong).mean())


def follow(examples: list[ClassExample], start: FloatArray, way: Way, seconds: float) -> Descent:
    """Learn by one way, and judge what it had at some moments."""
    ridge = RIDGE * sum(example.n_known for example in examples)
    metric = estimate_curvature(examples, ridge)
    descent = Descent()
    trail: list[tuple[float, float, FloatArray]] = []  # seconds, loss, theta; ever smaller losses
    started = process_time()

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = total(examples, theta, way)
        value += 0.5 * ridge * float(theta @ theta)
        if not trail or value < trail[-1][1]:
            trail.append((process_time() - started, value, theta.copy()))
        return value, gradient + ridge * theta

    objective(start)
    has_gained = True
    while has_gained:
        before = trail[-1][1]
        fit = minimise_by_lbfgs(
            objective,
            trail[-1][2],
            metric=metric,
            tolerance=TOLERANCE,
            max_iterations=MOST_STEPS,
            should_stop=lambda: process_time() - started > seconds,
        )
        descent.starts += 1
        is_stopped = fit.status is Status.CANCELLED
        has_gained = not is_stopped and trail[-1][1] < before - TOLERANCE * abs(before)
    descent.theta = trail[-1][2]
    descent.ended = "time limit" if is_stopped else fit.status.value
    times = np.array([moment for moment, _, _ in trail])
    looks = np.geomspace(times[0], times[-1], LOOKS)
    for place in np.unique(np.searchsorted(times, looks, side="right") - 1):
        loss, error = judge(examples, trail[place][2])
        descent.seconds.append(float(times[place]))
        descent.loss.append(loss)
        descent.error.append(error)
    return descent


def run(
    examples: list[ClassExample],
    seconds: float,
    iterations: tuple[int, ...] = ITERATIONS,
    thresholds: tuple[float, ...] = THRESHOLDS,
) -> tuple[dict[str, Cost], dict[str, Descent]]:
    """Compare gradients and learning, print both tables and draw Figure 7."""
    compared = ways(iterations, thresholds)
    with one_blas_thread():  # small products on several threads take a hundred times as long
        start = fit_loss(
            examples,
            PaperOptions("independent"),
            ridge=RIDGE * sum(example.n_known for example in examples),
            centre=np.zeros(examples[0].features.layout.size),
            max_steps=MOST_STEPS,
            tolerance=TOLERANCE,
            should_stop=never_stop,
            loss=loss_and_gradient,
        ).theta
        shape = examples[0].features.shape
        print(f"\n{len(examples)} pictures of {shape[0]} x {shape[1]}: {judge(examples, start)}")
        descents = {}
        for name, way in compared.items():
            descents[name] = found = follow(examples, start, way, seconds)
            print(f"{name}: {found.loss[-1]:.5f}, {found.ended}", flush=True)
        longest = descents[f"truncated, {iterations[-1]} sweeps"]
        costs = compare_gradients(examples, longest.theta, compared)
    rows = [
        [name, c.seconds, c.error, d.loss[-1], d.error[-1], d.seconds[-1], d.starts, d.ended]
        for (name, c), d in zip(costs.items(), descents.values(), strict=True)
    ]
    header = ["gradient", "seconds of one", "its error", "loss learned", "training error"]
    header += ["at second", "starts", "ended"]
    print_table("Figure 7 (published: as curves only)", header, rows)
    _draw(costs, descents)
    return costs, descents


def _draw(costs: dict[str, Cost], descents: dict[str, Descent]) -> None:
    figure, axes = new_figure(2, 2, figsize=(11, 8))
    kinds = ("truncated", "back-propagation", "perturbation")
    for kind, place in zip(kinds, (axes[0, 1], axes[1, 0], axes[1, 1]), strict=True):
        own = [name for name in costs if name.startswith(kind)]
        line = [(costs[name].seconds, costs[name].error) for name in own]
        axes[0, 0].loglog(*np.array(line).T, "o-", label=kind)
        for name, cost in zip(own, line, strict=True):
            axes[0, 0].annotate(name.split()[-1 if "to" in name else 1], cost, fontsize=6)
            place.plot(descents[name].seconds, descents[name].loss, ".-", label=name)
        place.set_xscale("log")
        place.set_xlabel("processor seconds of learning")
        place.set_ylabel("training loss, nats a pixel")
        place.legend(fontsize=7)
    axes[0, 0].set_xlabel("processor seconds of a gradient")
    axes[0, 0].tick_params(axis="x", which="minor", labelbottom=False)
    axes[0, 0].set_ylabel("its relative error")
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    save_figure(figure, "domke_figure_7")
