"""Image sets and their files."""

from typing import Any
from uuid import UUID

from django.http import HttpResponseBase

from webapp.api.dispatch import page_of, read_field, read_json
from webapp.api.endpoints.jobs import PAGING, time_json
from webapp.api.problems import Problem
from webapp.api.registry import Query, Request, endpoint
from webapp.common.selectors import get_owned_or_404
from webapp.segmentation.file_responses import exported, file_response
from webapp.segmentation.models import ImageFile, ImageSet
from webapp.segmentation.selectors.image_sets import (
    count_files,
    image_file_of,
    image_set_of,
    image_sets_of,
)
from webapp.segmentation.services.image_sets import (
    image_file_remove,
    image_set_create,
    image_set_purge,
    mask_pair,
)
from webapp.segmentation.services.uploads import upload_take_all

TAG = "Image sets"


def image_set_json(image_set: ImageSet) -> dict[str, Any]:
    """Return a counted set as the interface shows it."""
    return {
        "id": str(image_set.pk),
        "name": image_set.name,
        "foreground": image_set.foreground,
        "images": image_set.n_images,
        "with_mask": image_set.n_masked,
        "bytes": image_set.n_bytes,
        "created_at": time_json(image_set.created_at),
    }


def image_file_json(file: ImageFile) -> dict[str, Any]:
    """Return a file as the interface shows it."""
    return {
        "id": str(file.pk),
        "name": file.name,
        "role": file.role,
        "media_type": file.media_type,
        "bytes": file.size,
        "width": file.width,
        "height": file.height,
        "sha256": file.digest,
        "origin": file.origin,
        "mask": str(file.paired_mask.pk) if file.paired_mask else None,
        "mask_of": str(file.mask_of_id) if file.mask_of_id else None,
        "problem": file.problem,
    }


@endpoint("GET", "/image-sets", tag=TAG, summary="List sets", answer="ImageSetPage", queries=PAGING)
def list_image_sets(request: Request) -> dict[str, Any]:
    """Return the organisation's sets, newest first."""
    found, numbers = page_of(request, image_sets_of(request.user))
    count_files(found)
    return {"items": [image_set_json(one) for one in found], **numbers}


@endpoint(
    "POST",
    "/image-sets",
    tag=TAG,
    summary="Make a set",
    body="NewImageSet",
    answer="ImageSet",
    status=201,
)
def create_image_set(request: Request) -> dict[str, Any]:
    """Make an empty set."""
    body = read_json(request)
    image_set = image_set_create(
        user=request.user,
        name=read_field(body, "name", str),
        foreground=read_field(body, "foreground", str, "object"),
    )
    return image_set_json(image_set_of(request.user, image_set.pk))


@endpoint("GET", "/image-sets/{set_id}", tag=TAG, summary="Look at a set", answer="ImageSet")
def get_image_set(request: Request, set_id: UUID) -> dict[str, Any]:
    """Return one set."""
    return image_set_json(image_set_of(request.user, set_id))


@endpoint("DELETE", "/image-sets/{set_id}", tag=TAG, summary="Delete a set", status=204)
def purge_image_set(request: Request, set_id: UUID) -> None:
    """Delete a set, its files and what was predicted of them, for good."""
    image_set_purge(user=request.user, image_set=get_owned_or_404(ImageSet, request.user, set_id))


@endpoint(
    "GET",
    "/image-sets/{set_id}/files",
    tag=TAG,
    summary="List files",
    answer="ImageFilePage",
    queries=(*PAGING, Query("role", "image or mask")),
)
def list_image_files(request: Request, set_id: UUID) -> dict[str, Any]:
    """Return the files of a set by name."""
    files = get_owned_or_404(ImageSet, request.user, set_id).files.select_related("mask")
    if request.GET.get("role"):
        files = files.filter(role=request.GET["role"])
    found, numbers = page_of(request, files)
    return {"items": [image_file_json(file) for file in found], **numbers}


@endpoint(
    "POST",
    "/image-sets/{set_id}/files",
    tag=TAG,
    summary="Upload pictures, masks or a ZIP",
    description="A result per file: one bad file never fails the others. NAME.mask.png is the mask "
    "of NAME.*; so is NAME.png beside NAME.jpg. A file of a name that is there replaces it.",
    form={"file": {"type": "array", "items": {"type": "string", "format": "binary"}}},
    required=("file",),
    answer="UploadResults",
)
def upload_image_files(request: Request, set_id: UUID) -> dict[str, Any]:
    """Take files into a set."""
    image_set = get_owned_or_404(ImageSet, request.user, set_id)
    files = request.FILES.getlist("file")
    if not files:
        raise Problem(400, "Send at least one file in the multipart field “file”.")
    results = [
        {
            "name": result.name,
            "outcome": result.outcome,
            "sentence": result.sentence,
            "id": result.file_id or None,
        }
        for result in upload_take_all(user=request.user, image_set=image_set, files=files)
    ]
    return {"results": results}


@endpoint(
    "GET",
    "/image-sets/{set_id}/files/{file_id}",
    tag=TAG,
    summary="Look at a file",
    answer="ImageFile",
)
def get_image_file(request: Request, set_id: UUID, file_id: UUID) -> dict[str, Any]:
    """Return one file's facts."""
    return image_file_json(image_file_of(request.user, set_id, file_id))


@endpoint(
    "DELETE", "/image-sets/{set_id}/files/{file_id}", tag=TAG, summary="Remove a file", status=204
)
def remove_image_file(request: Request, set_id: UUID, file_id: UUID) -> None:
    """Take a file out of its set."""
    image_file_remove(user=request.user, file=image_file_of(request.user, set_id, file_id))


@endpoint(
    "GET",
    "/image-sets/{set_id}/files/{file_id}/content",
    tag=TAG,
    summary="Download a file",
    description="The very bytes that were uploaded; ranges and ETags are understood. Leaves an "
    "audit line.",
    media_type="image/*",
)
def get_image_content(request: Request, set_id: UUID, file_id: UUID) -> HttpResponseBase:
    """Send the bytes of a file."""
    file = image_file_of(request.user, set_id, file_id)
    response = file_response(
        request,
        file.store.path(file.digest),
        media_type=file.media_type,
        etag=file.digest,
        filename=file.name,
        attachment=True,
    )
    return exported(request, file, response, image_set=file.image_set.name)


@endpoint(
    "POST",
    "/image-sets/{set_id}/files/{file_id}/unpair",
    tag=TAG,
    summary="Unpair a mask",
    answer="ImageFile",
)
def unpair_mask(request: Request, set_id: UUID, file_id: UUID) -> dict[str, Any]:
    """Take a mask from its image; pairing by name leaves it alone from then on."""
    mask = image_file_of(request.user, set_id, file_id)
    mask_pair(user=request.user, mask=mask, image=None)
    return image_file_json(image_file_of(request.user, set_id, file_id))


@endpoint(
    "POST",
    "/image-sets/{set_id}/files/{file_id}/pair/{image_id}",
    tag=TAG,
    summary="Pair a mask with an image",
    answer="ImageFile",
)
def pair_mask(request: Request, set_id: UUID, file_id: UUID, image_id: UUID) -> dict[str, Any]:
    """Make a mask the mask of an image of the same set."""
    mask = image_file_of(request.user, set_id, file_id)
    mask_pair(user=request.user, mask=mask, image=image_file_of(request.user, set_id, image_id))
    return image_file_json(image_file_of(request.user, set_id, file_id))
