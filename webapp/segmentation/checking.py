"""Accuracy of a learned model on images that it was not trained on.

Held-out images are predicted and compared as in a prediction, so that the page of the model and
the page of the prediction agree.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import repeat
from typing import Any

from django.utils.translation import gettext as _

from engine import Progress, StoppedError, evaluate_mask, predict_segmentation
from engine.metrics import Confusion, class_figures
from webapp.jobs.context import JobContext
from webapp.segmentation.labelled_files import LabelledFiles
from webapp.segmentation.uncertainty import Interval, mean_interval

MEASURES = ("error", "iou", "log_loss")


CHECKING_SHARE = 0.1
"""Share of the learning time that is reserved for the held-out images."""


def check_held_out(
    context: JobContext, model: Any, held_out: LabelledFiles, max_seconds: float
) -> dict[str, Any]:
    """Predict the held-out images, each pixel by its likelier side, and compare at full size.

    Once the job has taken ``max_seconds``, remaining images are not compared, nor is a large image
    that is still being predicted at that time.

    Returns
    -------
    dict
        The number of images, and mean and range of `MEASURES` over them; empty without images.
    """
    numbers: dict[str, list[float]] = {name: [] for name in MEASURES}
    total = len(held_out.files)

    def is_late() -> bool:
        return context.seconds > max_seconds

    def is_over() -> bool:
        return is_late() or context.should_stop()

    images, masks, maps = held_out.in_step()
    rows = zip(images, masks, repeat(None) if maps is None else maps, strict=maps is not None)
    for done, (image, mask, planes) in enumerate(rows, start=1):
        context.raise_if_stopped()
        sentence = _("Checking held-out image %(number)s of %(total)s") % {
            "number": done,
            "total": total,
        }
        context.on_progress(Progress(sentence, fraction=0.99))
        try:
            prediction = predict_segmentation(model, image, planes, should_stop=is_over)
        except StoppedError:
            context.raise_if_stopped()
            break
        scores = evaluate_mask(prediction, mask)
        found = (scores.error_mpm, scores.iou, scores.log_loss)
        for name, value in zip(MEASURES, found, strict=True):
            numbers[name].append(float(value))
        if is_late():
            break
    return _summary(numbers)


def check_classes(counts: Sequence[Confusion]) -> dict[str, Any]:
    """Return a summary of painted images judged by models not trained on them; empty without any.

    ``classes`` has a row per class over the pixels of all images; unknown figures are None.
    """
    figures = class_figures(counts)
    if figures is None:
        return {}
    known = [one for one in counts if one.counts.any()]
    numbers = {"error": [c.error for c in known], "iou": [c.mean_overlap for c in known]}
    rows = [
        {name: value if math.isfinite(value) else None for name, value in row.items()}
        for row in figures.classes
    ]
    return _summary(numbers) | {"classes": rows}


def _summary(numbers: dict[str, list[float]]) -> dict[str, Any]:
    count = len(numbers["error"])
    if not count:
        return {}
    ranges = {name: mean_interval(values) for name, values in numbers.items()}
    return {"n_images": count} | {k: asdict(v) for k, v in ranges.items() if v is not None}


def accuracy_of(checked: dict[str, Any]) -> Interval | None:
    """Return the share of correct pixels from a summary; None if it has none."""
    error = interval_of(checked, "error")
    if error is None:
        return None
    low = None if error.high is None else 1.0 - error.high
    high = None if error.low is None else 1.0 - error.low
    return Interval(1.0 - error.mean, low, high, error.n_images)


def interval_of(checked: dict[str, Any], name: str) -> Interval | None:
    """Return one measure of a summary; None if it was not measured."""
    return Interval(**checked[name]) if name in checked else None
