"""Views for uploading files into a set, and for sending their bytes."""

import json
from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_POST, require_safe

from engine.datasets.annotations.archive import ENCODINGS
from webapp.accounts.models import User
from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.database.full_disk import is_full_disk
from webapp.files import store
from webapp.files.contents import StorageFullError
from webapp.files.file_responses import exported, file_response
from webapp.segmentation.forms import UploadForm
from webapp.segmentation.models import ImageSet
from webapp.segmentation.selectors.image_sets import image_file_of
from webapp.segmentation.services.thumbnails import thumbnail_path
from webapp.segmentation.services.uploads import FileResult, UploadChoices, upload_take_all
from webapp.translation.lazy import gettext_lazy

CUT_OFF = gettext_lazy("The upload stopped before its end. Nothing of this file was saved.")


@csrf_exempt  # checked inside, so that a full disk can still be reported
@require_POST
@staff_required
def image_file_upload(request: SignedInRequest, pk: str) -> HttpResponseBase:
    """Import one image or one ZIP; stream one line of JSON per file as soon as it is known."""
    try:
        return _protected_upload(request, pk)
    except OSError as error:
        if is_full_disk(error):
            return JsonResponse({"sentence": str(StorageFullError())}, status=507)
        if store.is_fault(error):
            raise  # answered with 503 and a sentence
        return JsonResponse({"sentence": CUT_OFF}, status=400)


@csrf_protect
def _protected_upload(request: SignedInRequest, pk: str) -> HttpResponseBase:
    image_set = get_owned_or_404(ImageSet, request.user, pk)
    files = request.FILES.getlist("file")
    form = UploadForm.typed(request)
    wants_lines = request.headers.get("Accept", "").startswith("application/x-ndjson")
    if not files or not form.is_valid() or not _is_whole(form.cleaned_data["bytes"], files):
        if wants_lines:
            return JsonResponse({"sentence": CUT_OFF}, status=400)
        toast(request, _("Choose at least one file."), error=True)
        return redirect(image_set)
    choices = UploadChoices(
        as_name=form.cleaned_data["name"] if len(files) == 1 else "",
        encoding=form.cleaned_data["encoding"],
        beside=form.cleaned_data["beside"],
    )
    results = upload_take_all(user=request.user, image_set=image_set, files=files, choices=choices)
    if not wants_lines:
        return _tell(request, image_set, results)
    return StreamingHttpResponse(
        _lines(request.user, image_set, results), content_type="application/x-ndjson"
    )


def _is_whole(stated: str, files: list) -> bool:
    """Return True if the body has the length that the page stated; a cut body looks complete."""
    return stated in ("", str(sum(file.size for file in files)))


def _lines(user: User, image_set: ImageSet, results: Iterator[FileResult]) -> Iterator[bytes]:
    for result in results:
        yield json.dumps(result_json(image_set, result)).encode() + b"\n"


def result_json(image_set: ImageSet, result: FileResult) -> dict[str, Any]:
    """Return the fields of one result for the page."""
    line: dict[str, Any] = {
        "name": result.name,
        "outcome": result.outcome,
        "sentence": result.sentence,
    }
    if result.is_early:
        line["early"] = True
    if result.encodings:
        line["encodings"] = [
            {"key": key, "label": ENCODINGS[key], "sample": sample}
            for key, sample in result.encodings.items()
        ]
    if result.file_id:
        line["thumbnail"] = reverse(
            "segmentation:image-file-thumbnail", args=[image_set.pk, result.file_id]
        )
    return line


def _tell(
    request: SignedInRequest, image_set: ImageSet, results: Iterator[FileResult]
) -> HttpResponse:
    """Redirect with messages about the files, for browsers without JavaScript."""
    settled = list(results)
    taken = sum(result.was_taken for result in settled)
    if taken:
        toast(
            request,
            _("%(taken)s of %(settled)s files saved.") % {"taken": taken, "settled": len(settled)},
        )
    for result in settled[:20]:
        if result.outcome == "refused":
            toast(request, result.sentence, error=True)
    return redirect(image_set)


@require_safe
@viewer_required
def image_file_content(request: SignedInRequest, pk: str, file_pk: str) -> HttpResponseBase:
    """Send the uploaded bytes: to view, or to download, which leaves an audit line."""
    file = image_file_of(request.user, pk, file_pk)
    is_download = "download" in request.GET
    response = file_response(
        request,
        file.store.path(file.digest),
        media_type=file.media_type,
        etag=file.digest,
        filename=file.name,
        attachment=is_download,
    )
    if is_download:
        exported(request, file, response, image_set=file.image_set.name)
    return response


@require_safe
@viewer_required
def image_file_thumbnail(request: SignedInRequest, pk: str, file_pk: str) -> HttpResponseBase:
    """Send a JPEG of at most 320 pixels a side."""
    file = image_file_of(request.user, pk, file_pk)
    path = thumbnail_path(file.image_set.organisation_id, file.digest, file.view)
    return file_response(request, path, media_type="image/jpeg", etag=path.name[:80])
