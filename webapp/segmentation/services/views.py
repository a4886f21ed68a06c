"""Views of the deep images of a set: chosen with the first image, stored, changed by people."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from engine import InvalidProblemError
from engine.datasets.picture_view import BRIGHTEST, PictureView, choose_view, read_deep
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet

PERCENTILES = (0.1, 99.9)
MOST_READ = 24  # images of a set that a new view is measured on
MAX_PAGE = 9_999


def view_mark(view: PictureView | None) -> str:
    """Return a short text that identifies a view, for the names of derived files."""
    if view is None:
        return ""
    return hashlib.sha256(json.dumps(view.as_json()).encode()).hexdigest()[:8]


def view_for(image_set: ImageSet, stack: Any, *, is_mask: bool) -> PictureView | None:
    """Return the view of a set for a new deep image; the first image decides for the set.

    A set with images from before views were stored shows each by its own range.
    """
    if is_mask:
        return None
    kept = image_set.picture_view
    n_channels = stack.planes.shape[1]
    if kept is not None and not kept.suits(stack):
        return None
    if kept is not None and len(kept.channels) >= n_channels:
        return kept
    if kept is None and image_set.files.filter(facts={}).exists():
        return None
    own = choose_view([stack], percentiles=PERCENTILES)
    n_kept = len(kept.channels) if kept else 0
    channels = (*(kept.channels if kept else ()), *own.channels[n_kept:])
    view = PictureView(channels, kept.page if kept else 0, own.is_colour)
    percentiles = image_set.view.get("percentiles", list(PERCENTILES))
    image_set.view = view.as_json() | {"percentiles": percentiles}
    image_set.save(update_fields=["view"])
    return view


def view_change(
    *,
    user: User,
    image_set: ImageSet,
    percentiles: tuple[float, float],
    colours: Iterable[str],
    page: int,
    pixel_size: float | None,
    pixel_size_for_all: bool = False,
) -> None:
    """Set the percentiles, the colours of channels, the page, and the size of a pixel.

    The size of a pixel applies to images whose files state none, or to all.

    The range of values is measured again, over all deep images of the set or evenly chosen
    ones. Models and predictions stay as they were.

    Raises
    ------
    SegmentationError
        If the set has no deep image or a value is out of range.
    """
    if not BRIGHTEST <= page <= MAX_PAGE:
        raise SegmentationError(_("The page is out of range."))
    if pixel_size is not None and not 0 < pixel_size < 1e6:
        raise SegmentationError(
            _("A pixel is larger than 0 and smaller than 1,000,000 micrometres.")
        )
    fields: dict[str, Any] = {
        "pixel_size": pixel_size,
        "pixel_size_for_all": pixel_size_for_all and pixel_size is not None,
    }
    if deep_files(image_set):
        try:
            view = choose_view(
                _stacks(image_set), percentiles=percentiles, colours=list(colours), page=page
            )
        except InvalidProblemError as error:
            raise SegmentationError(str(error)) from error
        fields["view"] = view.as_json() | {"percentiles": list(percentiles)}
    with transaction.atomic():
        ImageSet.objects.filter(pk=image_set.pk).update(**fields)
        audit(user, "changed the display of", image_set)


def deep_files(image_set: ImageSet) -> list[ImageFile]:
    """Return the deep images of a set, evenly chosen if there are many."""
    files = image_set.files.images()
    found = list(files.filter(facts__has_key="kind").select_related("image_set"))
    return found[:: -(-len(found) // MOST_READ)] if found else []


def _stacks(image_set: ImageSet) -> Iterator[Any]:
    for file in deep_files(image_set):
        stack = read_deep(file.store.fetch(file.digest), name=file.name)
        if stack is not None:
            yield stack
