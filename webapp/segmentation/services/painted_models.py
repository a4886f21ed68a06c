"""Models learned from strokes, and the predictions that follow them."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from engine import (
    InvalidProblemError,
    NetworkOptions,
    Progress,
    network_available,
    train_class_segmentation,
)
from engine.datasets import read_image
from engine.learning.segmentation.clock import expected_seconds
from webapp.accounts.models import User
from webapp.common.errors import Refusal
from webapp.files.quota import with_fresh_count
from webapp.jobs.context import JobContext
from webapp.jobs.services import job_enqueue
from webapp.segmentation.detail import MOST_TRIED, painted_detail
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet, Segmenter, Stroke
from webapp.segmentation.services.known_labels import painted_labels
from webapp.segmentation.services.painting import classes_of
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.probability_maps import maps_beside, read_planes
from webapp.segmentation.services.segmenters import NETWORK_BYTES, learning_kind

LEARNED_PIXELS = 512**2  # from a larger image, a window of this size is learned
MODEL_BYTES = 12_000_000  # upper bound of trees of two stages for some classes


@with_fresh_count
def painting_learn(
    *,
    user: User,
    image_set: ImageSet,
    predict: bool,
    max_seconds: int = 300,
    network: bool = False,
) -> Segmenter:
    """Queue learning a model from all strokes of a set, and then its prediction, if requested.

    If every image has a probability map of another program, the maps are features, too. With
    ``network`` a network is learned beside the trees.

    Raises
    ------
    SegmentationError, QuotaError
        If fewer than two classes are painted, no network can be learned here, or there is no space.
    """
    missing = network_available() if network else None
    if missing is not None:
        raise SegmentationError(missing)
    classes = classes_of(image_set)
    strokes = Stroke.objects.filter(file__image_set=image_set, undone=False)
    painted = set(strokes.filter(value__gt=0).values_list("value", flat=True))
    used = [one for one in classes if one["value"] in painted]
    if len(used) < 2:
        raise SegmentationError(_("Paint at least two classes first."))
    count = image_set.segmenters.count()
    name = f"{image_set.name}, painted" + (f" {count + 1}" if count else "")
    files = image_set.files.filter(pk__in=strokes.values("file")).order_by("name", "pk")
    with transaction.atomic():
        segmenter = Segmenter.objects.create(
            organisation=user.own_organisation,
            created_by=user,
            name=name[:120],
            foreground=used[0]["name"].lower()[:40],
            solver=Segmenter.Solver.PAINTED,
            classes=used,
            holdout_percent=0,
            max_seconds=max_seconds,
            learned_digests=list(files.values_list("digest", flat=True)),
        )
        segmenter.image_sets.set([image_set])
        parameters = {
            "segmenter": str(segmenter.pk),
            "learned": [str(pk) for pk in files.values_list("pk", flat=True)],
            "held_out": [],
            "relative_gap": segmenter.relative_gap,
            "predict": predict,
            "planes": maps_beside(image_set).n_planes,
            "network": network,
        }
        segmenter.job = job_enqueue(
            user=user,
            kind=learning_kind(network=network),
            parameters=parameters,
            title=segmenter.name,
            stores=MODEL_BYTES + (NETWORK_BYTES if network else 0),
        )
        segmenter.save(update_fields=["job"])
    return segmenter


def train_painted(context: JobContext, segmenter: Segmenter) -> tuple[Any, list[ImageFile]]:
    """Train on the strokes on a job's files; return the trained model and the files used.

    If time was short, only the first files are used.
    """
    files = list(
        ImageFile.objects.filter(pk__in=context.parameters["learned"])
        .select_related("image_set")
        .order_by("name", "pk")
    )
    used = [file for file in files if file.strokes.filter(undone=False, value__gt=0).exists()]
    if not used:
        raise InvalidProblemError(_("The strokes were taken back meanwhile."))
    some = used[:: max(1, -(-len(used) // MOST_TRIED))]
    labels = (painted_labels(file, segmenter.classes) for file in some)
    maps = _maps(context, some)
    detail = painted_detail(context, segmenter, some, _images(context, some), labels, maps)
    trained = train_class_segmentation(
        _images(context, used),
        (painted_labels(file, segmenter.classes) for file in used),
        [one["name"] for one in segmenter.classes],
        maps=_maps(context, used),
        detail=detail,
        network=NetworkOptions() if context.parameters.get("network") else None,
        position=False,
        max_seconds=max(segmenter.max_seconds - context.seconds, 0.0),
        on_progress=context.on_progress,
        should_stop=context.should_stop,
        checkpoint=context.checkpoint,
        rng=context.rng,
    )
    return trained, used[: trained.n_read]


def _maps(context: JobContext, files: list[ImageFile]) -> Iterator[NDArray[np.float32]] | None:
    """Return the probabilities beside images, if the job uses them."""
    return map(read_planes, files) if context.parameters.get("planes") else None


def _images(context: JobContext, files: list[ImageFile]) -> Iterator[NDArray[np.uint8]]:
    pixels = sum(min(file.width * file.height, LEARNED_PIXELS) for file in files)
    for number, file in enumerate(files):
        context.raise_if_stopped()
        sentence = _("Reading image %(number)s of %(total)s") % {
            "number": number + 1,
            "total": len(files),
        }
        left = expected_seconds(pixels)
        context.on_progress(Progress(sentence, seconds=context.seconds, seconds_left=left))
        yield read_image(file.store.fetch(file.digest), name=file.name, view=file.view)


def predict_painted(segmenter_pk: UUID) -> str:
    """Predict the set that a model was painted on; return the reason if that is impossible."""
    segmenter = Segmenter.objects.select_related("created_by").get(pk=segmenter_pk)
    image_set = segmenter.image_sets.first()
    if image_set is None or segmenter.created_by is None:
        return ""
    try:
        prediction_start(user=segmenter.created_by, segmenter=segmenter, image_set=image_set)
    except Refusal as error:
        return _("The set was not predicted: %(reason)s") % {"reason": error}
    return _("Its images are being predicted.")
