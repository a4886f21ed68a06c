"""Queries on image sets and their files."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.common.listing import PAGE_SIZE, Listing, Tally, list_page
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.jobs.models import ACTIVE_STATES, Job
from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch, Segmenter, Stroke
from webapp.translation.lazy import gettext_lazy as _

_IMAGE, _MASK = Q(role=ImageFile.Role.IMAGE), Q(role=ImageFile.Role.MASK)
_HAS_MASK = _IMAGE & Q(mask__isnull=False)
_FILES = Tally(
    ImageFile.objects.all(),
    "image_set",
    {
        "n_images": Count("pk", filter=_IMAGE),
        "n_masked": Count("pk", filter=_HAS_MASK),
        "n_masks": Count("pk", filter=_MASK),
        "n_bytes": Sum("size", default=0),
    },
)
_MODELS = Tally(
    Segmenter.image_sets.through.objects.all(), "imageset", {"n_models": Count("segmenter")}
)
_BATCHES = Tally(PredictionBatch.objects.all(), "image_set", {"n_batches": Count("pk")})
FILTERS = {
    "all": (_("All"), Q(role=ImageFile.Role.IMAGE)),
    "with-mask": (_("With mask"), Q(role=ImageFile.Role.IMAGE, mask__isnull=False)),
    "without-mask": (_("Without mask"), Q(role=ImageFile.Role.IMAGE, mask__isnull=True)),
    "maps": (_("Probability maps"), Q(role=ImageFile.Role.MAP)),
    "unpaired": (
        _("Masks to pair"),
        Q(role=ImageFile.Role.MASK, mask_of__isnull=True, version_of__isnull=True),
    ),
}


def image_sets_of(user: User) -> QuerySet[ImageSet]:
    """Return the sets of the user's organisation, newest first."""
    return owned_by(ImageSet, user).order_by("-created_at", "pk")


def count_files(image_sets: Iterable[ImageSet]) -> None:
    """Set ``n_images``, ``n_masked`` (images with a mask), ``n_masks``, ``n_bytes`` of sets."""
    _FILES.add_to(image_sets)


def image_set_listing(
    user: User, parameters: Mapping[str, str], size: int = PAGE_SIZE
) -> Listing[ImageSet]:
    """Return a page of the sets, each with file counts, ``n_models`` and ``n_batches``."""
    return list_page(image_sets_of(user), parameters, _FILES, _MODELS, _BATCHES, size=size)


def image_set_of(user: User, pk: Any) -> ImageSet:
    """Return one set of the user's organisation with its counts, or raise Http404."""
    image_set = get_owned_or_404(ImageSet, user, pk)
    count_files([image_set])
    return image_set


def sets_with_maps(user: User) -> QuerySet[ImageFile, UUID]:
    """Return the keys of the user's sets in which images have probability maps."""
    maps = ImageFile.objects.filter(
        role=ImageFile.Role.MAP, problem="", image_set__in=owned_by(ImageSet, user)
    )
    return maps.order_by().values_list("image_set", flat=True).distinct()


def image_counts(user: User, *, masked: bool = False) -> dict[UUID, int]:
    """Return the number of images, or of masked images, of each set that has any."""
    files = ImageFile.objects.filter(
        _HAS_MASK if masked else _IMAGE, image_set__in=owned_by(ImageSet, user)
    )
    return dict(files.order_by().values_list("image_set").annotate(Count("pk")))


def sets_with_images(user: User) -> QuerySet[ImageSet]:
    """Return the sets that have images to predict."""
    images = ImageFile.objects.filter(_IMAGE, image_set=OuterRef("pk"))
    return image_sets_of(user).filter(Exists(images))


def sets_with_masks(user: User) -> QuerySet[ImageSet]:
    """Return the sets that have masks to learn from."""
    masked = ImageFile.objects.filter(_HAS_MASK, image_set=OuterRef("pk"))
    return image_sets_of(user).filter(Exists(masked))


def sets_with_numbers(user: User) -> QuerySet[ImageSet]:
    """Return the sets with masks that number their objects."""
    masked = ImageFile.objects.filter(
        _HAS_MASK, image_set=OuterRef("pk"), mask__facts__mask__numbered=True
    )
    return image_sets_of(user).filter(Exists(masked))


def image_file_of(user: User, image_set_pk: Any, pk: Any) -> ImageFile:
    """Return one file of a set of the user's organisation, or raise Http404."""
    image_set = get_owned_or_404(ImageSet, user, image_set_pk)
    return get_or_404(image_set.files.select_related("image_set"), pk)


def matching_files(image_set: ImageSet, choice: str, query: str = "") -> QuerySet[ImageFile]:
    """Return the files of one tab of the set's page, by name; each has ``is_painted``."""
    _rest, condition = FILTERS.get(choice, FILTERS["all"])
    strokes = Stroke.objects.filter(file=OuterRef("pk"), undone=False)
    return (
        _files_named(image_set, query)
        .filter(condition)
        .annotate(is_painted=Exists(strokes))
        .select_related("mask", "mask_of")
        .prefetch_related("versions")
    )


def _files_named(image_set: ImageSet, query: str) -> QuerySet[ImageFile]:
    return image_set.files.filter(name__icontains=query) if query else image_set.files.all()


def file_tabs(image_set: ImageSet, query: str = "") -> list[dict[str, Any]]:
    """Return the tabs of the set's page with the number of files in each."""
    counts = _files_named(image_set, query).aggregate(
        **{key.replace("-", "_"): Count("pk", filter=cond) for key, (_, cond) in FILTERS.items()}
    )
    return [
        {"key": key, "label": label, "count": counts[key.replace("-", "_")]}
        for key, (label, _) in FILTERS.items()
        if key != "maps" or counts["maps"]
    ]


def masked_images(image_sets: list[ImageSet]) -> QuerySet[ImageFile]:
    """Return the images that can be used for training, in a fixed order."""
    return (
        ImageFile.objects.filter(
            image_set__in=image_sets, role=ImageFile.Role.IMAGE, mask__isnull=False
        )
        .select_related("mask", "image_set")
        .order_by("name", "pk")
    )


def most_pages(image_set: ImageSet) -> int:
    """Return the largest number of pages of any file in the set."""
    files = image_set.files.images().filter(facts__has_key="pages")
    return max(files.values_list("facts__pages", flat=True), default=1)


def jobs_that_need(image_set: ImageSet) -> list[Job]:
    """Return the waiting and running jobs that learn from a set or predict it."""
    of_set = Q(segmenter__image_sets=image_set) | Q(prediction_batch__image_set=image_set)
    found = Job.objects.filter(of_set, state__in=ACTIVE_STATES, parent=None)
    return list(found.distinct().order_by("created_at"))
