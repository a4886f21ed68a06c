"""Reports of learning to segment: bounds, and how held-out pictures fare meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.progress import Progress, ProgressCallback
from engine.crf.grid_features import GridExample
from engine.learning.segmentation_prediction import predict_marginals

MAX_PREVIEWS = 2
"""Held-out pictures whose marginals travel with the progress."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationPreview:
    """How the current parameters do on held-out pictures.

    ``error`` is the mean share of wrong pixels (MPM) over all of them; ``marginals`` are the
    first two pictures' tau_i(1) at the size of their models, float64.
    """

    error: float
    marginals: tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationProgress(Progress):
    """A report of learning; ``preview`` is None without held-out pictures."""

    preview: SegmentationPreview | None = None


class SegmentationReporter:
    """Passes reports on, with the held-out error and marginals of the current parameters.

    ``theta`` holds the current parameters. The bounds of a rehearsal belong to another problem (a
    subset of the pictures) and are therefore left out.
    """

    def __init__(
        self, held_out: Sequence[GridExample], rho: float, on_progress: ProgressCallback
    ) -> None:
        self._held_out, self._rho, self._on_progress = held_out, rho, on_progress
        self.theta: FloatArray | None = None
        self.sentence = "Learning"
        self.is_rehearsal = False
        self.seconds_before = 0.0
        self._iterations_before = 0
        self._last_iteration = -1

    def begin_stage(self, sentence: str, seconds_before: float, *, is_rehearsal: bool) -> None:
        """Count iterations and seconds on from those of the stages before."""
        self.sentence, self.is_rehearsal = sentence, is_rehearsal
        self.seconds_before = seconds_before
        self._iterations_before = self._last_iteration + 1

    def __call__(self, progress: Progress) -> None:
        """Report with a preview."""
        preview = None
        if self._held_out and self.theta is not None:
            preview = preview_of(self._held_out, self.theta, self._rho)
        fields = {name: getattr(progress, name) for name in Progress.__slots__}
        self._last_iteration = self._iterations_before + progress.iteration
        fields |= {
            "iteration": self._last_iteration,
            "seconds": progress.seconds + self.seconds_before,
            "sentence": self.sentence,
        }
        if self.is_rehearsal:
            unknown = ("objective", "lower_bound", "gap", "relative_gap", "seconds_left")
            fields |= dict.fromkeys((*unknown, "fraction"))
        self._on_progress(SegmentationProgress(**fields, preview=preview))


def preview_of(
    held_out: Sequence[GridExample], theta: FloatArray, rho: float
) -> SegmentationPreview:
    """Return the mean MPM error on pictures and the marginals of the first two."""
    errors: list[float] = []
    shown: list[FloatArray] = []
    for example in held_out:
        nodes, _ = predict_marginals(example.features, theta, rho)
        errors.append(float(np.mean((nodes > 0.5) != example.labels)))
        if len(shown) < MAX_PREVIEWS:
            shown.append(nodes)
    return SegmentationPreview(float(np.mean(errors)), tuple(shown))
