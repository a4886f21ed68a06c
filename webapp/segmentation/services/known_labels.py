"""What is known of an image's classes: the strokes and label maps that lie on it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from webapp.segmentation.models import ImageFile
from webapp.segmentation.painting.raster import paint_strokes
from webapp.segmentation.services.painting import classes_of, stroke_fields

UNKNOWN = 255


def painted_labels(file: ImageFile, classes: list[dict[str, Any]]) -> NDArray[np.uint8]:
    """Return the engine's label of every pixel: the place of its class, 255 where unpainted."""
    places = {one["value"]: place for place, one in enumerate(classes)}
    return _labels(file, places)


def known_labels(file: ImageFile | None, classes: list[dict[str, Any]]) -> NDArray[np.uint8] | None:
    """Return labels to compare a model's classes with, found by name; None where there are none.

    The model may come from another set whose classes have other numbers. What is painted as a class
    that the model does not know counts as unknown.
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
