"""Runs of learning on images, with the parameters of every moment kept for later judgement."""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.common.kept_results import Arrays
from benchmarks.common.reporting import REAL_DATA, RESULTS
from engine.core.progress import Progress
from engine.crf.grid_features import GridExample
from engine.crf.image_features import compute_image_features
from engine.crf.image_grid import model_shape, shrink_image, shrink_mask
from engine.datasets.image_folder import list_images
from engine.kernels.threads import one_blas_thread
from engine.learning.segmentation.grid_readout import predict_marginals
from engine.learning.segmentation.marginal_fitting import (
    LONG_MEMORY,
    estimate_metric,
    fit_marginals,
)
from engine.learning.segmentation.mask_progress import SegmentationReporter
from engine.learning.segmentation.mask_solvers import (
    SegmentationTask,
    solve_by_frank_wolfe,
    solve_in_theta,
)
from engine.objectives.grid_chains import GridChains
from engine.objectives.marginal_losses import LossOptions
from engine.solvers.control import Callbacks, Limits
from engine.solvers.frank_wolfe import follow_average
from engine.solvers.lbfgs import MEMORY

HORSES = REAL_DATA / "weizmann_horses"
RIDGE = 1e-3  # of the mean loss a pixel: lambda = 3420 for the 3.42 million pixels of the paper

JUDGING_SWEEPS = 60


@dataclass(slots=True)
class Moment:
    """Parameters at one time of a run."""

    seconds: float
    theta: np.ndarray


@dataclass(slots=True)
class LearningRun:
    """One method's way through time; ``lower`` and ``upper`` are its certificate, if any."""

    name: str
    moments: list[Moment] = field(default_factory=list)
    seconds: float = 0.0
    status: str = ""
    lower: float | None = None
    upper: float | None = None

    @property
    def theta(self) -> np.ndarray:
        """The last parameters."""
        return self.moments[-1].theta

    def to_arrays(self) -> Arrays:
        """What a later process needs to go on with this run."""
        times = [moment.seconds for moment in self.moments]
        bounds = [np.nan if bound is None else bound for bound in (self.lower, self.upper)]
        return {
            "name": self.name,
            "times": times,
            "thetas": np.array([moment.theta for moment in self.moments]),
            "seconds": self.seconds,
            "status": self.status,
            "bounds": bounds,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "LearningRun":
        """The run that ``to_arrays`` told of."""
        moments = zip(arrays["times"], arrays["thetas"], strict=True)
        lower, upper = (None if np.isnan(bound) else float(bound) for bound in arrays["bounds"])
        return cls(
            str(arrays["name"]),
            [Moment(float(seconds), theta) for seconds, theta in moments],
            float(arrays["seconds"]),
            str(arrays["status"]),
            lower,
            upper,
        )


def horses_parser(description: str) -> argparse.ArgumentParser:
    """The options of every experiment on the horses."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=HORSES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, help="limit of each run")
    parser.add_argument("--train", type=int, help="pictures to learn from; all by default")
    parser.add_argument("--test", type=int, help="pictures to test on; all by default")
    parser.add_argument("--side", type=int, help="longest side of a model, pixels")
    return parser


def complete(
    args: argparse.Namespace, name: str, quick: float, whole: float, side: int = 200
) -> argparse.Namespace:
    """Fill in what was not given: the folder, the seconds of a run, the size of the data."""
    args.out = args.out or RESULTS / (f"{name}-quick" if args.quick else name)
    sizes = (12, 6, 56, quick) if args.quick else (None, None, side, whole)
    for option, value in zip(("train", "test", "side", "seconds"), sizes, strict=True):
        if getattr(args, option) is None:
            setattr(args, option, value)
    return args


def load_horses(
    folder: Path, n_train: int | None, n_test: int | None, max_side: int
) -> tuple[SegmentationTask, list[GridExample]]:
    """The learning problem of the horses, and the pictures to test on; None takes all."""
    train = load_examples(folder / "train", n_train, max_side)
    test = load_examples(folder / "test", n_test, max_side)
    sizes = [example.labels.size for example in train]
    task = SegmentationTask(train, sizes, RIDGE * sum(sizes), 0.5)
    numbers = f"{len(train)} + {len(test)} pictures, {sum(sizes)} pixels"
    print(f"{numbers}, lambda {task.ridge:.6g}", flush=True)
    return task, test


def load_examples(folder: Path, count: int | None, max_side: int) -> list[GridExample]:
    """Read the first pictures of a folder with their masks."""
    examples = []
    for file in list_images(folder)[:count]:
        image = file.read_image()
        mask = file.read_mask((image.shape[0], image.shape[1]))
        shape = model_shape(mask.shape, max_side)
        features = compute_image_features(shrink_image(image, shape))
        examples.append(GridExample(features, shrink_mask(mask, shape)))
    return examples


class _Recorder(SegmentationReporter):
    """Keeps the parameters of every report, leaving out trial steps that were rejected."""

    def __init__(self, run: LearningRun) -> None:
        self._run = run
        self._start = time.perf_counter()
        super().__init__((), 0.5, lambda progress: None)

    def __call__(self, progress: Progress) -> None:
        if self.theta is not None:
            keep(self._run, time.perf_counter() - self._start, self.theta)


class _WalkRecorder(SegmentationReporter):
    """Keeps every theta that an oracle is asked about, and the weighted average of them."""

    def __init__(self, run: LearningRun, averaged: LearningRun) -> None:
        self._run, self._average_run = run, averaged
        self._last: np.ndarray | None = None
        self._average: np.ndarray | None = None
        self._steps = 0
        self._start = time.perf_counter()
        super().__init__((), 0.5, lambda progress: None)

    @property
    def theta(self) -> np.ndarray | None:
        """The parameters asked about last."""
        return self._last

    @theta.setter
    def theta(self, value: np.ndarray | None) -> None:
        if value is None or (self._last is not None and np.array_equal(value, self._last)):
            return  # a certificate asks for all pictures at one theta: that is no step
        now = time.perf_counter() - self._start
        self._steps += 1
        old = value if self._average is None else self._average
        self._last, self._average = value, follow_average(old, value, self._steps)
        keep(self._run, now, value)
        keep(self._average_run, now, self._average)


def keep(run: LearningRun, seconds: float, theta: np.ndarray) -> None:
    """Keep a moment unless hardly any time has passed since the one before."""
    if not run.moments or seconds > 1.02 * run.moments[-1].seconds + 0.01:
        run.moments.append(Moment(seconds, np.array(theta)))


def run_theta(task: SegmentationTask, seconds: float, gap: float) -> LearningRun:
    """MLE-Struct solved in theta on growing subsets, to a certified gap."""
    run = LearningRun("theta")
    recorder = _Recorder(run)
    limits = Limits(relative_gap=gap, max_seconds=seconds)
    with one_blas_thread():
        result = solve_in_theta(task, limits, Callbacks(recorder), recorder)
    run.seconds, run.status = result.seconds, result.status.value
    run.lower, run.upper = result.lower_bound, result.objective
    run.moments.append(Moment(result.seconds, result.theta))
    return run


def run_blocks(
    task: SegmentationTask, seconds: float, step_rule: str, max_steps: int | None = None
) -> tuple[LearningRun, ...]:
    """MLE-Struct by block-coordinate Frank-Wolfe: the iterates, and their weighted average."""
    run = LearningRun("MLE-Struct" if step_rule == "open-loop" else "MLE-Struct, line search")
    average = LearningRun(f"{run.name}-wavg")
    recorder = _WalkRecorder(run, average)
    with one_blas_thread():
        result = solve_by_frank_wolfe(
            task,
            Limits(relative_gap=1e-9, max_iterations=max_steps, max_seconds=seconds),
            Callbacks(recorder),
            recorder,
            by_blocks=True,
            rng=np.random.default_rng(0),
            step_rule=step_rule,
        )
    for each in (run, average):
        each.seconds, each.status = result.seconds, result.status.value
    run.lower, run.upper = result.lower_bound, result.objective
    return run, average


def run_truncated(
    task: SegmentationTask,
    iterations: int,
    seconds: float,
    options: LossOptions | None = None,
    start: np.ndarray | None = None,
    max_steps: int = 1000,
    in_metric: bool = False,
) -> LearningRun:
    """Truncated fitting ("domke40" for 40 iterations), by default of the surrogate likelihood.

    As published, L-BFGS works in the parameters themselves; ``in_metric`` gives it the estimate of
    the Hessian, and the long memory, that Table II's fits have. The estimate's time counts.
    """
    chosen = options or LossOptions("surrogate-likelihood", rho=task.rho)
    run = LearningRun(f"domke{iterations}" + ("-metric" if in_metric else ""))
    started = time.perf_counter()
    metric = estimate_metric(task.examples, start, task.ridge) if in_metric else None
    before = time.perf_counter() - started
    fit = fit_marginals(
        task.examples,
        replace(chosen, iterations=iterations),
        ridge=task.ridge,
        start=start,
        metric=metric,
        memory=LONG_MEMORY if in_metric else MEMORY,
        max_iterations=max_steps,
        max_seconds=seconds - before,
        on_evaluation=lambda theta, value, now: keep(run, before + now, theta),
    )
    run.moments.append(Moment(before + fit.seconds, fit.theta))
    run.seconds, run.status = before + fit.seconds, fit.status.value
    return run


def mean_error(theta: np.ndarray, examples: Sequence[GridExample], rho: float) -> float:
    """Mean Hamming loss of the most probable labels (MPM)."""

    def error(example: GridExample) -> float:
        nodes, _ = predict_marginals(example.features, theta, rho)
        return float(np.mean((nodes > 0.5) != example.labels))

    with ThreadPoolExecutor(2) as pool:
        return float(np.mean(list(pool.map(error, examples))))


def log_likelihood(task: SegmentationTask, theta: np.ndarray) -> float:
    """l_rho(theta) from below after `JUDGING_SWEEPS` sweeps from cold, far more than it takes
    near the optimum and hardly less than enough elsewhere."""

    def one(index: int) -> tuple[np.ndarray, float]:
        example = task.examples[index]
        chains = GridChains(example.features, task.rho, theta)
        chains.sweep(JUDGING_SWEEPS)
        return example.features.observed_statistics(example.labels), chains.upper_bound()

    with one_blas_thread(), ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(one, range(len(task.examples))))
    observed = np.sum([part[0] for part in parts], axis=0)
    penalty = 0.5 * task.ridge * float(theta @ theta)
    return float(theta @ observed) - penalty - sum(part[1] for part in parts)


def thinned(moments: Sequence[Moment], count: int) -> list[Moment]:
    """About ``count`` moments, evenly spread in the logarithm of time, the last included."""
    if len(moments) <= count:
        return list(moments)
    times = np.log([max(moment.seconds, 1e-3) for moment in moments])
    wanted = np.linspace(times[0], times[-1], count)
    chosen = sorted({int(np.argmin(np.abs(times - t))) for t in wanted} | {len(moments) - 1})
    return [moments[k] for k in chosen]
