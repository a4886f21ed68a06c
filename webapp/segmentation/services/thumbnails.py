"""Small and screen-sized copies of stored pictures: made when missing, kept beside each other."""

from pathlib import Path

from django.http import Http404
from PIL import Image

from engine import InvalidProblemError, read_image
from webapp.segmentation.inspection import THUMBNAIL_SIDE, jpeg_bytes, small_copy
from webapp.segmentation.rendering import view_factor
from webapp.segmentation.store import FileStore

THUMBNAIL_QUALITY = 82
VIEW_QUALITY = 90


def thumbnail_path(organisation_id: int, digest: str) -> Path:
    """Return the path of a JPEG of at most 320 pixels a side."""
    derived = FileStore(organisation_id, "derived")
    path = derived.path(digest, ".thumb.jpg")
    if path.exists():
        return path
    picture = small_copy(_picture(organisation_id, digest), THUMBNAIL_SIDE)
    return derived.put_derived(digest, ".thumb.jpg", jpeg_bytes(picture, quality=THUMBNAIL_QUALITY))


def view_picture_path(organisation_id: int, digest: str) -> Path:
    """Return the path of an upright JPEG for the viewer, of at most 8 megapixels."""
    derived = FileStore(organisation_id, "derived")
    path = derived.path(digest, ".view.jpg")
    if path.exists():
        return path
    picture = _picture(organisation_id, digest)
    factor = view_factor(*picture.size)
    if factor > 1:
        picture = picture.reduce(factor)
    return derived.put_derived(digest, ".view.jpg", jpeg_bytes(picture, quality=VIEW_QUALITY))


def _picture(organisation_id: int, digest: str) -> Image.Image:
    try:
        return Image.fromarray(read_image(FileStore(organisation_id).path(digest)))
    except InvalidProblemError as error:
        raise Http404("This picture is no longer stored.") from error
