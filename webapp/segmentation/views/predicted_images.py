"""Views of one predicted image, its files, and corrections of its mask."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.toasts import toast
from webapp.database.full_disk import is_full_disk
from webapp.files import store
from webapp.files.contents import StorageFullError
from webapp.files.file_headers import as_attachment
from webapp.files.file_responses import exported, file_response
from webapp.segmentation.exports import (
    coco_json,
    labels_tif,
    objects_cellpose,
    objects_geojson,
    objects_rois,
    objects_tif,
    overlay_png,
    require_done,
    stem,
)
from webapp.segmentation.measuring import (
    object_classes,
    object_options,
    object_rows,
    sides_of,
    unit_of,
)
from webapp.segmentation.models import PredictedImage
from webapp.segmentation.object_tables import objects_csv, objects_xlsx
from webapp.segmentation.selectors.predictions import (
    ORDERS,
    batch_numbers,
    default_order,
    images_in_order,
    predicted_image_of,
)
from webapp.segmentation.services.corrections import mask_correct
from webapp.segmentation.services.thumbnails import thumbnail_path, view_picture_path
from webapp.tabular.tables_out import CSV, XLSX
from webapp.translation.lazy import gettext_lazy

MAX_PAINTED_BYTES = 32 * 1024**2
STRIP_IMAGES = 60

LAYER_ROWS = [
    {
        "key": "outline",
        "title": gettext_lazy("Mask outline"),
        "note": gettext_lazy("what was predicted"),
    },
    {
        "key": "probability",
        "title": gettext_lazy("Probability"),
        "note": gettext_lazy("how sure the model is, 0 to 1"),
    },
    {
        "key": "entropy",
        "title": gettext_lazy("Entropy"),
        "note": gettext_lazy("how unsure the model is, bits"),
    },
    {
        "key": "errors",
        "title": gettext_lazy("Errors"),
        "note": gettext_lazy("blue extra, orange missed"),
    },
    {"key": "image", "title": gettext_lazy("Image"), "note": ""},
]


@require_safe
@viewer_required
def predicted_image_page(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    """Show one predicted image with its layers."""
    row = predicted_image_of(request.user, pk, image_pk)
    order = request.GET.get("order", "")
    order = order if order in ORDERS else default_order(row.batch)
    rows = list(images_in_order(row.batch, order).exclude(state=PredictedImage.State.WAITING))
    place = next((k for k, other in enumerate(rows, start=1) if other.pk == row.pk), 0)
    context = {
        "row": row,
        "batch": row.batch,
        "layers": LAYER_ROWS,
        "foreground": row.batch.model.foreground,
        "numbers": batch_numbers(row.batch),
        "order": order,
        "order_label": ORDERS[order][0],
        "previous": rows[place - 2] if place > 1 else None,
        "next": rows[place] if 0 < place < len(rows) else None,
        "place": place,
        "total": len(rows),
        "strip": _strip(rows, place),
    }
    if row.batch.model.classes:
        context["state"] = _class_state(row)
        return render(request, "segmentation/predicted_classes.html", context)
    return render(request, "segmentation/predicted_image.html", context)


def _class_state(row: PredictedImage) -> dict[str, Any]:
    """Return the initial state of the script that shows classes."""
    base = [row.batch_id, row.pk]
    names = {"picture": "view.jpg", "layers": "layers.bin", "objectsCsv": "objects.csv"}
    urls = {
        key: reverse("segmentation:predicted-image-file", args=[*base, kind])
        for key, kind in names.items()
    }
    urls["objects"] = reverse("segmentation:predicted-image-objects", args=base)
    return {
        "width": row.width,
        "height": row.height,
        "factor": 1,
        "pixelSize": sides_of(row.pixel_size),
        "classes": row.batch.model.classes,
        "background": list(object_options(row).no_objects),
        "shares": [row.shares.get(str(one["value"]), {}) for one in row.batch.model.classes],
        "strokes": [],
        "canRedo": False,
        "elsewhere": {},
        "urls": urls,
    }


@require_safe
@viewer_required
def predicted_image_objects(request: SignedInRequest, pk: str, image_pk: str) -> JsonResponse:
    """Return the objects of one class of a predicted image, largest first, in its unit."""
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    value = request.GET.get("class", str(object_classes(row)[0]["value"]))
    rows = [found for _, found in object_rows([row]) if f"{found['value']:.0f}" == value]
    for found in rows:
        del found["pixel_size"]  # already on the page
    areas = [found["area"] for found in rows]
    answer = {"rows": rows[:500], "count": len(rows), "total": sum(areas), "areas": areas}
    return JsonResponse(answer)


def _strip(rows: list[PredictedImage], place: int) -> list[PredictedImage]:
    """Return the images around the present one, so that a long batch makes no long page."""
    first = max(0, min(place - STRIP_IMAGES // 2, len(rows) - STRIP_IMAGES))
    return rows[first : first + STRIP_IMAGES]


@require_safe
@viewer_required
def predicted_image_file(
    request: SignedInRequest, pk: str, image_pk: str, kind: str
) -> HttpResponseBase:
    """Send one of the files of a predicted image."""
    row = predicted_image_of(request.user, pk, image_pk)
    if kind not in FILES:
        raise Http404(_("There is no such file."))
    if kind in EXPORTS:
        return exported_file(request, row, kind)
    if kind not in {"thumbnail.jpg", "view.jpg"}:
        require_done(row)
    return FILES[kind](request, row)


def exported_file(request: SignedInRequest, row: PredictedImage, kind: str) -> HttpResponseBase:
    """Send one of the files for download; an audit line names the reader."""
    require_done(row)
    try:
        answer = FILES[kind](request, row)
    except FileNotFoundError:
        raise Http404(_("The files of this image are gone. Predict it again.")) from None
    return exported(request, row, answer, file=kind)


def _arrays(kind: str, attribute: str, **options: Any) -> Any:
    def send(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
        path = getattr(row, attribute)
        stamp = path.stat().st_mtime_ns if path.exists() else 0
        name = f"{stem(row)}.{kind}" if options.get("attachment") else ""
        etag = f"{row.pk}-{stamp}"
        return file_response(request, path, etag=etag, filename=name, **options)

    return send


def _layers(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
    send = _arrays("layers", "layers_path", media_type="application/octet-stream", encoding="gzip")
    return send(request, row)


def _overlay(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
    response = HttpResponse(overlay_png(row), content_type="image/png")
    return as_attachment(response, f"{stem(row)}.overlay.png")


def _thumbnail(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
    path = thumbnail_path(row.batch.organisation_id, row.image_digest, row.view)
    return file_response(request, path, media_type="image/jpeg", etag=path.name[:80])


def _view(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
    path = view_picture_path(row.batch.organisation_id, row.image_digest, row.view)
    return file_response(request, path, media_type="image/jpeg", etag=path.name[:80])


def _made(kind: str, media_type: str, make: Callable[[PredictedImage], bytes]) -> Any:
    """Return a response maker for a file that is created on request."""

    def send(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
        response = HttpResponse(make(row), content_type=media_type)
        return as_attachment(response, f"{stem(row)}.{kind}")

    return send


def _cellpose(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
    """Send Cellpose's file under the name that Cellpose looks for."""
    response = HttpResponse(objects_cellpose(row), content_type="application/octet-stream")
    return as_attachment(response, f"{stem(row)}_seg.npy")


def _labels(request: SignedInRequest, row: PredictedImage) -> HttpResponseBase:
    """Send the numbers of classes; pixels less certain than ``least`` are left out."""
    try:
        least = float(request.GET.get("least", "0"))
    except ValueError:
        raise Http404(_("There is no such file.")) from None
    if not 0 <= least <= 1:
        raise Http404(_("There is no such file."))
    response = HttpResponse(labels_tif(row, least=least), content_type="image/tiff")
    return as_attachment(response, f"{stem(row)}.labels.tif")


# Files offered for download, and exports; the other files are for the page itself.
EXPORTS = (
    "mask.png",
    "labels.tif",
    "marginals.npy",
    "overlay.png",
    "objects.csv",
    "objects.xlsx",
    "coco.json",
    "objects.tif",
    "rois.zip",
    "objects.geojson",
    "seg.npy",
)
FILES = {
    "mask.png": _arrays("mask.png", "mask_path", media_type="image/png", attachment=True),
    "marginals.npy": _arrays(
        "marginals.npy",
        "marginals_path",
        media_type="application/octet-stream",
        attachment=True,
    ),
    "overlay.png": _overlay,
    "labels.tif": _labels,
    "objects.csv": _made(
        "objects.csv",
        CSV,
        lambda row: objects_csv(object_rows([row]), unit=unit_of([row])),
    ),
    "objects.xlsx": _made(
        "objects.xlsx", XLSX, lambda row: objects_xlsx(object_rows([row]), unit=unit_of([row]))
    ),
    "coco.json": _made("coco.json", "application/json", lambda row: coco_json([row])),
    "objects.tif": _made("objects.tif", "image/tiff", objects_tif),
    "rois.zip": _made("rois.zip", "application/zip", objects_rois),
    "objects.geojson": _made("objects.geojson", "application/geo+json", objects_geojson),
    "seg.npy": _cellpose,
    "layers.bin": _layers,
    "preview.jpg": _arrays("preview.jpg", "preview_path", media_type="image/jpeg"),
    "thumbnail.jpg": _thumbnail,
    "view.jpg": _view,
}


@csrf_exempt  # checked inside, so that a full disk can still be reported
@require_POST
@staff_required
def predicted_image_correct(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponseBase:
    """Save a painted mask as the new mask of the image."""
    try:
        return _protected_correct(request, pk, image_pk)
    except StorageFullError as error:
        return JsonResponse({"sentence": str(error)}, status=507)
    except OSError as error:
        if store.is_fault(error):
            raise  # answered with 503 and a sentence
        full = is_full_disk(error)
        sentence = str(StorageFullError()) if full else _("The upload stopped before its end.")
        return JsonResponse({"sentence": sentence}, status=507 if full else 400)


@csrf_protect
def _protected_correct(request: SignedInRequest, pk: str, image_pk: str) -> HttpResponse:
    row = predicted_image_of(request.user, pk, image_pk)
    require_done(row)
    painted = request.FILES.get("mask")
    if painted is None or (painted.size or 0) > MAX_PAINTED_BYTES:
        return JsonResponse({"sentence": _("The corrected mask did not arrive whole.")}, status=400)
    try:
        file = mask_correct(user=request.user, row=row, painted=painted.read())
    except Refusal as error:
        return JsonResponse({"sentence": str(error)}, status=422)
    toast(
        request,
        _("Saved as %(file)s, the new mask of %(name)s. Learn again to make use of it.")
        % {"file": file.name, "name": row.name},
        icon="circle-check",
    )
    return JsonResponse({"url": row.get_absolute_url(), "mask": file.name}, status=201)
