"""Reports on learning for pages: its progress, and the outcome of the model."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.db import IntegrityError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from PIL import Image

from engine import Progress, StoppedError
from webapp.common import formats
from webapp.files.storage import keep_bytes
from webapp.jobs.context import JobContext
from webapp.segmentation.labelled_files import LabelledFiles, left_out_sentence
from webapp.segmentation.models import HeldOutPoint, Segmenter
from webapp.segmentation.rendering import png_bytes, probability_picture
from webapp.translation.lazy import gettext_lazy

PREVIEW_SIDE = 240  # pixels; small maps are enlarged, so that single pixels stay visible
PREVIEWS = 2
REMOVED = gettext_lazy("The model was removed meanwhile.")


class LearningWatcher:
    """Progress callback that stores the held-out error and two maps of current marginals.

    ``steps`` counts those of all stages: first on fewer images, then on all. After an interruption
    it continues from the stage that was resumed, as the plot does.
    """

    def __init__(self, context: JobContext, segmenter: Segmenter) -> None:
        self._context = context
        self._segmenter = segmenter
        self._last_iteration = -1
        self.steps = 0

    def __call__(self, progress: Progress) -> None:
        self._context.on_progress(progress)
        self.steps = max(self.steps, progress.iteration)
        preview = getattr(progress, "preview", None)
        if preview is None or progress.iteration == self._last_iteration:
            return
        self._last_iteration = progress.iteration
        if not Segmenter.objects.filter(pk=self._segmenter.pk).exists():
            raise StoppedError(str(REMOVED))
        if preview.error is not None:
            self._keep_error(progress.iteration, preview.error)
        for number, marginals in enumerate(preview.marginals[:PREVIEWS]):
            _write_preview(self._segmenter.preview_path(number), marginals)

    def _keep_error(self, iteration: int, error: float) -> None:
        try:
            HeldOutPoint.objects.update_or_create(
                segmenter=self._segmenter,
                iteration=iteration,
                defaults={"seconds": self._context.seconds, "error": error},
            )
        except IntegrityError as no_segmenter:
            raise StoppedError(str(REMOVED)) from no_segmenter


def _write_preview(path: Path, marginals: np.ndarray) -> None:
    picture = probability_picture(np.asarray(marginals, dtype=np.float32))
    factor = max(1, PREVIEW_SIDE // max(picture.size))
    enlarged = picture.resize(
        (picture.width * factor, picture.height * factor), Image.Resampling.NEAREST
    )
    keep_bytes(path, png_bytes(enlarged))


def learning_outcome(
    context: JobContext,
    trained: Any,
    steps: int,
    learned: LabelledFiles,
    held_out: LabelledFiles | None,
) -> dict[str, Any]:
    """Return the outcome of the learned model for pages, as JSON values.

    ``iterations`` are those of the engine's last stage, the only one on all images. ``steps`` are
    those of all stages: as last reported, plus those after that report.
    """
    figures = trained.result.figures()
    n_learned, left_out = len(learned.used), list(learned.left_out)
    if held_out is not None:
        left_out += held_out.left_out
    outcome = {
        **{name: finite(value) for name, value in figures.items()},
        "loss": trained.loss,
        "errors": {name: finite(float(value)) for name, value in trained.errors.items()},
        "steps": steps - trained.result.trajectory[-1].iteration + trained.result.iterations,
        "ridge": float(trained.model.ridge),
        "converged": trained.result.status.is_converged,
        "n_learned": n_learned,
        "n_held_out": 0 if held_out is None else len(held_out.used),
        "left_out": left_out,
        "detail": context.job.parameters.get("detail", []),
        "n_maps": trained.model.n_maps,
    }
    gap = outcome["relative_gap"] if trained.result.is_certified else None
    sentences = [
        _ending(n_learned, gap, has_converged=outcome["converged"]),
        left_out_sentence(left_out),
        limit_sentence(trained.left_out),
    ]
    outcome["sentence"] = " ".join(filter(None, sentences))
    return outcome


def _ending(n_learned: int, gap: float | None, *, has_converged: bool) -> str:
    """Return how learning ended, and on how many images, in one sentence."""
    is_within = gap is not None and gap <= 1
    if is_within and has_converged:
        words = ngettext(
            "Certified: within %(gap)s of the best fit, from %(count)s image.",
            "Certified: within %(gap)s of the best fit, from %(count)s images.",
            n_learned,
        )
    elif is_within:
        words = ngettext(
            "Stopped early: within %(gap)s of the best fit, from %(count)s image.",
            "Stopped early: within %(gap)s of the best fit, from %(count)s images.",
            n_learned,
        )
    elif has_converged:
        words = ngettext(
            "Learned, from %(count)s image.", "Learned, from %(count)s images.", n_learned
        )
    else:
        words = ngettext(
            "Stopped early, from %(count)s image.",
            "Stopped early, from %(count)s images.",
            n_learned,
        )
    return words % {"count": n_learned, "gap": formats.gap(gap)}


def limit_sentence(left_out: Sequence[str]) -> str:
    """Return the sentence that lists the work a time limit left out, or nothing."""
    if not left_out:
        return ""
    return _("The time limit left out: %(work)s.") % {"work": "; ".join(left_out)}


def finite(value: float | int | str) -> float | int | str | None:
    """Return the value for JSON: None for a bound that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
