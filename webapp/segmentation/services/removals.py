"""Deletion of removed sets and predictions: small ones at once, large ones by a job.

The request marks a large set or prediction, which nobody sees from then on. A job deletes files and
rows, some hundred at a time: files first, so that after a kill the rows still show what is left to
do. Bytes that several rows share are deleted with the last of them.
"""

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import Organisation, User
from webapp.audit.services import audit
from webapp.common.limits import TooManyError
from webapp.files import store
from webapp.files.contents import content_remove
from webapp.files.quota import lock_organisation, refresh_count
from webapp.jobs.models import ACTIVE_STATES
from webapp.jobs.services import job_cancel, job_enqueue
from webapp.segmentation.models import (
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)

AT_ONCE = 200  # rows per step; SQLite takes 32,766 values in one statement
KIND = "removal.images"
Target = ImageSet | PredictionBatch
Report = Callable[[int], None]  # gets the number of deleted rows; raises to stop
_ENDING_SECONDS = 30.0  # for a cancelled prediction to end


def is_large(target: Target) -> bool:
    """Return True if deleting the target takes too long for a request."""
    return sum(rows.count() for rows in _rows_of(target)) > settings.REMOVED_AT_ONCE


def removal_start(*, user: User, target: Target) -> None:
    """Hide a set with its predictions, or one prediction, from everybody; a job deletes it.

    Running predictions are cancelled. If the queue is full, the sweep finishes within a day.
    """
    batches = _batches_of(target)
    n_files, n_predictions = (rows.count() for rows in _rows_of(target))
    noun = "images" if isinstance(target, PredictionBatch) else "predictions"
    numbers = {noun: n_predictions} | ({"files": n_files} if noun == "predictions" else {})
    with transaction.atomic():
        prediction_jobs_cancel(user=user, batches=batches, reason=removed_reason(target))
        if isinstance(target, ImageSet):
            learning_jobs_cancel(user=user, image_set=target)
        audit(user, "removed", target, organisation=None, **numbers)
        now = timezone.now()
        batches.update(removed_at=now)
        type(target).everything.filter(pk=target.pk).update(removed_at=now)
        parameters = {"model": type(target).__name__, "key": str(target.pk)}
        with contextlib.suppress(TooManyError), transaction.atomic():
            job_enqueue(user=user, kind=KIND, parameters=parameters, title=target.name)


def removals_finish() -> int:
    """Delete the remains of cancelled or failed removal jobs; return the number of objects."""
    count = 0
    for model in (PredictionBatch, ImageSet):
        for target in model.everything.exclude(removed_at=None):
            removed_take_away(target)
            count += 1
    return count


def removed_take_away(target: Target, on_progress: Report = lambda n_rows: None) -> int:
    """Delete the rows and files of a removed target, and itself; return the number of rows.

    It may be stopped or killed at any time, and continues when it is called again.
    """
    _wait_for_predictions(_batches_of(target), on_progress)
    files, results = _rows_of(target)
    gone = 0
    for rows, paths_of in ((results.select_related("batch"), prediction_paths), (files, _no_paths)):
        while piece := list(rows.order_by("pk")[:AT_ONCE]):
            _take_away(target.organisation_id, piece, paths_of)
            gone += len(piece)
            on_progress(gone)
    target.delete()
    Organisation.objects.filter(pk=target.organisation_id).update(stored_at=None)
    refresh_count(target.organisation_id)
    return gone


def _take_away(organisation_id: int, piece: list[Any], paths_of: Callable[[Any], list]) -> None:
    for row in piece:
        for path in paths_of(row):
            store.remove(path)
    type(piece[0])._default_manager.filter(pk__in=[row.pk for row in piece]).delete()
    digests = {
        getattr(row, name, "")
        for row in piece
        for name in ("digest", "image_digest", "mask_digest")
    }
    contents_release(organisation_id=organisation_id, digests=digests - {""})


def _no_paths(file: ImageFile) -> list:
    """Return no paths: an image's bytes lie under their digest and may be shared."""
    return []


def _rows_of(target: Target) -> tuple[QuerySet[ImageFile], QuerySet[PredictedImage]]:
    """Return the target's files and predicted images, with those of its removed predictions."""
    if isinstance(target, PredictionBatch):
        return ImageFile.objects.none(), PredictedImage.objects.filter(batch=target.pk)
    results = PredictedImage.objects.filter(batch__image_set=target.pk)
    return ImageFile.objects.filter(image_set=target.pk), results


def _batches_of(target: Target) -> QuerySet[PredictionBatch]:
    own = {"pk": target.pk} if isinstance(target, PredictionBatch) else {"image_set": target.pk}
    return PredictionBatch.everything.filter(**own)


def _wait_for_predictions(batches: QuerySet[PredictionBatch], on_progress: Report) -> None:
    """Wait for cancelled predictions, which may be writing the files of an image."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while time.monotonic() < deadline and batches.filter(job__state__in=ACTIVE_STATES).exists():
        on_progress(0)
        time.sleep(0.2)


def contents_release(*, organisation_id: int, digests: Iterable[str]) -> None:
    """Delete the stored bytes that no file and no prediction of the organisation needs."""
    for digest in set(digests):
        with transaction.atomic():
            lock_organisation(organisation_id)
            if not _is_needed(organisation_id, digest):
                content_remove(organisation_id=organisation_id, digest=digest)


def _is_needed(organisation_id: int, digest: str) -> bool:
    files = ImageFile.objects.filter(image_set__organisation_id=organisation_id, digest=digest)
    results = PredictedImage.objects.filter(batch__organisation_id=organisation_id)
    return (
        files.exists()
        or results.filter(image_digest=digest).exists()
        or results.filter(mask_digest=digest).exists()
    )


def prediction_jobs_cancel(*, user: User, batches: Any, reason: str) -> None:
    """Cancel the running predictions of batches that are about to be deleted."""
    for batch in batches.filter(job__state__in=ACTIVE_STATES).select_related("job"):
        job_cancel(user=user, job=batch.job, reason=reason)


def learning_jobs_cancel(*, user: User, image_set: ImageSet) -> None:
    """Cancel learning from a set that is about to be deleted, and from no other."""
    learning = Segmenter.objects.filter(image_sets=image_set, job__state__in=ACTIVE_STATES)
    for segmenter in learning.select_related("job"):
        if segmenter.job is not None and segmenter.image_sets.count() == 1:
            job_cancel(user=user, job=segmenter.job, reason=removed_reason(image_set))


def removed_reason(target: Target | Segmenter) -> str:
    """Return the reason for cancelling a job whose image set, predictions or model is removed."""
    if isinstance(target, PredictionBatch):
        return _("The predictions were removed.")
    if isinstance(target, ImageSet):
        return _("The image set “%(name)s” was removed.") % {"name": target.name}
    return _("The model “%(name)s” was removed.") % {"name": target.name}


def prediction_paths(result: PredictedImage) -> list:
    """Return the paths of a predicted image's arrays."""
    return [
        result.marginals_path,
        result.mask_path,
        result.layers_path,
        result.preview_path,
        result.objects_path,
    ]
