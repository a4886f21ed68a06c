"""Views for painting on the images of a set: the page, strokes, and the answer after each."""

import json
from pathlib import Path
from typing import Any

from django.db.models import Count, Max
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from engine.core.json_text import read_json
from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment
from webapp.files.file_responses import file_response
from webapp.segmentation.errors import PaintingBusyError, SegmentationError, StrokesLeftError
from webapp.segmentation.forms import PaintedForm
from webapp.segmentation.measuring import MICROMETRES, PIXELS, sides_of
from webapp.segmentation.models import ImageFile, ImageSet, Segmenter, Stroke
from webapp.segmentation.object_options import background_of
from webapp.segmentation.object_tables import objects_csv
from webapp.segmentation.painting.raster import live_factor
from webapp.segmentation.selectors.image_sets import image_file_of
from webapp.segmentation.services import painting
from webapp.segmentation.services.painted_models import painting_learn
from webapp.segmentation.services.probability_maps import maps_beside
from webapp.segmentation.services.thumbnails import view_picture_path
from webapp.segmentation.views.set_views import view_words
from webapp.tabular.tables_out import CSV

MOST_JSON_BYTES = 2 * 1024**2
MOST_STROKES_AT_ONCE = 200
MOST_OBJECTS = 500


def _painted_file(request: SignedInRequest, pk: str, file_pk: str) -> ImageFile:
    file = image_file_of(request.user, pk, file_pk)
    if file.role != ImageFile.Role.IMAGE:
        raise Http404(_("Masks are not painted on."))
    return file


@require_safe
@staff_required
def paint_set(request: SignedInRequest, pk: str) -> HttpResponse:
    """Redirect to the image painted last, or to the first of the set."""
    image_set = get_owned_or_404(ImageSet, request.user, pk)
    last = Stroke.objects.filter(file__image_set=image_set, undone=False).order_by("-created_at")
    stroke = last.select_related("file").first()
    file = stroke.file if stroke else image_set.files.images().first()
    if file is None:
        toast(request, _("There is no image to paint on yet. Upload some first."), error=True)
        return redirect(image_set)
    return redirect("segmentation:paint", image_set.pk, file.pk)


@require_safe
@staff_required
def paint_page(request: SignedInRequest, pk: str, file_pk: str) -> HttpResponse:
    """Show one image with its strokes and tools."""
    file = _painted_file(request, pk, file_pk)
    image_set = file.image_set
    keys = list(image_set.files.images().values_list("pk", flat=True))
    place = keys.index(file.pk)
    context = {
        "file": file,
        "image_set": image_set,
        "place": place + 1,
        "total": len(keys),
        "previous": keys[place - 1] if place else None,
        "next": keys[place + 1] if place + 1 < len(keys) else None,
        "state": _state(request, file),
        "learning": PaintedForm(),
        "maps": maps_beside(image_set),
        "view_words": view_words(image_set) if file.facts.get("kind") else "",
    }
    return render(request, "segmentation/paint.html", context)


def _state(request: SignedInRequest, file: ImageFile) -> dict[str, Any]:
    """Return the initial state of the page's script."""
    image_set = file.image_set
    base = [image_set.pk, file.pk]
    urls = {
        name: reverse(f"segmentation:paint-{name}", args=base)
        for name in ("strokes", "painted", "undo", "clear", "answer", "objects", "picture")
    }
    urls["classes"] = reverse("segmentation:paint-classes", args=[image_set.pk])
    urls["learn"] = reverse("segmentation:paint-learn", args=[image_set.pk])
    return {
        "width": file.width,
        "height": file.height,
        "factor": live_factor(file.width, file.height),
        "pixelSize": sides_of(file.pixel_size),
        "classes": painting.classes_of(image_set),
        "background": background_of(painting.classes_of(image_set)),
        "elsewhere": _counts_elsewhere(file),
        "urls": urls,
    } | _painted(request, file)


def _counts_elsewhere(file: ImageFile) -> dict[int, list[int]]:
    """Return the strokes and pixels of each class on the other images of the set."""
    counts: dict[int, list[int]] = {}
    others = Stroke.objects.filter(file__image_set=file.image_set, undone=False, value__gt=0)
    for value, pixels in others.exclude(file=file).values_list("value", "pixels"):
        found = counts.setdefault(value, [0, 0])
        found[0] += 1
        found[1] += pixels
    return counts


def stroke_json(stroke: Stroke) -> dict[str, Any]:
    """Return one stroke in the format of the page's script."""
    return {
        "id": str(stroke.pk),
        "number": stroke.number,
        "tool": stroke.tool,
        "value": stroke.value,
        "radius": stroke.radius,
        "points": stroke.points,
        "radii": stroke.radii,
        "pixels": stroke.pixels,
        "right": stroke.right,
    }


def json_body(request: SignedInRequest) -> Any:
    """Return the JSON that the page's script sent; refuse forms, whose body may be read already."""
    if request.content_type != "application/json":
        raise Refusal(_("This is not what the page sends."))
    if len(request.body) > MOST_JSON_BYTES:
        raise Refusal(_("This is too much at once."))
    try:
        return read_json(request.body)
    except ValueError as error:
        raise Refusal(_("This is not what the page sends.")) from error


def _refused(error: Refusal, status: int = 422) -> JsonResponse:
    return JsonResponse({"sentence": str(error)}, status=status)


@require_POST
@staff_required
def paint_strokes(request: SignedInRequest, pk: str, file_pk: str) -> JsonResponse:
    """Store strokes in order; answer for each that it was stored, or why not."""
    file = _painted_file(request, pk, file_pk)
    try:
        strokes = _strokes_in(json_body(request))
    except Refusal as error:
        return _refused(error)
    answers: list[dict[str, Any]] = []
    for fields in strokes:
        try:
            stroke = painting.stroke_add(user=request.user, file=file, stroke=fields)
        except Refusal as error:
            answers.append({"id": fields.get("id"), "sentence": str(error)})
        else:
            kept = {"id": str(stroke.pk), "number": stroke.number, "pixels": stroke.pixels}
            answers.append(kept)
    are_kept = any("sentence" not in one for one in answers)
    return JsonResponse({"strokes": answers}, status=201 if are_kept else 200)


def _strokes_in(content: Any) -> list[dict[str, Any]]:
    strokes = content.get("strokes") if isinstance(content, dict) else None
    if not isinstance(strokes, list) or not all(isinstance(one, dict) for one in strokes):
        raise Refusal(_("This is not what the page sends."))
    if len(strokes) > MOST_STROKES_AT_ONCE:
        raise Refusal(_("These are too many strokes at once."))
    return strokes


def _painted(request: SignedInRequest, file: ImageFile) -> dict[str, Any]:
    """Return the strokes of everybody, and what the user can undo and redo."""
    own = file.strokes.filter(created_by=request.user)
    return {
        "strokes": [stroke_json(stroke) for stroke in file.strokes.filter(undone=False)],
        "canUndo": own.filter(undone=False).exists(),
        "canRedo": own.filter(undone=True).exists(),
    }


@require_safe
@staff_required
def paint_painted(request: SignedInRequest, pk: str, file_pk: str) -> JsonResponse:
    """Send the strokes of everybody; only their number where the sender has seen them."""
    file = _painted_file(request, pk, file_pk)
    seen = file.strokes.filter(undone=False).aggregate(count=Count("pk"), last=Max("number"))
    mark = f"{seen['count']}-{seen['last'] or 0}"
    if request.GET.get("mark") == mark:
        return JsonResponse({"mark": mark})
    return JsonResponse(_painted(request, file) | {"mark": mark})


@require_POST
@staff_required
def paint_undo(request: SignedInRequest, pk: str, file_pk: str) -> JsonResponse:
    """Undo the user's own last stroke, or redo it."""
    file = _painted_file(request, pk, file_pk)
    painting.stroke_undo(user=request.user, file=file, redo=request.GET.get("redo") == "1")
    return JsonResponse(_painted(request, file))


@require_POST
@staff_required
def paint_clear(request: SignedInRequest, pk: str, file_pk: str) -> JsonResponse:
    """Take back every stroke on an image, or bring back those that the sender names."""
    file = _painted_file(request, pk, file_pk)
    try:
        sent = json_body(request)
        restored = sent.get("restore") if isinstance(sent, dict) else None
        if restored is None:
            keys = painting.strokes_clear(user=request.user, file=file)
        elif isinstance(restored, list):
            keys = [painting.checked_key(one) for one in restored if one is not None]
            painting.strokes_restore(user=request.user, file=file, keys=keys)
        else:
            raise SegmentationError(_("This is not what the page sends."))
    except Refusal as error:
        return _refused(error)
    return JsonResponse(_painted(request, file) | {"keys": [str(key) for key in keys]})


@require_POST
@staff_required
def paint_answer(request: SignedInRequest, pk: str, file_pk: str) -> HttpResponseBase:
    """Learn from all strokes; a header describes the planes that follow as the body."""
    file = _painted_file(request, pk, file_pk)
    try:
        if request.GET.get("warm") == "1":
            painting.warm_up(file)
            return JsonResponse({"ready": True})
        header, body = painting.answer(file)
        header["elsewhere"] = _counts_elsewhere(file)
    except PaintingBusyError as error:
        return JsonResponse({"sentence": str(error), "place": error.place}, status=503)
    except Refusal as error:
        return _refused(error, 503)
    response = HttpResponse(body, content_type="application/octet-stream")
    if body:
        response["Content-Encoding"] = "gzip"
    response["X-Answer"] = json.dumps(header)
    response["Cache-Control"] = "no-store"
    return response


@require_safe
@staff_required
def paint_objects(request: SignedInRequest, pk: str, file_pk: str) -> HttpResponseBase:
    """Return the last answer's objects of one class, in micrometres if the pixel size is known."""
    file = _painted_file(request, pk, file_pk)
    value, least = request.GET.get("class", "1"), request.GET.get("least", "1")
    if not (value.isdecimal() and least.isdecimal() and len(value + least) < 12):
        return JsonResponse({"sentence": _("There is no such class.")}, status=400)
    try:
        rows = painting.objects(file, int(value), min_pixels=int(least))
    except Refusal as error:
        return _refused(error, 503)
    if request.GET.get("format") == "csv":
        audit(request.user, "exported", file, objects=len(rows), format="CSV")
        size = file.pixel_size
        unit, factor = MICROMETRES if size else PIXELS, live_factor(file.width, file.height)
        found = [(file.name, row | {"pixel_size": size}) for row in rows]
        content = objects_csv(found, unit=unit, factor=factor)
        return as_attachment(
            HttpResponse(content, content_type=CSV),
            f"{Path(file.name).stem}.objects.csv",
        )
    total = sum(row["area"] for row in rows)
    areas = [row["area"] for row in rows]
    answer = {"rows": rows[:MOST_OBJECTS], "count": len(rows), "total": total, "areas": areas}
    return JsonResponse(answer)


@require_safe
@staff_required
def paint_picture(request: SignedInRequest, pk: str, file_pk: str) -> HttpResponseBase:
    """Send the image as it is shown, at most 8 megapixels."""
    file = _painted_file(request, pk, file_pk)
    path = view_picture_path(file.image_set.organisation_id, file.digest, file.view)
    return file_response(request, path, media_type="image/jpeg", etag=path.name[:80])


@require_POST
@staff_required
def paint_classes(request: SignedInRequest, pk: str) -> JsonResponse:
    """Store the names and colours of the classes."""
    image_set = get_owned_or_404(ImageSet, request.user, pk)
    try:
        sent = json_body(request)
        with_strokes = isinstance(sent, dict) and sent.get("withStrokes") is True
        classes = painting.classes_change(
            user=request.user,
            image_set=image_set,
            classes=sent.get("classes") if isinstance(sent, dict) else sent,
            with_strokes=with_strokes,
        )
    except StrokesLeftError as error:
        return JsonResponse({"sentence": str(error), "hasStrokes": True}, status=409)
    except Refusal as error:
        return _refused(error)
    return JsonResponse({"classes": classes})


@require_POST
@staff_required
def paint_learn(request: SignedInRequest, pk: str) -> HttpResponse:
    """Learn a model from all strokes of the set, and predict the whole set if requested."""
    image_set = get_owned_or_404(ImageSet, request.user, pk)
    form = PaintedForm.typed(request)
    made: list[Segmenter] = []

    def act(*, max_seconds: int, predict: bool, network: bool = False) -> None:
        made.append(
            painting_learn(
                user=request.user,
                image_set=image_set,
                predict=predict,
                max_seconds=max_seconds,
                network=network,
            )
        )

    if form.submit(request, act):
        return redirect(made[0])
    why = next(iter(form.non_field_errors()), _("Choose how long it may learn."))
    toast(request, _("%(error)s Nothing was started.") % {"error": why}, error=True)
    return redirect("segmentation:paint-set", image_set.pk)
