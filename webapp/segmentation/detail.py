"""Choice of the model size that pays off, tested on some of the training images."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine import InvalidProblemError
from engine.learning.segmentation.detail_choice import (
    MOST_LINEAR_SIDE,
    MOST_SIDE,
    DetailChoice,
    choose_detail,
    sides_to_try,
)
from engine.learning.segmentation.model import Detail
from webapp.jobs.context import JobContext
from webapp.segmentation.labelled_files import LabelledFiles
from webapp.segmentation.models import ImageFile, Segmenter
from webapp.segmentation.painting.raster import live_factor

AUTO = 0
"""Value of `Segmenter.max_side` that means: choose the size that pays off."""

MOST_TRIED = 16

TRYING_SHARE = 0.25
"""Share of the learning time for testing sizes."""


def settle_detail(context: JobContext, segmenter: Segmenter, learned: LabelledFiles) -> None:
    """Choose the longest side of models by the errors it avoids, and store it with the model."""
    if segmenter.max_side != AUTO:
        return
    some = learned.some(MOST_TRIED)
    shapes = [(file.height, file.width) for file in some.files]
    most = MOST_SIDE if segmenter.grows_trees else MOST_LINEAR_SIDE
    details = [Detail(side) for side in sides_to_try(shapes, most=most)]
    images, masks, maps = some.in_step()
    labels = (mask.astype(np.uint8) for mask in masks)
    try:
        choice = _choose(context, segmenter, images, labels, details, maps=maps, position=True)
        segmenter.max_side = choice.detail.max_side
        context.job.parameters["detail"] = _noted(choice)
        context.job.save(update_fields=["parameters"])
    except InvalidProblemError:
        segmenter.max_side = 200  # learning itself reports the fault of the masks
    Segmenter.objects.filter(pk=segmenter.pk).update(max_side=segmenter.max_side)


def scales_to_try(files: Sequence[ImageFile]) -> list[Detail]:
    """Return model sizes for painted images: from that of the painting page, doubled up to full."""
    factor = max(live_factor(file.width, file.height) for file in files)
    side = max(16, *(max(file.width, file.height) for file in files))
    scales = [1.0 / factor]
    while scales[-1] < 1.0:
        scales.append(min(1.0, 2.0 * scales[-1]))
    return [Detail(max_side=side, scale=scale) for scale in scales]


def painted_detail(
    context: JobContext,
    segmenter: Segmenter,
    files: Sequence[ImageFile],
    images: Any,
    labels: Any,
    maps: Any,
) -> Detail:
    """Return the size that pays off for painted images, or that of the painting page."""
    details = scales_to_try(files)
    if len(details) == 1:
        return details[0]
    try:
        choice = _choose(context, segmenter, images, labels, details, maps=maps, position=False)
    except InvalidProblemError:
        return details[0]
    return choice.detail


def _choose(
    context: JobContext,
    segmenter: Segmenter,
    images: Any,
    labels: Any,
    details: Sequence[Detail],
    *,
    maps: Any,
    position: bool,
) -> DetailChoice:
    return choose_detail(
        images,
        labels,
        len(segmenter.classes) or 2,
        details,
        maps=maps,
        position=position,
        max_seconds=max(TRYING_SHARE * segmenter.max_seconds - context.seconds, 0.0),
        on_progress=lambda progress: context.report(progress.sentence),
        should_stop=context.should_stop,
    )


def _noted(choice: DetailChoice) -> list[list[float]]:
    """Return the longest sides and their errors as JSON values."""
    return [[float(side), error] for side, error in choice.by_side.items()]
