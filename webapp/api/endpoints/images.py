"""Endpoints for image sets and their files."""

from uuid import UUID

from django.http import HttpResponseBase

from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import images as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.selectors import get_owned_or_404
from webapp.files.file_responses import exported, file_response
from webapp.segmentation.models import ImageSet
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
from webapp.segmentation.services.uploads import UploadChoices, upload_take_all

TAG = "Image sets"


@endpoint("GET", "/image-sets", tag=TAG, summary="List sets", query=Paging)
def list_image_sets(request: Request) -> Page[shapes.ImageSet]:
    """Return the organisation's image sets, newest first."""
    return page_of(request, image_sets_of(request.user), shapes.ImageSet, count_files)


@endpoint(
    "POST",
    "/image-sets",
    tag=TAG,
    summary="Make a set",
    body=shapes.NewImageSet,
    status=201,
)
def create_image_set(request: Request) -> shapes.ImageSet:
    """Create an empty image set."""
    sent = read_body(request, shapes.NewImageSet)
    image_set = image_set_create(user=request.user, name=sent.name, foreground=sent.foreground)
    return shapes.ImageSet.model_validate(image_set_of(request.user, image_set.pk))


@endpoint(
    "GET",
    "/image-sets/{set_id}",
    tag=TAG,
    summary="Look at a set",
)
def get_image_set(request: Request, set_id: UUID) -> shapes.ImageSet:
    """Return one image set."""
    return shapes.ImageSet.model_validate(image_set_of(request.user, set_id))


@endpoint("DELETE", "/image-sets/{set_id}", tag=TAG, summary="Delete a set", status=204)
def purge_image_set(request: Request, set_id: UUID) -> None:
    """Delete an image set, its files and its predictions, for good."""
    image_set_purge(user=request.user, image_set=get_owned_or_404(ImageSet, request.user, set_id))


@endpoint(
    "GET",
    "/image-sets/{set_id}/files",
    tag=TAG,
    summary="List files",
    query=shapes.FileQuery,
)
def list_image_files(request: Request, set_id: UUID) -> Page[shapes.ImageFile]:
    """Return the files of an image set by name."""
    files = get_owned_or_404(ImageSet, request.user, set_id).files.select_related("mask")
    role = read_query(request, shapes.FileQuery).role
    return page_of(request, files.filter(role=role) if role else files, shapes.ImageFile)


@endpoint(
    "POST",
    "/image-sets/{set_id}/files",
    tag=TAG,
    summary="Upload pictures, masks or a ZIP",
    description="A result per file: one bad file never fails the others. NAME.mask.png is the mask "
    "of NAME.*; so is NAME.png beside NAME.jpg. A file of a name that is there replaces it. Of two "
    "files of one name in one request only the first is taken.",
    form={
        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "encoding": {
            "type": "string",
            "description": "encoding of the names in a ZIP that does not state it: one of those "
            "that the refusal of the ZIP lists",
        },
    },
    required=("file",),
)
def upload_image_files(request: Request, set_id: UUID) -> shapes.UploadResults:
    """Add files to an image set."""
    image_set = get_owned_or_404(ImageSet, request.user, set_id)
    files = request.FILES.getlist("file")
    if not files:
        raise Problem(400, "Send at least one file in the multipart field “file”.")
    results = [
        shapes.UploadResult(
            name=result.name,
            outcome=result.outcome,
            sentence=result.sentence,
            id=result.file_id or None,
            encodings=result.encodings,
        )
        for result in upload_take_all(
            user=request.user,
            image_set=image_set,
            files=files,
            choices=UploadChoices(encoding=request.POST.get("encoding", "")),
        )
    ]
    return shapes.UploadResults(results=results)


@endpoint(
    "GET",
    "/image-sets/{set_id}/files/{file_id}",
    tag=TAG,
    summary="Look at a file",
)
def get_image_file(request: Request, set_id: UUID, file_id: UUID) -> shapes.ImageFile:
    """Return the properties of one file."""
    return shapes.ImageFile.of(image_file_of(request.user, set_id, file_id))


@endpoint(
    "DELETE", "/image-sets/{set_id}/files/{file_id}", tag=TAG, summary="Remove a file", status=204
)
def remove_image_file(request: Request, set_id: UUID, file_id: UUID) -> None:
    """Remove a file from its image set."""
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
)
def unpair_mask(request: Request, set_id: UUID, file_id: UUID) -> shapes.ImageFile:
    """Unpair a mask from its image; pairing by name ignores it from then on."""
    mask = image_file_of(request.user, set_id, file_id)
    mask_pair(user=request.user, mask=mask, image=None)
    return shapes.ImageFile.of(image_file_of(request.user, set_id, file_id))


@endpoint(
    "POST",
    "/image-sets/{set_id}/files/{file_id}/pair/{image_id}",
    tag=TAG,
    summary="Pair a mask with an image",
)
def pair_mask(request: Request, set_id: UUID, file_id: UUID, image_id: UUID) -> shapes.ImageFile:
    """Pair a mask with an image of the same set."""
    mask = image_file_of(request.user, set_id, file_id)
    mask_pair(user=request.user, mask=mask, image=image_file_of(request.user, set_id, image_id))
    return shapes.ImageFile.of(image_file_of(request.user, set_id, file_id))
