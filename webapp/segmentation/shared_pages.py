"""Contributions of segmentation to the rail, the home page, the search and the demonstration."""

from collections.abc import Iterator
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.common import hooks
from webapp.common.selectors import owned_by
from webapp.segmentation.demonstration import load_demonstration
from webapp.segmentation.models import (
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)
from webapp.segmentation.selectors.image_sets import (
    count_files,
    image_set_listing,
    sets_with_masks,
)
from webapp.translation.lazy import gettext_lazy

SETS_ON_HOME = 4
HITS = 8
STEPS = 20
LATEST_ACTS = 50
MASKS_TO_LEARN_FROM = 2
RAIL = (
    (gettext_lazy("Image sets"), "images", "segmentation:image-sets", ImageSet),
    (gettext_lazy("Models"), "layers", "segmentation:segmenters", Segmenter),
    (gettext_lazy("Predictions"), "scan-eye", "segmentation:predictions", PredictionBatch),
)


def register() -> None:
    """Register all contributions; called once when Django has started."""
    for order, (label, icon, url_name, model) in enumerate(RAIL, start=1):
        hooks.register_navigation(
            hooks.NavigationItem("Images", label, icon, url_name, order=10 * order, counted=model)
        )
    hooks.register_home_panel(
        hooks.HomePanel("segmentation/_home_panel.html", home_panel, order=60)
    )
    hooks.register_next_steps(next_steps)
    hooks.register_search(search)
    hooks.register_demonstration(load_demonstration, order=60)


def home_panel(user: User) -> dict[str, Any] | None:
    """Return the newest image sets with their models and predictions; None without any.

    They come first for people most of whose latest acts were on images.
    """
    listing = image_set_listing(user, {}, size=SETS_ON_HOME)
    return {"image_sets": listing.rows, "is_lead": uses_images(user)} if listing else None


def uses_images(user: User) -> bool:
    """Return True if most of the latest acts of a person were on images."""
    own = AuditLine.objects.filter(user=user).exclude(target_type="").order_by("-pk")
    kinds = list(
        own.exclude(target_type="user").values_list("target_type", flat=True)[:LATEST_ACTS]
    )
    images = (ImageSet, ImageFile, Segmenter, PredictionBatch, PredictedImage)
    names = {str(model._meta.verbose_name) for model in images}
    return 2 * sum(kind in names for kind in kinds) > len(kinds)


def next_steps(user: User) -> Iterator[hooks.NextStep]:
    """Return the next steps: learning from sets that have masks."""
    if not user.is_staff_member:
        return
    waiting = list(sets_with_masks(user).filter(segmenters=None)[:STEPS])
    count_files(waiting)
    for image_set in (one for one in waiting if one.n_masked >= MASKS_TO_LEARN_FROM):
        yield hooks.NextStep(
            title=_("Learn from %(image_set)s") % {"image_set": image_set.name},
            detail=_("%(masked)s images have masks that no model has learned from.")
            % {"masked": image_set.n_masked},
            url=f"{reverse('segmentation:segmenter-new')}?set={image_set.pk}",
            action=_("Learn"),
            icon="layers",
            tone="neutral",
            order=70,
        )


def search(user: User, query: str) -> Iterator[hooks.SearchHit]:
    """Return image sets, models, predictions and images by a part of their name."""
    for image_set in owned_by(ImageSet, user).filter(name__icontains=query)[:HITS]:
        yield hooks.SearchHit(
            image_set.name, _("Image set"), image_set.get_absolute_url(), "images"
        )
    segmenters = owned_by(Segmenter, user).defer(*Segmenter.HEAVY)
    for segmenter in segmenters.filter(name__icontains=query)[:HITS]:
        yield hooks.SearchHit(
            segmenter.name, _("Image model"), segmenter.get_absolute_url(), "layers"
        )
    for batch in owned_by(PredictionBatch, user).filter(name__icontains=query)[:HITS]:
        yield hooks.SearchHit(batch.name, _("Prediction"), batch.get_absolute_url(), "scan-eye")
    files = ImageFile.objects.filter(
        image_set__organisation_id=user.organisation_id or 0,
        image_set__removed_at=None,
        role=ImageFile.Role.IMAGE,
        name__icontains=query,
    ).select_related("image_set")
    for file in files[:HITS]:
        url = f"{file.image_set.get_absolute_url()}?{urlencode({'q': file.name})}"
        yield hooks.SearchHit(
            file.name,
            _("Image in %(image_set)s") % {"image_set": file.image_set.name},
            url,
            "image",
        )
