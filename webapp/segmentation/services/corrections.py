"""Corrections of predicted masks, saved as new masks of their images."""

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from engine import InvalidProblemError
from engine.datasets import read_image
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.files import store
from webapp.files.contents import FileStore, StoredContent
from webapp.files.quota import with_fresh_count
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.inspection import FileFacts, inspect_file
from webapp.segmentation.models import ImageFile, ImageSet, PredictedImage
from webapp.segmentation.rendering import mask_png, read_mask_png, reduced, view_factor
from webapp.segmentation.services.image_sets import (
    content_keep,
    contents_release,
    pairing_refresh,
)


@with_fresh_count
def mask_correct(*, user: User, row: PredictedImage, painted: bytes) -> ImageFile:
    """Save a corrected mask as the image's new mask; the earlier one is kept as its version.

    ``painted`` is a PNG in the viewer's pixels. Only differences from the predicted mask are
    applied, so that a large image shown smaller keeps its fine borders elsewhere.

    Raises
    ------
    SegmentationError, QuotaError
        If the image has left its set, the PNG is not a mask of the right size, or space is short.
    """
    if row.file is None:
        raise SegmentationError(
            _("%(name)s has left its set, so there is no place for a mask.") % {"name": row.name}
        )
    mask = _corrected(row, painted)
    organisation_id = row.file.image_set.organisation_id
    contents = FileStore(organisation_id)
    content = contents.put([mask_png(mask)])
    try:
        name = _corrected_name(row.file.image_set, row.file)
        facts = inspect_file(contents.path(content.digest), name)
        FileStore(organisation_id, "derived").put_derived(
            content.digest, ".thumb.jpg", facts.thumbnail
        )
        with transaction.atomic():
            ImageFile.objects.filter(mask_of=row.file).update(
                mask_of=None, version_of=row.file, fixed=True
            )
            file = _mask_row(user, row.file, name, content, facts)
            file.save()
            pairing_refresh(image_set=file.image_set)
            audit(user, "corrected", row, mask=file.name, foreground=float(mask.mean()))
            written = content.size + len(facts.thumbnail)
            content_keep(organisation_id=organisation_id, content=content, written=written)
    except BaseException:
        contents_release(organisation_id=organisation_id, digests=[content.digest])
        raise
    return file


def _mask_row(
    user: User, image: ImageFile, name: str, content: StoredContent, facts: FileFacts
) -> ImageFile:
    """Return the unsaved row of a stored mask, fixed to its image."""
    return ImageFile(
        image_set=image.image_set,
        created_by=user,
        name=name,
        digest=content.digest,
        size=content.size,
        media_type=facts.media_type,
        width=facts.width,
        height=facts.height,
        mask_like=True,
        role=ImageFile.Role.MASK,
        role_fixed=True,
        origin=ImageFile.Origin.CORRECTED,
        mask_of=image,
        fixed=True,
    )


def _corrected(row: PredictedImage, painted: bytes) -> NDArray[np.bool_]:
    predicted = read_mask_png(store.get(row.mask_path))
    factor = view_factor(row.width, row.height)
    shown = reduced(predicted, factor)
    try:
        drawn = read_image(painted, name="The corrected mask")[:, :, 0] >= 128
    except InvalidProblemError as error:
        raise SegmentationError(str(error)) from error
    if drawn.shape != shown.shape:
        raise SegmentationError(_("The corrected mask has another size than the image."))
    changed, values = enlarged(drawn != shown, factor), enlarged(drawn, factor)
    height, width = changed.shape
    result = predicted.copy()
    inner = result[:height, :width]
    inner[changed] = values[changed]
    return result


def enlarged(mask: NDArray[np.bool_], factor: int) -> NDArray[np.bool_]:
    """Return the mask with every pixel as a block of ``factor`` by ``factor``."""
    return mask.repeat(factor, axis=0).repeat(factor, axis=1)


def _corrected_name(image_set: ImageSet, image: ImageFile) -> str:
    stem = image.name.rpartition(".")[0] or image.name
    taken = set(image_set.files.values_list("name", flat=True))
    number = 1
    while (name := f"{stem[:150]}.corrected-{number}.mask.png") in taken:
        number += 1
    return name
