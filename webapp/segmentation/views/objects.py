"""Views of the objects of one image: the picture with numbers, live splits, measuring again."""

import gzip
import json
from typing import Any

import numpy as np
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from engine.metrics import measure_objects
from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.files import store
from webapp.segmentation.exports import require_done
from webapp.segmentation.forms import ObjectsForm
from webapp.segmentation.measuring import (
    classes_of_row,
    label_map,
    object_classes,
    object_numbers,
    object_options,
    object_rows,
    separated,
    sides_of,
    unit_of,
)
from webapp.segmentation.models import PredictedImage, PredictionBatch
from webapp.segmentation.object_options import ObjectOptions, options_of
from webapp.segmentation.painting.raster import live_factor
from webapp.segmentation.rendering import reduced
from webapp.segmentation.selectors.predictions import predicted_image_of
from webapp.segmentation.services.objects import objects_measure

MAX_ROWS = 500
"""Rows of the table on the page; files have all."""
GZIP_LEVEL = 1
MAX_LIVE_PIXELS = 4_000_000
"""Pixels of the largest image whose splits are tried while somebody waits: about four seconds."""


@require_safe
@viewer_required
def image_objects(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Show the objects of one image: outlines and numbers on the picture, and their table."""
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    rows = [found for _, found in object_rows([row])]
    for found in rows:
        found.pop("pixel_size")
    options = object_options(row)
    base = [row.batch_id, row.pk]
    state = {
        "width": row.width,
        "height": row.height,
        "rows": rows[:MAX_ROWS],
        "count": len(rows),
        "classes": object_classes(row),
        "options": options.as_json(),
        "urls": {
            "picture": reverse("segmentation:predicted-image-file", args=[*base, "view.jpg"]),
            "split": reverse("segmentation:predicted-image-split", args=base),
        },
    }
    context = {
        "row": row,
        "batch": row.batch,
        "state": state,
        "options": options,
        "unit": "µm" if unit_of([row]) == "um" else "px",
        "sides": sides_of(row.pixel_size),
        "background": list(options.background),
        "classes": classes_of_row(row),
        "n_rows": MAX_ROWS,
        "count": len(rows),
        "is_older": not row.batch.object_options,
    }
    return render(request, "segmentation/image_objects.html", context)


@require_safe
@viewer_required
def image_objects_split(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Send the numbers of the objects by the options in the query; nothing is stored.

    The body has the length of a JSON header in four bytes, the header, and the numbers at the size
    of the page as whole numbers of 32 bits, all compressed.
    """
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    numbers = object_numbers(row)
    if request.GET:
        stored = object_options(row)
        form = ObjectsForm(request.GET, classes=row.batch.model.classes)
        if not form.is_valid():
            sentence = "; ".join(f"{k}: {v[0]}" for k, v in form.errors.items())
            return JsonResponse({"sentence": sentence}, status=400)
        if row.width * row.height > MAX_LIVE_PIXELS:
            sentence = "This image is too large to try splits at once. Use them for all images."
            return JsonResponse({"sentence": sentence}, status=422)
        numbers = _split(row, form.options(stored.typical_area))
    factor = live_factor(row.width, row.height)
    small = np.ascontiguousarray(reduced(numbers, factor), dtype="<u4")
    header = json.dumps(
        {
            "width": small.shape[1],
            "height": small.shape[0],
            "factor": factor,
            "count": int(numbers.max(initial=0)),
        }
    ).encode()
    header = header.ljust(-(-len(header) // 4) * 4)  # so that the numbers are aligned
    body = len(header).to_bytes(4, "little") + header
    response = HttpResponse(
        gzip.compress(body + small.tobytes(), GZIP_LEVEL, mtime=0),
        content_type="application/octet-stream",
    )
    response["Content-Encoding"] = "gzip"
    response["Cache-Control"] = "no-store"
    return response


def _split(row: PredictedImage, options: ObjectOptions) -> Any:
    """Return the numbers of the objects of an image by other options, as measuring gives them."""
    labels = label_map(row)
    marginals = np.load(store.get(row.marginals_path), mmap_mode="r", allow_pickle=False)
    whole = np.zeros(labels.shape, dtype=np.int32)
    found = separated(labels, marginals, classes_of_row(row), options)
    for _, numbers, own in found:
        kept = measure_objects(
            numbers, own, min_pixels=options.min_pixels, drop_border=options.drop_border
        ).labels
        np.add(kept, int(whole.max(initial=0)), out=whole, where=kept > 0)
    return whole


@require_POST
@staff_required
def objects_measure_view(request: SignedInRequest, pk: str) -> HttpResponse:
    """Store what counts as an object and measure all images of the prediction again."""
    batch = get_owned_or_404(PredictionBatch, request.user, pk)
    classes = batch.model.classes
    form = ObjectsForm(request.POST, classes=classes)
    if not form.is_valid():
        toast(
            request,
            "Choose splits from -1 to 1 and a smallest object of at least 1 pixel. "
            "Nothing was changed.",
            error=True,
        )
        return redirect("segmentation:prediction-objects", batch.pk)
    typical = options_of(batch.object_options, classes).typical_area
    try:
        job = objects_measure(user=request.user, batch=batch, options=form.options(typical))
    except Refusal as error:
        toast(request, f"{error} Nothing was changed.", error=True)
        return redirect("segmentation:prediction-objects", batch.pk)
    toast(request, "The objects of all images are being measured.")
    return redirect("jobs:job", job.pk)
