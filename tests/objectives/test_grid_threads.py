"""Pictures are worked on at the same time, by kernels that let other threads run."""

import importlib
import pkgutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba.core.dispatcher import Dispatcher

import engine.kernels
from engine.crf.grid_features import GridExample
from engine.learning.segmentation import marginal_fitting
from engine.objectives.grid_inner import GridSetInnerProblem
from engine.objectives.learning_dual import make_learning_dual
from engine.objectives.marginal_losses import LossOptions
from engine.solvers.iterate import Iterate
from engine.structures.grid import GridStructure
from tests.reference.tiny_grids import tiny_example

PATIENCE = 60.0  # seconds; only a failure waits so long


class Meeting(Sequence[GridExample]):
    """Hands out an example only when two threads ask at the same time."""

    def __init__(self, examples: list[GridExample]) -> None:
        self._examples = examples
        self.barrier: threading.Barrier | None = None

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if self.barrier is not None:
            self.barrier.wait(PATIENCE)
        return self._examples[index]


def examples() -> list[GridExample]:
    return [tiny_example(np.random.default_rng(seed)) for seed in range(4)]


def test_two_pictures_are_solved_at_the_same_time() -> None:
    alone, meeting = GridSetInnerProblem(examples(), 0.5, threads=1), Meeting(examples())
    together = GridSetInnerProblem(meeting, 0.5, threads=2)
    meeting.barrier = threading.Barrier(2)
    theta = np.random.default_rng(9).normal(size=14)
    one, two = (problem.maximise(theta, None, 1e-6) for problem in (alone, together))
    assert one.log_partition == two.log_partition
    assert np.array_equal(one.statistics, two.statistics)


def test_two_pictures_of_a_step_are_asked_at_the_same_time() -> None:
    theta, meeting = np.random.default_rng(9).normal(size=14), Meeting(examples()[:2])
    answers = []
    for pictures, threads in ((examples()[:2], 1), (meeting, 2)):
        with ThreadPoolExecutor(threads) as pool:
            structures = [GridStructure(pictures, 0.5, k) for k in range(2)]
            dual = make_learning_dual([s.observed for s in structures], 1.0)
            iterate = Iterate(structures, dual, pool.map)
            iterate.begin()
            if pictures is meeting:
                meeting.barrier = threading.Barrier(2)
            answers.append(iterate.ask(range(2), theta))
    for alone, together in zip(*answers, strict=True):
        assert alone.gap == together.gap
        assert np.array_equal(alone.statistics, together.statistics)


def test_two_losses_are_computed_at_the_same_time() -> None:
    options = LossOptions("clique-logistic", iterations=3)
    alone = marginal_fitting.fit_marginals(examples(), options, ridge=1.0, threads=1)
    barrier = threading.Barrier(2)

    def meet(*arguments):  # type: ignore[no-untyped-def]
        barrier.wait(PATIENCE)
        return marginal_fitting.loss_and_gradient(*arguments)

    together = marginal_fitting.fit_marginals(examples(), options, ridge=1.0, threads=2, loss=meet)
    assert np.array_equal(alone.theta, together.theta)


def test_the_kernels_of_pictures_release_the_lock() -> None:
    names = {module.name for module in pkgutil.iter_modules(engine.kernels.__path__)}
    of_pictures = {"backpropagation", "edge_codes", "gradient_blocks", "grid_chains"}
    of_pictures |= {"grid_entropy", "class_losses", "sinusoids"}
    of_pictures |= {"ising_grid", "maxflow_grid"}
    assert of_pictures <= names
    for name in of_pictures:
        module = importlib.import_module(f"engine.kernels.{name}")
        kernels = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
        assert kernels
        for kernel in kernels:
            assert kernel.targetoptions.get("nogil"), f"{name}.{kernel.__name__}"
