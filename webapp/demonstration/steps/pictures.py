"""Steps about pictures: drawn cells with painted strokes, a model of them, and counted cells."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from django.utils.translation import gettext
from PIL import Image

from webapp.accounts.models import User
from webapp.demonstration.steps.drawn_cells import DrawnCells, draw_cells
from webapp.demonstration.steps.step import Started, Step, StepError, named
from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.painted_models import painting_learn
from webapp.segmentation.services.painting import stroke_add
from webapp.segmentation.services.predictions import prediction_delete, prediction_start
from webapp.segmentation.services.segmenters import segmenter_delete
from webapp.segmentation.services.uploads import image_file_add
from webapp.translation.lazy import gettext_lazy as _

SET_NAME = "Cells to count (generated)"
SHAPE = (240, 320)  # height, width in pixels
CELLS = (18, 24, 15, 21)  # at most, on each picture
PAINTED = 2  # pictures with strokes; the model predicts the others without any
CELLS_PAINTED = 6  # on each of them
GROUND_LINES = 4
BRUSH = 3.0  # pixels
LEARN_SECONDS = 30
SEED = 20261127
CELL, GROUND = 1, 2  # the default classes of a set


def paint(user: User, needs: Mapping[str, Any]) -> Started:
    """Upload drawn pictures, paint strokes on some, and learn from the strokes."""
    image_set = named(ImageSet, user, SET_NAME) or _painted_set(user)
    segmenter = painting_learn(
        user=user, image_set=image_set, predict=False, max_seconds=LEARN_SECONDS
    )
    return Started(segmenter, segmenter.job)


def _painted_set(user: User) -> ImageSet:
    image_set = image_set_create(user=user, name=SET_NAME, foreground="cell")
    rng = np.random.default_rng(SEED)
    for number, most in enumerate(CELLS, start=1):
        picture = draw_cells(rng, SHAPE, most)
        buffer = io.BytesIO()
        Image.fromarray(picture.image).save(buffer, "PNG")
        name = f"cells_{number:02d}.png"
        image_file_add(user=user, image_set=image_set, name=name, chunks=[buffer.getvalue()])
        if number <= PAINTED:
            _paint(user, ImageFile.objects.get(image_set=image_set, name=name), picture)
    return image_set


def _paint(user: User, file: ImageFile, picture: DrawnCells) -> None:
    """Paint some cells and the ground between them, as a person would."""
    for row, column in picture.centres[:CELLS_PAINTED]:
        _stroke(user, file, CELL, [column - BRUSH, row, column + BRUSH, row])
    for first, last, row in picture.ground_lines(GROUND_LINES, 2.0 * BRUSH):
        _stroke(user, file, GROUND, [first, row, last, row])


def _stroke(user: User, file: ImageFile, value: int, points: list[float]) -> None:
    stroke = {"tool": "brush", "value": value, "radius": BRUSH, "points": points}
    stroke_add(user=user, file=file, stroke=stroke)


def forget_segmenter(user: User, segmenter: Segmenter) -> None:
    """Remove a model that was not learned; the painted pictures stay."""
    segmenter_delete(user=user, segmenter=segmenter)


def count(user: User, needs: Mapping[str, Any]) -> Started:
    """Predict every picture of the set and count its cells."""
    segmenter: Segmenter = needs["painted"]
    image_set = segmenter.image_sets.first()
    if image_set is None:
        raise StepError(
            gettext("“%(name)s” of the demonstration was removed.") % {"name": SET_NAME}
        )
    batch = prediction_start(user=user, segmenter=segmenter, image_set=image_set)
    return Started(batch, batch.job)


def forget_batch(user: User, batch: PredictionBatch) -> None:
    """Remove a prediction that was not completed."""
    prediction_delete(user=user, batch=batch)


PAINTING = Step(
    key="painted",
    title=_("Painted pictures"),
    doing=_("Learning cells from painted strokes"),
    model=Segmenter,
    url_name="segmentation:segmenter",
    start=paint,
    discard=forget_segmenter,
)
COUNTS = Step(
    key="counts",
    title=_("Counted cells"),
    doing=_("Counting the cells on four pictures"),
    model=PredictionBatch,
    url_name="segmentation:prediction-objects",
    start=count,
    discard=forget_batch,
    needs=("painted",),
)
