"""Counts and areas of the objects of a batch, by image and class."""

from typing import Any

from webapp.segmentation.measuring import LEAST_PIXELS
from webapp.segmentation.models import PredictedImage, PredictionBatch


def objects_report(batch: PredictionBatch) -> dict[str, Any]:
    """Return classes, a row an image and the totals; areas in the unit of the set."""
    segmenter, size = batch.segmenter, batch.image_set.pixel_size
    classes = segmenter.classes or [{"value": 1, "name": segmenter.foreground, "colour": "#17695a"}]
    done = PredictedImage.State.DONE
    images = batch.images.filter(state=done).defer(*PredictedImage.HEAVY).order_by("name")
    scale = (size or 1.0) ** 2
    rows = [{"image": image, "cells": _cells(image, classes, scale)} for image in images]
    measured = [row for row in rows if row["image"].shares]
    totals = [
        {
            "count": sum(row["cells"][place]["count"] for row in measured),
            "area": sum(row["cells"][place]["area"] for row in measured),
            "share": sum(row["cells"][place]["share"] for row in measured) / max(1, len(measured)),
        }
        for place in range(len(classes))
    ]
    return {
        "classes": classes,
        "rows": rows,
        "totals": totals,
        "unit": "µm²" if size else "px²",
        "digits": 1 if size else 0,
        "n_unmeasured": len(rows) - len(measured),
        "least": LEAST_PIXELS,
    }


def _cells(
    image: PredictedImage, classes: list[dict[str, Any]], scale: float
) -> list[dict[str, Any]]:
    found = []
    for one in classes:
        kept = image.shares.get(str(one["value"]), {})
        found.append(
            {
                "count": kept.get("count", 0),
                "area": kept.get("area", 0.0) * scale,
                "median": kept.get("median", 0.0) * scale,
                "share": kept.get("share", 0.0),
            }
        )
    return found
