"""Queries on models, and on their state while they learn."""

from collections.abc import Mapping
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.common import formats
from webapp.common.listing import ArrayLength, Listing, light, list_page
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.jobs.models import JobState
from webapp.segmentation.models import HeldOutPoint, Segmenter


def segmenters_of(user: User) -> QuerySet[Segmenter]:
    """Return the models of the user's organisation, newest first."""
    return owned_by(Segmenter, user).select_related("job").prefetch_related("image_sets")


def segmenter_listing(user: User, parameters: Mapping[str, str]) -> Listing[Segmenter]:
    """Return a page of the models, newest first.

    Each has ``n_learned`` and ``n_held_out`` images, and ``last_error`` on the latter.
    """
    points = HeldOutPoint.objects.filter(segmenter=OuterRef("pk")).order_by("-iteration")
    segmenters = light(owned_by(Segmenter, user), "job").prefetch_related("image_sets")
    values = {
        "n_learned": ArrayLength("learned_digests"),
        "n_held_out": ArrayLength("held_out_digests"),
        "last_error": Subquery(points.values("error")[:1]),
    }
    counted = segmenters.annotate(**values)
    listing = list_page(counted, parameters)
    for segmenter in listing.rows:
        checked = segmenter.outcome.get("checked", {}).get("error", {})
        segmenter.last_error = checked.get("mean", segmenter.last_error)
    return listing


def segmenter_of(user: User, pk: Any) -> Segmenter:
    """Return one model of the user's organisation, or raise Http404."""
    return get_owned_or_404(segmenters_of(user), user, pk)


def ready_segmenters(user: User) -> QuerySet[Segmenter]:
    """Return the models that can predict."""
    return light(owned_by(Segmenter, user)).exclude(outcome={})


def segmenter_badge(segmenter: Segmenter) -> dict[str, str]:
    """Return text, tone and icon for a model's state."""
    outcome, job = segmenter.outcome, segmenter.job
    if outcome:
        return _outcome_badge(outcome)
    state = job.state if job else JobState.FAILED
    badges: dict[str, dict[str, str]] = {
        JobState.QUEUED: {"text": _("Waiting"), "tone": "", "icon": "clock"},
        JobState.RUNNING: {"text": _("Learning"), "tone": "accent", "icon": "loader-circle"},
        JobState.FAILED: {"text": _("Failed"), "tone": "danger", "icon": "circle-x"},
        JobState.CANCELLED: {"text": _("Cancelled"), "tone": "", "icon": "ban"},
    }
    return badges.get(state, {"text": _("Done"), "tone": "accent", "icon": "circle-check"})


def _outcome_badge(outcome: dict[str, Any]) -> dict[str, str]:
    gap = outcome.get("relative_gap")
    if outcome.get("converged") and gap is not None:
        words = _("Certified: within %(gap)s of the best fit") % {"gap": formats.gap(gap)}
        return {"text": words, "tone": "accent", "icon": "circle-check"}
    if outcome.get("converged"):
        return {"text": _("Learned"), "tone": "accent", "icon": "circle-check"}
    if gap is not None and gap < 1:
        return {
            "text": _("Stopped early at %(gap)s") % {"gap": formats.gap(gap)},
            "tone": "warning",
            "icon": "timer",
        }
    return {"text": _("Stopped early"), "tone": "warning", "icon": "timer"}
