"""Known classes of an image's pixels, from its strokes and label maps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.datasets.annotations.raster import paint_strokes
from webapp.segmentation.models import ImageFile
from webapp.segmentation.services.painting import classes_of, stroke_fields

UNKNOWN = 255


def painted_labels(file: ImageFile, classes: list[dict[str, Any]]) -> NDArray[np.uint8]:
    """Return the engine's label of every pixel: the index of its class, 255 if unpainted."""
    places = {one["value"]: place for place, one in enumerate(classes)}
    return _labels(file, places)


def known_labels(file: ImageFile | None, classes: list[dict[str, Any]]) -> NDArray[np.uint8] | None:
    """Return labels for comparison with a model's classes, matched by name; None without any.

    The model may come from another set whose classes have other numbers. Pixels painted as a class
    that the model lacks count as unknown.
    """
    if file is None or not file.strokes.filter(undone=False, value__gt=0).exists():
        return None
    of_name = {one["name"].casefold(): place for place, one in enumerate(classes)}
    own = classes_of(file.image_set)
    places = {
        one["value"]: of_name[one["name"].casefold()]
        for one in own
        if one["name"].casefold() in of_name
    }
    labels = _labels(file, places)
    return labels if (labels != UNKNOWN).any() else None


def _labels(file: ImageFile, places: dict[int, int]) -> NDArray[np.uint8]:
    strokes = [stroke_fields(stroke) for stroke in file.strokes.filter(undone=False)]
    painted = paint_strokes(strokes, (file.width, file.height), 1)
    labels = np.full(256, UNKNOWN, dtype=np.uint8)
    for value, place in places.items():
        labels[value] = place
    return labels[painted]
