"""Services that create, rename and empty image sets, and set roles and pairs of files."""

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.files import store
from webapp.files.contents import FileStore, StoredContent
from webapp.files.quota import check_quota
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet, PredictedImage
from webapp.segmentation.pairing import PairingFile, pair_by_name, pair_problem
from webapp.segmentation.services.removals import (
    contents_release,
    is_large,
    learning_jobs_cancel,
    prediction_jobs_cancel,
    prediction_paths,
    removal_start,
    removed_reason,
)

MAX_PROBLEM = ImageFile._meta.get_field("problem").max_length


def image_set_create(*, user: User, name: str, foreground: str) -> ImageSet:
    """Create an empty image set.

    Raises
    ------
    SegmentationError
        If a name is missing or too long.
    """
    image_set = ImageSet(
        organisation=user.own_organisation,
        created_by=user,
        name=name.strip(),
        foreground=foreground.strip() or "object",
    )
    _check_fields(image_set)
    image_set.save()
    audit(user, "created", image_set)
    return image_set


def _check_fields(image_set: ImageSet) -> None:
    """Refuse values too long for the columns, with the field's name on forms and in the API."""
    try:
        image_set.full_clean()
    except ValidationError as error:
        field, sentences = next(iter(error.message_dict.items()))
        raise SegmentationError(f"{field}: {sentences[0]}") from error


def image_set_purge(*, user: User, image_set: ImageSet) -> None:
    """Delete a set, its files and its predictions, and cancel running predictions.

    Learned models stay. A large set disappears at once and a job deletes its data.
    """
    if is_large(image_set):
        removal_start(user=user, target=image_set)
        return
    results = list(
        PredictedImage.objects.filter(batch__image_set=image_set).select_related("batch")
    )
    digests = set(image_set.files.values_list("digest", flat=True))
    for result in results:
        digests |= {result.image_digest, result.mask_digest} - {""}
    paths = [path for result in results for path in prediction_paths(result)]
    organisation_id = image_set.organisation_id
    with transaction.atomic():
        prediction_jobs_cancel(
            user=user, batches=image_set.batches, reason=removed_reason(image_set)
        )
        learning_jobs_cancel(user=user, image_set=image_set)
        audit(
            user,
            "removed",
            image_set,
            files=image_set.files.count(),
            predictions=len(results),
        )
        image_set.delete()
    contents_release(organisation_id=organisation_id, digests=digests)
    for path in paths:
        store.remove(path)


def image_file_remove(*, user: User, file: ImageFile, with_mask: str = "") -> None:
    """Remove one file from its set; an image with its mask, if the key of that mask is given.

    Raises SegmentationError if the image has another mask by now, or no mask.
    """
    image_set, mask = file.image_set, file.paired_mask
    if with_mask and (mask is None or str(mask.pk) != with_mask):
        raise SegmentationError(
            _("The mask of %(file)s was changed meanwhile.") % {"file": file.name}
        )
    files = [file, mask] if with_mask and mask else [file]
    with transaction.atomic():
        for one in files:
            audit(user, "removed a file from", image_set, name=one.name)
            one.delete()
        pairing_refresh(image_set=image_set)
    digests = [one.digest for one in files]
    contents_release(organisation_id=image_set.organisation_id, digests=digests)


def image_file_set_role(*, user: User, file: ImageFile, role: str) -> None:
    """Set the role of a file to image or mask, whatever its name suggests."""
    if role not in {ImageFile.Role.IMAGE, ImageFile.Role.MASK}:
        raise SegmentationError(_("Choose image or mask."))
    if role == ImageFile.Role.MASK and not file.mask_like:
        raise SegmentationError(_("%(file)s does not look like a mask.") % {"file": file.name})
    with transaction.atomic():
        file.role, file.role_fixed, file.fixed, file.mask_of = role, True, False, None
        file.version_of = None
        file.save(update_fields=["role", "role_fixed", "fixed", "mask_of", "version_of"])
        ImageFile.objects.filter(mask_of=file).update(mask_of=None, fixed=False)
        pairing_refresh(image_set=file.image_set)
        audit(user, "changed a file of", file.image_set, name=file.name, role=role)


def mask_pair(*, user: User, mask: ImageFile, image: ImageFile | None) -> None:
    """Pair a mask with an image of the same set, or with no image.

    Raises
    ------
    SegmentationError
        If the two do not fit each other; nothing changes then.
    """
    if mask.role != ImageFile.Role.MASK:
        raise SegmentationError(_("%(mask)s is used as an image.") % {"mask": mask.name})
    if image is not None:
        _check_pair(mask, image)
    with transaction.atomic():
        if image is not None:
            ImageFile.objects.filter(mask_of=image).exclude(pk=mask.pk).update(
                mask_of=None, version_of=image, fixed=True
            )
        mask.mask_of, mask.version_of, mask.fixed, mask.problem = image, None, True, ""
        mask.save(update_fields=["mask_of", "version_of", "fixed", "problem"])
        pairing_refresh(image_set=mask.image_set)
        audit(
            user,
            "paired a mask in",
            mask.image_set,
            mask=mask.name,
            image=image.name if image else "none",
        )


def _check_pair(mask: ImageFile, image: ImageFile) -> None:
    if image.image_set_id != mask.image_set_id or image.role != ImageFile.Role.IMAGE:
        raise SegmentationError(_("Choose an image of the same set."))
    if problem := pair_problem(_pairing_file(mask), _pairing_file(image)):
        raise SegmentationError(problem)


def pairing_refresh(*, image_set: ImageSet) -> None:
    """Pair all files by name that no person has paired, and store the problems.

    A pair made by hand ends when the two no longer fit each other: the mask must be paired again.
    """
    with transaction.atomic():
        files = {file.pk: file for file in image_set.files.select_for_update()}
        pairing = pair_by_name(_pairing_file(file) for file in files.values())
        changed = []
        for key, file in files.items():
            partner = pairing.image_of.get(key)
            problem = pairing.problems.get(key, "")[:MAX_PROBLEM]
            if (file.role, file.mask_of_id, file.problem) != (pairing.roles[key], partner, problem):
                file.role, file.mask_of_id, file.problem = pairing.roles[key], partner, problem
                file.fixed = file.fixed and not problem
                changed.append(file)
        # Partners are unique: clear all changed ones before any is set.
        ImageFile.objects.filter(pk__in=[file.pk for file in changed]).update(mask_of=None)
        ImageFile.objects.bulk_update(
            changed, ["role", "mask_of", "fixed", "problem"], batch_size=100
        )


def _pairing_file(file: ImageFile) -> PairingFile:
    return PairingFile(
        key=file.pk,
        name=file.name,
        size=(file.width, file.height),
        mask_like=file.mask_like,
        not_mask=file.facts.get("not_mask", ""),
        fixed_role=file.role if file.role_fixed else None,
        fixed=file.fixed,
        fixed_image=file.mask_of_id,
    )


def content_keep(*, organisation_id: int, content: StoredContent, written: int) -> None:
    """Count stored bytes that a new row needs; call it last in the transaction of the row.

    ``written`` adds derived bytes. From here to the end of the transaction nobody can release them:
    :func:`contents_release` waits for the same lock and then sees the row.

    Raises
    ------
    SegmentationError, QuotaError
        If the same bytes were released since they were written, or there is no space.
    """
    check_quota(organisation_id, written=written)
    if not store.store().has(FileStore(organisation_id).path(content.digest)):
        raise SegmentationError(_("The same file was being removed. Send it again."))
