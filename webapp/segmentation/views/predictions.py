"""Views of predictions: list, start, one batch with its figures, comparison of two models."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.form_pages import if_named, remove_page
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import page_at
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt
from webapp.files.file_headers import as_attachment
from webapp.segmentation.charts import reliability_figure
from webapp.segmentation.exports import batch_archive, coco_json, done_rows, numbers_csv
from webapp.segmentation.forms import PredictForm
from webapp.segmentation.measuring import object_rows, unit_of
from webapp.segmentation.models import ImageSet, PredictedImage, PredictionBatch, Segmenter
from webapp.segmentation.object_tables import objects_csv, objects_xlsx
from webapp.segmentation.selectors.image_sets import sets_with_images
from webapp.segmentation.selectors.objects import objects_report
from webapp.segmentation.selectors.predictions import (
    ORDERS,
    BatchNumbers,
    batch_listing,
    batch_numbers,
    batch_of,
    batches_of,
    comparable_batches,
    compare_batches,
    default_order,
    images_in_order,
)
from webapp.segmentation.selectors.segmenters import ready_segmenters
from webapp.segmentation.services.predictions import (
    prediction_delete,
    prediction_go_on,
    prediction_start,
)
from webapp.segmentation.services.waiting_images import waiting_count
from webapp.tabular.tables_out import CSV, XLSX

PAGE_SIZE = 30


@require_safe
@viewer_required
def prediction_list(request: SignedInRequest) -> HttpResponse:
    """List the predictions of the organisation."""
    listing = batch_listing(request.user, request.GET)
    return render(request, "segmentation/prediction_list.html", {"listing": listing})


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def prediction_new(request: SignedInRequest) -> HttpResponse:
    """Choose an image set and a model, and start predicting."""
    form = PredictForm.typed(request, user=request.user, initial=_initial(request))
    made: list[PredictionBatch] = []

    def act(**fields: Any) -> None:
        made.append(prediction_start(user=request.user, **fields))

    if form.submit(request, act):
        return redirect(made[0])
    context = {
        "form": form,
        "has_models": ready_segmenters(request.user).exists(),
        "has_images": sets_with_images(request.user).exists(),
    }
    return render(request, "segmentation/prediction_new.html", context, status=form.status)


def _initial(request: SignedInRequest) -> dict[str, Any]:
    """Return the choices in the URL, checked against their owner."""
    initial: dict[str, Any] = {}
    if request.GET.get("set"):
        initial["image_set"] = get_owned_or_404(ImageSet, request.user, request.GET["set"]).pk
    model = request.GET.get("model")
    newest = ready_segmenters(request.user).first()
    if model:
        initial["segmenter"] = get_owned_or_404(Segmenter, request.user, model).pk
    elif newest is not None:
        initial["segmenter"] = newest.pk
    return initial


@require_safe
@viewer_required
def prediction_page(request: SignedInRequest, pk: str) -> HttpResponse:
    """Show one batch: progress or figures, and its images, worst first."""
    batch = batch_of(request.user, pk)
    return render(request, "segmentation/prediction.html", _context(request, batch))


@require_safe
@viewer_required
def prediction_live(request: SignedInRequest, pk: str) -> HttpResponse:
    """Show the part of the page that changes while predicting; it polls until the end."""
    batch = batch_of(request.user, pk)
    context = _live_context(request, batch)
    response = render(request, "segmentation/_prediction_live.html", context)
    if not context["is_active"]:
        response["HX-Refresh"] = "true"
    return response


def _context(request: SignedInRequest, batch: PredictionBatch) -> dict[str, Any]:
    live = _live_context(request, batch)
    numbers = batch_numbers(batch)
    n_left = waiting_count(batch)
    return live | {
        "job": batch.job,
        "n_left": n_left,
        "can_go_on": bool(n_left) and not live["is_active"] and request.user.is_staff_member,
        "orders": [{"key": key, "label": label} for key, (label, _) in ORDERS.items()],
        "numbers": numbers,
        "class_rows": _class_rows(batch, numbers),
        "reliability": reliability_figure(numbers.bins) if numbers else "",
        "refused": batch.images.filter(state=PredictedImage.State.REFUSED)[:20],
        "others": comparable_batches(batch)[:20],
    }


def _has_known(batch: PredictionBatch) -> bool:
    """Return True if any image has a known mask or known labels to compare with."""
    if batch.model.classes:
        return batch.images.filter(iou__isnull=False).exists()
    return batch.images.exclude(mask_digest="").exists()


def _class_rows(batch: PredictionBatch, numbers: BatchNumbers | None) -> list[dict[str, Any]]:
    """Return one row per class over images with known labels; empty for masks."""
    rows = zip(batch.model.classes, numbers.classes if numbers else (), strict=False)
    return [one | figures for one, figures in rows]


def _live_context(request: SignedInRequest, batch: PredictionBatch) -> dict[str, Any]:
    """Return the context of the list of images; polled every two seconds while predicting."""
    order = request.GET.get("order", "")
    order = order if order in ORDERS else default_order(batch)
    page = page_at(images_in_order(batch, order), request.GET.get("page"), PAGE_SIZE)
    return {
        "batch": batch,
        "is_active": batch.job is not None and batch.job.is_active,
        "has_masks": _has_known(batch),
        "page": page,
        "order": order,
    }


@require_safe
@viewer_required
def prediction_compare(request: SignedInRequest, pk: str) -> HttpResponse:
    """Show two batches side by side on the images they share, with the difference's interval."""
    first = batch_of(request.user, pk)
    others = comparable_batches(first)
    wanted = request.GET.get("with")
    second = get_owned_or_404(batches_of(request.user), request.user, wanted) if wanted else None
    context = {
        "first": first,
        "second": second,
        "others": others,
        "comparison": compare_batches(first, second) if second else None,
    }
    return render(request, "segmentation/prediction_compare.html", context)


@require_safe
@viewer_required
def prediction_archive(request: SignedInRequest, pk: str) -> HttpResponseBase:
    """Stream all masks and probabilities of a batch as one ZIP."""
    batch = batch_of(request.user, pk)
    audit(request.user, "exported", batch, images=batch.n_done, format="ZIP")
    response = StreamingHttpResponse(batch_archive(batch), content_type="application/zip")
    return as_attachment(response, f"{batch.name}.zip")


@require_safe
@viewer_required
def prediction_csv(request: SignedInRequest, pk: str) -> HttpResponseBase:
    """Send the figures of every image of a batch as CSV."""
    batch = batch_of(request.user, pk)
    audit(request.user, "exported", batch, images=batch.n_done, format="CSV")
    response = HttpResponse(numbers_csv(batch.images.all()), content_type=CSV)
    return as_attachment(response, f"{batch.name}.csv")


@require_safe
@viewer_required
def prediction_objects(request: SignedInRequest, pk: str) -> HttpResponse:
    """Show the number and size of the objects of each class, for every image and in total."""
    batch = batch_of(request.user, pk)
    context = {"batch": batch, **objects_report(batch)}
    return render(request, "segmentation/prediction_objects.html", context)


@require_safe
@viewer_required
def prediction_objects_file(request: SignedInRequest, pk: str, kind: str) -> HttpResponseBase:
    """Send all objects of a batch as CSV, XLSX or COCO."""
    batch = batch_of(request.user, pk)
    if kind not in OBJECT_FILES:
        raise Http404(_("There is no such file."))
    rows = done_rows(batch)
    audit(request.user, "exported", batch, images=len(rows), format=f"objects {kind}")
    media_type, make = OBJECT_FILES[kind]
    response = HttpResponse(make(rows), content_type=media_type)
    return as_attachment(response, f"{batch.name}.objects.{kind}")


OBJECT_FILES: dict[str, tuple[str, Callable[[list[PredictedImage]], bytes]]] = {
    "csv": (
        CSV,
        lambda rows: objects_csv(object_rows(rows), unit=unit_of(rows)),
    ),
    "xlsx": (XLSX, lambda rows: objects_xlsx(object_rows(rows), unit=unit_of(rows))),
    "coco.json": ("application/json", coco_json),
}


@require_POST
@staff_required
def prediction_go_on_view(request: SignedInRequest, pk: str) -> HttpResponse:
    """Predict the images that a failed or cancelled job left."""
    batch = get_owned_or_404(PredictionBatch, request.user, pk)
    attempt(request, lambda: prediction_go_on(user=request.user, batch=batch))
    return redirect(batch)


@require_POST
@staff_required
def prediction_delete_view(request: SignedInRequest, pk: str) -> HttpResponse:
    """Delete a batch if its name was typed."""
    batch = get_owned_or_404(PredictionBatch, request.user, pk)
    return remove_page(
        request,
        _("Remove this prediction"),
        if_named(batch.name, lambda: prediction_delete(user=request.user, batch=batch)),
        [
            (_("Predictions"), reverse("segmentation:predictions")),
            (batch.name, batch.get_absolute_url()),
        ],
        words=_("This removes the masks and probabilities of this prediction."),
        done=_("The prediction of %(name)s was removed. Images and model are still there."),
        sent_as="confirm",
    )
