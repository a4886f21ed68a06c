"""Views of the objects of one image: the picture with numbers, splits, corrections by hand."""

import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from engine.core.npz_file import read_array
from engine.metrics import apply_edits
from webapp.accounts.requests import SignedInRequest
from webapp.common import formats
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.files import store
from webapp.jobs.models import Job
from webapp.segmentation.exports import require_done
from webapp.segmentation.forms import ObjectsForm
from webapp.segmentation.measuring import (
    classes_of_row,
    editor_of,
    label_map,
    numbered,
    object_classes,
    object_numbers,
    object_options,
    object_rows,
    sides_of,
    unit_of,
)
from webapp.segmentation.models import ObjectCorrection, PredictedImage, PredictionBatch
from webapp.segmentation.object_options import ObjectOptions, options_of
from webapp.segmentation.painting.raster import live_factor
from webapp.segmentation.rendering import reduced
from webapp.segmentation.selectors.corrections import corrected_area, redoable, undoable
from webapp.segmentation.selectors.predictions import predicted_image_of
from webapp.segmentation.services.object_corrections import (
    correction_add,
    correction_arguments,
    correction_undo,
    key_of,
)
from webapp.segmentation.services.objects import objects_measure, usual_area
from webapp.segmentation.views.painting import json_body

MAX_ROWS = 500
"""Rows of the table on the page; files have all."""
GZIP_LEVEL = 1
MAX_HISTORY = 200
"""Corrections on the page, the latest first."""
MAX_LIVE_PIXELS = 4_000_000
"""Pixels from which splits are tried on a smaller copy while somebody waits: about 4 seconds."""


@require_safe
@viewer_required
def image_objects(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Show the objects of one image: outlines and numbers on the picture, and their table."""
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    options = object_options(row)
    base = [row.batch_id, row.pk]
    named = ("split", "corrections", "objects-correct", "objects-undo")
    urls = {name: reverse(f"segmentation:predicted-image-{name}", args=base) for name in named}
    picture = reverse("segmentation:predicted-image-file", args=[*base, "view.jpg"])
    state = {
        "width": row.width,
        "height": row.height,
        "classes": object_classes(row),
        "options": options.as_json(),
        "urls": urls | {"picture": picture},
        "mayEdit": request.user.is_staff_member,
    } | objects_state(request, row)
    count = state["count"]
    corrected = corrected_area(row.batch.image_set)
    context = {
        "row": row,
        "batch": row.batch,
        "state": state,
        "options": options,
        "unit": "µm" if unit_of([row]) == "um" else "px",
        "sides": sides_of(row.pixel_size),
        "background": list(options.no_objects),
        "classes": classes_of_row(row),
        "n_rows": MAX_ROWS,
        "count": count,
        "corrected": corrected,
        "usual": usual_area(row.batch, options.typical_area),
        "is_older": not row.batch.object_options,
    }
    return render(request, "segmentation/image_objects.html", context)


def objects_state(request: SignedInRequest, row: PredictedImage) -> dict[str, Any]:
    """Return objects, counts and corrections of an image as the page's script shows them."""
    rows = [found for _, found in object_rows([row])]
    for found in rows:
        found.pop("pixel_size")
    corrections = list(row.corrections.select_related("created_by").order_by("-number"))
    return {
        "key": row.objects_key,
        "rows": rows[:MAX_ROWS],
        "count": len(rows),
        "canUndo": undoable(request.user, row) is not None,
        "canRedo": redoable(request.user, row) is not None,
        "corrections": len([one for one in corrections if not one.undone]),
        "problems": len([one for one in corrections if one.problem and not one.undone]),
        "history": [_correction_json(one) for one in corrections[:MAX_HISTORY]],
    }


def _correction_json(one: ObjectCorrection) -> dict[str, Any]:
    return {
        "id": str(one.pk),
        "sentence": one.sentence,
        "who": str(one.created_by) if one.created_by else "",
        "when": formats.when(one.created_at, timezone.localtime()),
        "undone": one.undone,
        "problem": one.problem,
        "source": one.source,
    }


@require_safe
@viewer_required
def image_corrections(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Send objects and corrections; only their key where the sender has seen them."""
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    if request.GET.get("key") == row.objects_key and "key" in request.GET:
        return JsonResponse({"key": row.objects_key})
    return JsonResponse(objects_state(request, row))


@require_POST
@staff_required
def image_correct(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Correct objects: one act, described as JSON."""
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    try:
        arguments = correction_arguments(json_body(request))
        correction = correction_add(user=request.user, row=row, **arguments)
    except Refusal as error:
        return JsonResponse({"sentence": str(error)}, status=422)
    return JsonResponse({"id": str(correction.pk)} | objects_state(request, row), status=201)


@require_POST
@staff_required
def image_correct_undo(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Undo a correction, by default the user's own last one, or redo it."""
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    try:
        sent = json_body(request)
        if not isinstance(sent, dict):
            raise Refusal(_("This is not what the page sends."))
        key = key_of(sent["id"]) if sent.get("id") is not None else None
        redo = sent.get("redo") is True
        done, lost = correction_undo(user=request.user, row=row, key=key, redo=redo)
    except Refusal as error:
        return JsonResponse({"sentence": str(error)}, status=422)
    about = {"id": str(done.pk), "lost": lost}
    return JsonResponse(about | objects_state(request, row))


@require_safe
@viewer_required
def image_objects_split(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Send the numbers of the objects by the options in the query; nothing is stored.

    The body has the length of a JSON header in four bytes, the header, and the numbers at the size
    of the page as whole numbers of 32 bits, all compressed.
    """
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    numbers, factor = object_numbers(row), live_factor(row.width, row.height)
    step = 1
    if request.GET:
        form = ObjectsForm(request.GET, classes=row.batch.model.classes)
        if not form.is_valid():
            sentence = "; ".join(f"{k}: {v[0]}" for k, v in form.errors.items())
            return JsonResponse({"sentence": sentence}, status=400)
        typical = usual_area(row.batch, object_options(row).typical_area)
        numbers, step = _tried(row, form.options(typical))
    small = np.ascontiguousarray(_shown(numbers, step, factor), dtype="<u4")
    header = json.dumps(
        {
            "width": small.shape[1],
            "height": small.shape[0],
            "factor": factor,
            "count": int(np.count_nonzero(np.bincount(numbers.ravel())[1:])),
            "most": int(numbers.max(initial=0)),
            "step": step,
            "key": row.objects_key,
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


def _tried(row: PredictedImage, options: ObjectOptions) -> tuple[Any, int]:
    """Return the numbers of the objects by other options, and the step between their pixels.

    Corrections apply. A large image is tried on every second, third, ... row and column.
    """
    step = 1
    while (row.width // step) * (row.height // step) > MAX_LIVE_PIXELS:
        step += 1
    labels = np.ascontiguousarray(reduced(label_map(row), step))
    marginals = read_array(store.get(row.marginals_path), is_mapped=True)
    classes, area = classes_of_row(row), options.typical_area
    smaller = replace(
        options,
        min_pixels=max(1, round(options.min_pixels / step**2)),
        typical_area=None if area is None else area / step**2,
    )
    numbers, owners = numbered(labels, reduced(marginals, step), classes, smaller)
    if step == 1:
        editor = editor_of(numbers, owners, classes, options)
        apply_edits(editor, [one.edit for one in row.corrections.filter(undone=False)])
        numbers = editor.numbers
    return numbers, step


def _shown(numbers: Any, step: int, factor: int) -> Any:
    """Return the numbers at the size of the page, a pixel for ``factor`` of the image's."""
    if step == 1:
        return reduced(numbers, factor)
    height, width = numbers.shape
    rows, columns = height * step // factor, width * step // factor
    down = np.minimum((np.arange(rows) * factor + factor // 2) // step, height - 1)
    right = np.minimum((np.arange(columns) * factor + factor // 2) // step, width - 1)
    return numbers[np.ix_(down, right)]


@require_POST
@staff_required
def objects_measure_view(request: SignedInRequest, pk: str) -> HttpResponse:
    """Store what counts as an object and measure all images of the prediction again."""
    batch = get_owned_or_404(PredictionBatch, request.user, pk)
    classes = batch.model.classes
    form = ObjectsForm.typed(request, classes=classes)
    jobs: list[Job] = []

    def act(**fields: object) -> None:
        typical = usual_area(batch, options_of(batch.object_options, classes).typical_area)
        jobs.append(objects_measure(user=request.user, batch=batch, options=form.options(typical)))

    if form.submit(request, act):
        toast(request, _("The objects of all images are being measured."))
        return redirect("jobs:job", jobs[0].pk)
    why = next(
        iter(form.non_field_errors()),
        _("Choose splits from -1 to 1 and a smallest object of at least 1 pixel."),
    )
    toast(request, _("%(error)s Nothing was changed.") % {"error": why}, error=True)
    return redirect("segmentation:prediction-objects", batch.pk)
