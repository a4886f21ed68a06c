"""Views of segmentation models: list, learn, progress, result."""

from collections.abc import Iterable
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine.learning.segmentation.class_candidates import MEAN_OF_BOTH, NETWORK_ALONE, TREES_ALONE
from engine.learning.segmentation.mask_weights import TREES
from engine.learning.segmentation.weight_learning import EDGELESS
from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.form_pages import if_named, remove_page
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.files import store
from webapp.files.contents import StorageFullError
from webapp.files.file_responses import exported, file_response
from webapp.segmentation.charts import held_out_chart
from webapp.segmentation.checking import accuracy_of, interval_of
from webapp.segmentation.forms import ImportForm, LearnForm
from webapp.segmentation.models import ImageFile, ImageSet, Segmenter
from webapp.segmentation.selectors.image_sets import sets_with_masks
from webapp.segmentation.selectors.segmenters import (
    segmenter_badge,
    segmenter_listing,
    segmenter_of,
)
from webapp.segmentation.services.model_files import file_digest, segmenter_import
from webapp.segmentation.services.segmenters import (
    segmenter_delete,
    segmenter_learn,
)

TIME_LIMIT = "time limit"  # the engine's name of this status


@require_safe
@viewer_required
def segmenter_list(request: SignedInRequest) -> HttpResponse:
    """List the segmentation models of the organisation."""
    listing = segmenter_listing(request.user, request.GET)
    rows = [(segmenter, segmenter_badge(segmenter)) for segmenter in listing.rows]
    context = {"listing": listing, "rows": rows}
    return render(request, "segmentation/segmenter_list.html", context)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def segmenter_new(request: SignedInRequest) -> HttpResponse:
    """Choose image sets and settings, and start learning."""
    form = LearnForm.typed(request, user=request.user, initial=_initial(request))
    made: list[Segmenter] = []

    def act(*, name: str, image_sets: Iterable[ImageSet], **settings: Any) -> None:
        made.append(
            segmenter_learn(
                user=request.user,
                name=name,
                image_sets=list(image_sets),
                choices=form.choices(),
                edges=form.wants_edges,
            )
        )

    if form.submit(request, act):
        return redirect(made[0])
    context = {"form": form, "has_masks": sets_with_masks(request.user).exists()}
    return render(request, "segmentation/segmenter_new.html", context, status=form.status)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def segmenter_import_view(request: SignedInRequest) -> HttpResponse:
    """Import a model file from another installation."""
    form = ImportForm.typed(request)
    made: list[Segmenter] = []

    def act(*, name: str, foreground: str, file: UploadedFile, digest: str) -> None:
        try:
            made.append(
                segmenter_import(
                    user=request.user,
                    name=name,
                    foreground=foreground,
                    file_name=file.name or "",
                    chunks=file.chunks(),
                    digest=digest.strip(),
                )
            )
        except StorageFullError as error:
            raise Refusal(str(error)) from error

    if form.submit(request, act):
        toast(request, _("%(segmenter)s was imported.") % {"segmenter": made[0].name})
        return redirect(made[0])
    context = {"form": form}
    return render(request, "segmentation/segmenter_import.html", context, status=form.status)


def _initial(request: SignedInRequest) -> dict[str, Any]:
    wanted = [get_owned_or_404(ImageSet, request.user, pk) for pk in request.GET.getlist("set")]
    if not wanted:
        return {}
    first = wanted[0]
    count = first.segmenters.count()
    name = first.name if count == 0 else f"{first.name}, {count + 1}"
    return {"image_sets": [image_set.pk for image_set in wanted], "name": name}


@require_safe
@viewer_required
def segmenter_page(request: SignedInRequest, pk: str) -> HttpResponse:
    """Show one model: the progress of learning, or its outcome."""
    segmenter = segmenter_of(request.user, pk)
    return render(request, "segmentation/segmenter.html", _context(segmenter))


@require_safe
@viewer_required
def segmenter_live(request: SignedInRequest, pk: str) -> HttpResponse:
    """Show the part of the page that changes while learning; it polls until the end."""
    segmenter = segmenter_of(request.user, pk)
    response = render(request, "segmentation/_segmenter_live.html", _context(segmenter))
    if segmenter.job is None or not segmenter.job.is_active:
        response["HX-Refresh"] = "true"
    return response


def _context(segmenter: Segmenter) -> dict[str, Any]:
    points = list(segmenter.held_out.all())
    previews = ImageFile.objects.filter(
        image_set__organisation_id=segmenter.organisation_id,
        digest__in=segmenter.held_out_digests[:2],
    ).select_related("image_set")
    by_digest = {file.digest: file for file in previews}
    is_active = segmenter.job is not None and segmenter.job.is_active
    shown = [
        {
            "number": number,
            "file": by_digest.get(digest),
            "is_there": store.get(segmenter.preview_path(number), fresh=is_active).exists(),
            "version": points[-1].iteration if points else 0,
        }
        for number, digest in enumerate(segmenter.held_out_digests[:2])
    ]
    return {
        "segmenter": segmenter,
        "job": segmenter.job,
        "is_active": is_active,
        "badge": segmenter_badge(segmenter),
        "has_bounds": _has_bounds(segmenter),
        "held_out": points,
        "held_out_chart": held_out_chart(points) if len(points) > 1 else "",
        "last_error": points[-1].error if points else None,
        **_checked(segmenter),
        "previews": [one for one in shown if is_active or one["is_there"]],
        "n_learned": len(segmenter.learned_digests),
        "n_held_out": len(segmenter.held_out_digests),
        "n_copies": segmenter.job.parameters.get("copies", 0) if segmenter.job else 0,
        "sha256": _digest(segmenter),
        "stopped_by": _stopped_by(segmenter.outcome),
        "alone": _alone(segmenter),
        "compared": list(segmenter.outcome.get("errors", {}).items()),
        "weights_by": (_("%(outcome)s loss") % {"outcome": segmenter.outcome.get("loss") or ""})
        .strip()
        .capitalize(),
        "again_url": _again_url(segmenter),
        "learned_from": _learned_from(segmenter),
        "n_maps": _n_maps(segmenter),
        "batches": segmenter.batches.select_related("image_set")[:10],
        **_prediction_after(segmenter, is_active),
    }


def _alone(segmenter: Segmenter) -> dict[str, str] | None:
    """Return the method and why it was chosen, if it has no edges between pixels; else None."""
    loss = segmenter.outcome.get("loss")
    if loss not in EDGELESS:
        return None
    compared = segmenter.outcome.get("errors", {}).keys()
    trees = {TREES.name, TREES_ALONE.name}
    has_edges = bool(compared - {*trees, NETWORK_ALONE.name, MEAN_OF_BOTH.name})
    why = ""
    if segmenter.imported_from:
        why = _("chosen where it was learned")
    elif loss == "trees" and segmenter.learns_edges:
        why = _("smoothing would remove the edges")
    elif loss == "trees" and has_edges:
        why = _("edges were not clearly better")
    elif loss == "network" and has_edges:
        why = _("trees and edges were not clearly better")
    elif loss == "network" and trees & compared:
        why = _("trees made more mistakes")
    elif loss == "mean" and has_edges:
        why = _("trees alone, network alone and edges were not clearly better")
    methods = {
        "trees": _("Trees alone"),
        "network": _("Network alone"),
        "mean": _("Mean of trees and network"),
    }
    return {"method": methods[loss], "why": why}


def _prediction_after(segmenter: Segmenter, is_active: bool) -> dict[str, Any]:
    """Return the set that is predicted when learning ends, or the prediction that was made then."""
    if segmenter.job is None or not segmenter.job.parameters.get("predict"):
        return {}
    if is_active:
        return {"follows": segmenter.image_sets.first()}
    return {"followed": segmenter.batches.order_by("created_at").first()}


def _has_bounds(segmenter: Segmenter) -> bool:
    """Return True if the model's job reports bounds; learning of trees reports none."""
    if segmenter.job is None:
        return False
    is_solved = not segmenter.grows_trees and segmenter.solver != Segmenter.Solver.PAINTED
    return is_solved or segmenter.job.trace.exists()


def _checked(segmenter: Segmenter) -> dict[str, Any]:
    """Return the model's accuracy on images that it was not trained on, with a row per class."""
    checked = segmenter.outcome.get("checked") or {}
    rows = list(zip(segmenter.classes, checked.get("classes", []), strict=False))
    return {
        "checked": checked,
        # Painted in one place only, which the model was trained on, or left out for lack of time.
        "ran_out": segmenter.outcome.get("status") == TIME_LIMIT,
        "caption_in_time": _("over the %(kind)s pixels that there was time to judge")
        % {"kind": _kind(segmenter)},
        "caption_of_all": _(
            "over all %(kind)s pixels, judged by models that did not learn from them"
        )
        % {"kind": _kind(segmenter)},
        "unjudged": [one["name"] for one, figures in rows if not figures["pixels"]],
        "checked_iou": interval_of(checked, "iou"),
        "checked_accuracy": accuracy_of(checked),
        "class_rows": [one | figures for one, figures in rows],
    }


def _learned_from(segmenter: Segmenter) -> str:
    count = len(segmenter.learned_digests)
    return ngettext("from %(count)s %(kind)s image", "from %(count)s %(kind)s images", count) % {
        "count": f"{count:,}",
        "kind": _kind(segmenter),
    }


def _kind(segmenter: Segmenter) -> str:
    """Return the word for the images that a model is learned from."""
    return "painted" if segmenter.classes and not segmenter.learns_edges else "masked"


def _n_maps(segmenter: Segmenter) -> int:
    """Return the planes of maps that the model was trained with, or will be."""
    planned = segmenter.job.parameters.get("planes", 0) if segmenter.job else 0
    return segmenter.outcome.get("n_maps", 0 if segmenter.is_ready else planned)


def _again_url(segmenter: Segmenter) -> str:
    """Return the URL for learning a failed model again: choosing its sets, or painting."""
    keys = [str(image_set.pk) for image_set in segmenter.image_sets.all()]
    if segmenter.solver == Segmenter.Solver.PAINTED and keys:
        return reverse("segmentation:paint-set", args=[keys[0]])
    query = urlencode([("set", key) for key in keys])
    return f"{reverse('segmentation:segmenter-new')}?{query}"


def _digest(segmenter: Segmenter) -> str:
    """Return the SHA-256 that people compare when they import the file elsewhere."""
    kept = segmenter.outcome.get("sha256")
    if kept or not segmenter.is_ready:
        return kept or ""
    path = store.get(segmenter.path)
    return file_digest(path) if path.exists() else ""


def _stopped_by(outcome: dict[str, Any]) -> str:
    if not outcome.get("converged"):
        return _("stopped: %(outcome)s") % {"outcome": outcome.get("status")}
    return "converged" if outcome.get("is_certified") is False else _("as asked")


@require_safe
@viewer_required
def segmenter_preview(request: SignedInRequest, pk: str, number: int) -> HttpResponseBase:
    """Send the current marginals of one held-out image."""
    segmenter = segmenter_of(request.user, pk)
    path = store.get(segmenter.preview_path(number), fresh=True)
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    return file_response(request, path, media_type="image/png", etag=f"{segmenter.pk}-{stamp}")


@require_safe
@viewer_required
def segmenter_file(request: SignedInRequest, pk: str) -> HttpResponseBase:
    """Send the model file, for use with the command line."""
    segmenter = segmenter_of(request.user, pk)
    response = file_response(
        request,
        segmenter.path,
        media_type="application/octet-stream",
        etag=str(segmenter.pk),
        filename=f"{segmenter.name}.npz",
        attachment=True,
    )
    return exported(request, segmenter, response, format="NPZ")


@require_POST
@staff_required
def segmenter_delete_view(request: SignedInRequest, pk: str) -> HttpResponse:
    """Delete a model and its predictions if its name was typed."""
    segmenter = segmenter_of(request.user, pk)
    return remove_page(
        request,
        _("Remove this model"),
        if_named(segmenter.name, lambda: segmenter_delete(user=request.user, segmenter=segmenter)),
        [
            (_("Image models"), reverse("segmentation:segmenters")),
            (segmenter.name, segmenter.get_absolute_url()),
        ],
        words=_("This removes the model and everything it predicted."),
        sent_as="confirm",
    )
