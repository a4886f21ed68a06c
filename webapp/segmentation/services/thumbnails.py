"""Thumbnails and screen-sized copies of stored images, created on demand and cached."""

from pathlib import Path

from django.http import Http404
from django.utils.translation import gettext as _
from PIL import Image

from engine import InvalidProblemError
from engine.datasets import read_image
from engine.datasets.picture_view import PictureView
from webapp.files.contents import FileStore
from webapp.segmentation.inspection import THUMBNAIL_SIDE, jpeg_bytes, small_copy
from webapp.segmentation.rendering import view_factor
from webapp.segmentation.services.views import view_mark

THUMBNAIL_QUALITY = 82
VIEW_QUALITY = 90


def thumbnail_path(organisation_id: int, digest: str, view: PictureView | None) -> Path:
    """Return the path of a JPEG of at most 320 pixels a side."""
    derived, suffix = FileStore(organisation_id, "derived"), f"{view_mark(view)}.thumb.jpg"
    path = derived.fetch(digest, suffix)
    if path.exists():
        return path
    picture = small_copy(_picture(organisation_id, digest, view), THUMBNAIL_SIDE)
    return derived.put_derived(digest, suffix, jpeg_bytes(picture, quality=THUMBNAIL_QUALITY))


def view_picture_path(organisation_id: int, digest: str, view: PictureView | None) -> Path:
    """Return the path of an upright JPEG for the viewer, of at most 8 megapixels."""
    derived, suffix = FileStore(organisation_id, "derived"), f"{view_mark(view)}.view-444.jpg"
    path = derived.fetch(digest, suffix)
    if path.exists():
        return path
    picture = _picture(organisation_id, digest, view)
    factor = view_factor(*picture.size)
    if factor > 1:
        picture = picture.reduce(factor)
    return derived.put_derived(
        digest, suffix, jpeg_bytes(picture, quality=VIEW_QUALITY, full_colour=True)
    )


def _picture(organisation_id: int, digest: str, view: PictureView | None) -> Image.Image:
    try:
        return Image.fromarray(read_image(FileStore(organisation_id).fetch(digest), view=view))
    except InvalidProblemError as error:
        raise Http404(_("This picture is no longer stored.")) from error
