"""Services that start learning a model, rename it and delete it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _

from engine import network_available
from engine.datasets import EDGE_CLASSES
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.files import store
from webapp.files.quota import with_fresh_count
from webapp.jobs.models import Job
from webapp.jobs.services import job_cancel, job_enqueue
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import (
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)
from webapp.segmentation.object_options import BACKGROUND_NAMES, EDGE_NAMES
from webapp.segmentation.selectors.image_sets import masked_images
from webapp.segmentation.services.painting import COLOURS
from webapp.segmentation.services.probability_maps import maps_beside
from webapp.segmentation.services.removals import (
    contents_release,
    is_large,
    prediction_jobs_cancel,
    prediction_paths,
    removal_start,
    removed_reason,
)

FEWEST_FOR_HOLDING_OUT = 4
FEWEST_SIDE = 16  # pixels of a model; 0 means the size that pays off
MODEL_BYTES = 6_000_000  # upper bound of trees, weights and two small maps of held-out images
NETWORK_BYTES = 64_000_000  # upper bound of what the networks of four folds add


def learning_kind(*, network: bool) -> str:
    """Return the kind of job that learns a model: with a network, workers with a card take it."""
    return "segmentation.learn_network" if network else "segmentation.learn"


@dataclass(frozen=True, slots=True)
class LearningChoices:
    """Settings that a person chose on the page; the defaults suit most sets.

    ``restraint`` multiplies the usual lambda, which is 0.001 per training pixel.
    """

    restraint: float = 1.0
    solver: str = Segmenter.Solver.AUTO
    max_side: int = 200
    max_seconds: int = 300
    relative_gap: float = 1e-3
    holdout_percent: int = 20


@with_fresh_count
def segmenter_learn(
    *,
    user: User,
    name: str,
    image_sets: Sequence[ImageSet],
    choices: LearningChoices,
    edges: bool = False,
    seed: int | None = None,
) -> Segmenter:
    """Queue learning a model from the masked images of some sets.

    With ``edges``, it learns the edges of objects too, as a class of its own; in a mask that does
    not number its objects, pixels that touch are one object. Nothing is then held out: every image
    is checked by trees that did not learn from it.

    If every image of the sets has a probability map of another program, all with equally many
    planes, the maps are features, too.

    Raises
    ------
    SegmentationError, QuotaError
        If no image of the sets has a mask, no network can be learned here, or there is no space.
    """
    is_network = choices.solver == Segmenter.Solver.NETWORK
    missing = network_available() if is_network else None
    if missing is not None:
        raise SegmentationError(missing)
    if choices.max_side != 0 and choices.max_side < FEWEST_SIDE:
        raise SegmentationError(
            _("Models have at least %(fewest_side)s pixels a side.") % {"fewest_side": FEWEST_SIDE}
        )
    masked = list(masked_images(list(image_sets)))
    images = unique_contents(masked)
    if not images:
        raise SegmentationError(
            _(
                "None of these images has a mask. Upload masks named like NAME.mask.png, or "
                "correct predicted ones."
            )
        )
    if edges:
        choices = replace(choices, holdout_percent=0)
    with transaction.atomic():
        segmenter = Segmenter.objects.create(
            organisation=user.own_organisation,
            created_by=user,
            name=name.strip()[:120] or image_sets[0].name,
            foreground=image_sets[0].foreground,
            classes=edge_classes(image_sets[0].foreground) if edges else [],
            **asdict(choices),
        )
        segmenter.image_sets.set(image_sets)
        segmenter.job = job_enqueue(
            user=user,
            kind=learning_kind(network=is_network),
            parameters={
                "segmenter": str(segmenter.pk),
                "relative_gap": choices.relative_gap,  # the target shown in the plot
                "planes": maps_beside(*image_sets).n_planes,
            },
            title=segmenter.name,
            seed=seed,
            stores=MODEL_BYTES + (NETWORK_BYTES if is_network else 0),
        )
        learned, held_out = split_images(
            images, percent=choices.holdout_percent, seed=segmenter.job.seed
        )
        segmenter.learned_digests = [file.digest for file in learned]
        segmenter.held_out_digests = [file.digest for file in held_out]
        segmenter.save(update_fields=["job", "learned_digests", "held_out_digests"])
        n_copies = len(masked) - len(unique_contents(masked))
        _tell_job(segmenter.job, learned, held_out, copies=n_copies)
    return segmenter


def edge_classes(foreground: str) -> list[dict[str, Any]]:
    """Return the classes of a model that learns edges, by the name of the object."""
    background, kind, edge = EDGE_CLASSES
    given = foreground.strip()
    is_taken = not given or given.lower() in BACKGROUND_NAMES | EDGE_NAMES
    names = (background, kind if is_taken else given[0].upper() + given[1:], edge)
    return [
        {"value": place + 1, "name": one, "colour": COLOURS[place]}
        for place, one in enumerate(names)
    ]


def _tell_job(
    job: Job, learned: list[ImageFile], held_out: list[ImageFile], *, copies: int
) -> None:
    """Store the files of a job in its parameters; they depend on the job's own seed."""
    job.parameters |= {
        "learned": [str(file.pk) for file in learned],
        "held_out": [str(file.pk) for file in held_out],
        "copies": copies,
    }
    job.save(update_fields=["parameters"])


def unique_contents(images: Sequence[ImageFile]) -> list[ImageFile]:
    """Return images without copies, since no image may be both trained on and held out."""
    seen: dict[str, ImageFile] = {}
    for file in images:
        seen.setdefault(file.digest, file)
    return list(seen.values())


def split_images(
    images: Sequence[ImageFile], *, percent: int, seed: int
) -> tuple[list[ImageFile], list[ImageFile]]:
    """Split images at random into a training part and a held-out part.

    With fewer than four images nothing is held out, since there is too little to train on.
    """
    if percent <= 0 or len(images) < FEWEST_FOR_HOLDING_OUT:
        return list(images), []
    count = min(max(1, round(len(images) * percent / 100)), len(images) // 2)
    chosen = set(np.random.default_rng(seed).choice(len(images), count, replace=False).tolist())
    learned = [file for k, file in enumerate(images) if k not in chosen]
    return learned, [file for k, file in enumerate(images) if k in chosen]


def segmenter_delete(*, user: User, segmenter: Segmenter) -> None:
    """Delete a model with its predictions; running jobs are cancelled. Images stay.

    Large predictions disappear at once too, and a job deletes their rows and files.
    """
    n_predictions = segmenter.batches.count()
    for batch in segmenter.batches.all():
        if is_large(batch):
            removal_start(user=user, target=batch)
    PredictionBatch.everything.filter(segmenter=segmenter).exclude(removed_at=None).update(
        segmenter=None
    )
    rows = list(PredictedImage.objects.filter(batch__segmenter=segmenter).select_related("batch"))
    paths = [path for row in rows for path in prediction_paths(row)]
    paths += [segmenter.path, segmenter.preview_path(0), segmenter.preview_path(1)]
    digests = {row.image_digest for row in rows} | {row.mask_digest for row in rows}
    with transaction.atomic():
        if segmenter.job is not None and segmenter.job.is_active:
            job_cancel(user=user, job=segmenter.job, reason=removed_reason(segmenter))
        prediction_jobs_cancel(
            user=user, batches=segmenter.batches, reason=removed_reason(segmenter)
        )
        audit(user, "removed", segmenter, predictions=n_predictions)
        organisation_id = segmenter.organisation_id
        segmenter.delete()
    for path in paths:
        store.remove(path)
    contents_release(organisation_id=organisation_id, digests=digests - {""})
