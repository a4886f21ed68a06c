"""Reading image sets and their files."""

from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.segmentation.models import ImageFile, ImageSet

_IMAGE = Q(files__role=ImageFile.Role.IMAGE)
FILTERS = {
    "all": ("All", Q(role=ImageFile.Role.IMAGE)),
    "with-mask": ("With mask", Q(role=ImageFile.Role.IMAGE, mask__isnull=False)),
    "without-mask": ("Without mask", Q(role=ImageFile.Role.IMAGE, mask__isnull=True)),
    "unpaired": ("Masks to pair", Q(role=ImageFile.Role.MASK, mask_of__isnull=True)),
}


def image_sets_of(user: User) -> QuerySet[ImageSet]:
    """Return the sets of the user's organisation with counts of images and masks, and bytes."""
    counted = owned_by(ImageSet, user).annotate(
        n_images=Count("files", filter=_IMAGE),
        n_masked=Count("files", filter=_IMAGE & Q(files__mask__isnull=False)),
        n_masks=Count("files", filter=Q(files__role=ImageFile.Role.MASK)),
        n_bytes=Sum("files__size", default=0),
    )
    return counted.order_by("-created_at", "pk")  # a query with counts forgets the model's order


def image_set_of(user: User, pk: Any) -> ImageSet:
    """Return one set of the user's organisation, or raise Http404."""
    return get_owned_or_404(image_sets_of(user), user, pk)


def image_file_of(user: User, image_set_pk: Any, pk: Any) -> ImageFile:
    """Return one file of a set of the user's organisation, or raise Http404."""
    image_set = get_owned_or_404(ImageSet, user, image_set_pk)
    return get_or_404(image_set.files.select_related("image_set"), pk)


def files_shown(image_set: ImageSet, choice: str, query: str = "") -> QuerySet[ImageFile]:
    """Return the files behind one tab of the set's page, by name."""
    _, condition = FILTERS.get(choice, FILTERS["all"])
    return _files_named(image_set, query).filter(condition).select_related("mask", "mask_of")


def _files_named(image_set: ImageSet, query: str) -> QuerySet[ImageFile]:
    return image_set.files.filter(name__icontains=query) if query else image_set.files.all()


def file_tabs(image_set: ImageSet, query: str = "") -> list[dict[str, Any]]:
    """Return the tabs of the set's page with how many files each shows."""
    counts = _files_named(image_set, query).aggregate(
        **{key.replace("-", "_"): Count("pk", filter=cond) for key, (_, cond) in FILTERS.items()}
    )
    return [
        {"key": key, "label": label, "count": counts[key.replace("-", "_")]}
        for key, (label, _) in FILTERS.items()
    ]


def masked_images(image_sets: list[ImageSet]) -> QuerySet[ImageFile]:
    """Return the images that can be learned from, in a fixed order."""
    return (
        ImageFile.objects.filter(
            image_set__in=image_sets, role=ImageFile.Role.IMAGE, mask__isnull=False
        )
        .select_related("mask", "image_set")
        .order_by("name", "pk")
    )
