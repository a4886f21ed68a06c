"""How deep pictures of a set are shown: chosen with the first, kept, changed by people."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.db import transaction

from engine import InvalidProblemError
from engine.datasets.picture_view import BRIGHTEST, PictureView, choose_view, read_deep
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet

PERCENTILES = (0.1, 99.9)
MOST_READ = 24  # pictures of a set that a new view is measured on
MAX_PAGE = 9_999


def view_mark(view: PictureView | None) -> str:
    """Return some letters that tell one view from another, for the names of derived files."""
    if view is None:
        return ""
    return hashlib.sha256(json.dumps(view.as_json()).encode()).hexdigest()[:8]


def view_for(image_set: ImageSet, stack: Any, *, is_mask: bool) -> PictureView | None:
    """Return how a set shows a deep picture that comes in; the first one decides for the set.

    A set with pictures from before views were kept shows each by its own range, as it did.
    """
    if is_mask:
        return None
    kept = image_set.picture_view
    n_channels = stack.planes.shape[1]
    if kept is not None and len(kept.channels) >= n_channels:
        return kept
    if kept is None and image_set.files.filter(facts={}).exists():
        return None
    own = choose_view([stack], percentiles=PERCENTILES)
    n_kept = len(kept.channels) if kept else 0
    channels = (*(kept.channels if kept else ()), *own.channels[n_kept:])
    view = PictureView(channels, kept.page if kept else 0)
    percentiles = image_set.view.get("percentiles", list(PERCENTILES))
    image_set.view = view.as_json() | {"percentiles": percentiles}
    if image_set.pixel_size is None:
        image_set.pixel_size = stack.pixel_size
    image_set.save(update_fields=["view", "pixel_size"])
    return view


def view_change(
    *,
    user: User,
    image_set: ImageSet,
    percentiles: tuple[float, float],
    colours: Iterable[str],
    page: int,
    pixel_size: float | None,
) -> None:
    """Choose percentiles, colours of channels, the page, and say how large a pixel is.

    The range of values is measured anew, over all deep pictures of the set or evenly chosen
    ones. What was learned and predicted stays as it was.

    Raises
    ------
    SegmentationError
        If the set has no deep picture or a choice is out of range.
    """
    if not BRIGHTEST <= page <= MAX_PAGE:
        raise SegmentationError("The page is out of range.")
    if pixel_size is not None and not 0 < pixel_size < 1e6:
        raise SegmentationError("A pixel is larger than 0 and smaller than 1,000,000 micrometres.")
    fields: dict[str, Any] = {"pixel_size": pixel_size}
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
    """Return the deep pictures of a set, evenly chosen where there are many."""
    files = image_set.files.filter(role=ImageFile.Role.IMAGE)
    found = list(files.filter(facts__has_key="kind").select_related("image_set"))
    return found[:: -(-len(found) // MOST_READ)] if found else []


def _stacks(image_set: ImageSet) -> Iterator[Any]:
    for file in deep_files(image_set):
        stack = read_deep(file.store.fetch(file.digest), name=file.name)
        if stack is not None:
            yield stack
