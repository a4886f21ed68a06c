"""Progress reports of segmentation learning: bounds, and errors on held-out pictures."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.array_store import MEMORY_BYTES, ArrayStore
from engine.core.errors import StoppedError
from engine.core.progress import Progress, ProgressCallback, StopCallback, never_stop
from engine.core.status import Status
from engine.crf.grid_features import GridExample
from engine.kernels.threads import count_threads
from engine.kernels.work_time import wall_seconds
from engine.learning.segmentation.grid_readout import predict_marginals
from engine.solvers.result import LearningResult

MAX_PREVIEWS = 2
"""Number of held-out pictures whose marginals are part of a progress report."""

PREVIEW_PATIENCE = 4.0
"""Pause between two evaluations of held-out pictures, in multiples of the last one's time: they
take a fifth of the learning time, which includes them."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationPreview:
    """Error and marginals of the current parameters on held-out pictures.

    ``error`` is the mean share of wrong pixels (MPM) over all of them; ``marginals`` are the
    first two pictures' tau_i(1) at the size of their models, float64.
    """

    error: float
    marginals: tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationProgress(Progress):
    """Progress report with a ``preview``; None without held-out pictures, or between previews."""

    preview: SegmentationPreview | None = None


class HeldOutPictures:
    """Held-out pictures for repeated evaluation, each time from their last messages.

    Parameters
    ----------
    examples : Sequence of GridExample
    rho : float, in (0, 1/2]
    threads : int, number of pictures evaluated in parallel.
    should_stop : StopCallback, called before every picture.
    """

    def __init__(
        self,
        examples: Sequence[GridExample],
        rho: float,
        *,
        threads: int | None = None,
        should_stop: StopCallback = never_stop,
    ) -> None:
        self._examples, self._rho, self._should_stop = examples, rho, should_stop
        self._threads = threads or count_threads()
        store = ArrayStore(MEMORY_BYTES // 4)  # the messages of training pictures need the rest
        self._messages = [store.keep(np.ones((4, *e.features.shape))) for e in examples]

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self._examples)

    def look(self, theta: FloatArray) -> SegmentationPreview:
        """Return the mean MPM error of the parameters, and the marginals of the first pictures.

        Raises
        ------
        StoppedError
            If ``should_stop`` returned True.
        """
        errors, shown = zip(*self._look_at_all(theta), strict=True)
        return SegmentationPreview(
            float(np.mean(errors)), tuple(nodes for nodes in shown if nodes is not None)
        )

    def errors(self, theta: FloatArray) -> FloatArray:
        """Return the MPM error of each picture, shape (M,).

        Raises
        ------
        StoppedError
            If ``should_stop`` returned True.
        """
        return np.array([error for error, _ in self._look_at_all(theta)])

    def _look_at_all(self, theta: FloatArray) -> list[tuple[float, FloatArray | None]]:
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(lambda m: self._look_at(m, theta), range(len(self))))

    def _look_at(self, index: int, theta: FloatArray) -> tuple[float, FloatArray | None]:
        if self._should_stop():
            raise StoppedError("Learning was stopped.")
        example = self._examples[index]
        nodes, _ = predict_marginals(example.features, theta, self._rho, self._messages[index])
        error = float(np.mean((nodes > 0.5) != example.labels))
        return error, nodes if index < MAX_PREVIEWS else None


class SegmentationReporter:
    """Progress callback that forwards reports, some with the held-out error and marginals.

    ``theta`` holds the current parameters. The bounds of a rehearsal belong to another problem (a
    subset of the pictures) and are therefore left out.
    """

    def __init__(
        self,
        held_out: Sequence[GridExample],
        rho: float,
        on_progress: ProgressCallback,
        should_stop: StopCallback = never_stop,
    ) -> None:
        self._held_out = HeldOutPictures(held_out, rho, should_stop=should_stop)
        self._on_progress = on_progress
        self._ready = float("-inf")  # time from which the next preview is due
        self._seconds = 0.0  # elapsed at the last report
        self._looked_at: FloatArray | None = None  # the parameters of the last preview
        self.theta: FloatArray | None = None
        self.sentence = "Learning"
        self.is_rehearsal = False
        self.seconds_before = 0.0
        self._iterations_before = 0
        self._last_iteration = -1

    def begin_stage(self, sentence: str, seconds_before: float, *, is_rehearsal: bool) -> None:
        """Start a stage; iterations and seconds continue from those of the earlier stages."""
        self.sentence, self.is_rehearsal = sentence, is_rehearsal
        self.seconds_before = seconds_before
        self._iterations_before = self._last_iteration + 1

    def __call__(self, progress: Progress) -> None:
        """Forward a report, with a preview if one is due."""
        preview = None
        if self.theta is not None and wall_seconds() >= self._ready:
            preview = self._preview(self.theta)
        self._seconds = progress.seconds + self.seconds_before
        fields = {name: getattr(progress, name) for name in Progress.__slots__}
        self._last_iteration = self._iterations_before + progress.iteration
        fields |= {
            "iteration": self._last_iteration,
            "seconds": self._seconds,
            "sentence": self.sentence,
        }
        if self.is_rehearsal:
            unknown = ("objective", "lower_bound", "gap", "relative_gap", "seconds_left")
            fields |= dict.fromkeys((*unknown, "fraction"))
        self._on_progress(SegmentationProgress(**fields, preview=preview))

    def finish(self, result: LearningResult) -> None:
        """Report a preview of the final parameters, unless already reported or cancelled."""
        is_known = self._looked_at is not None and np.array_equal(self._looked_at, result.theta)
        if is_known or result.status is Status.CANCELLED:
            return
        preview = self._preview(result.theta)
        if preview is not None:
            self._on_progress(
                SegmentationProgress(
                    sentence="Looking at the held-out images",
                    iteration=self._last_iteration,
                    seconds=self._seconds,
                    preview=preview,
                )
            )

    def _preview(self, theta: FloatArray) -> SegmentationPreview | None:
        """Return a preview on the held-out pictures; None without any, or if stopped."""
        if len(self._held_out) == 0:
            return None
        started = wall_seconds()
        try:
            preview = self._held_out.look(theta)
        except StoppedError:
            return None
        ended = wall_seconds()
        self._ready = ended + PREVIEW_PATIENCE * (ended - started)
        self._looked_at = np.array(theta)
        return preview
