"""Taking away what somebody removed: at once what is small, by a job what is large.

The request marks a large set or prediction, which is gone then for everybody. A job takes rows and
files away, some hundred at a time: files first, so that whoever goes on after a kill still finds by
the rows what there is to do. Bytes that several rows share go after the last of them.
"""

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import Organisation, User
from webapp.audit.services import audit
from webapp.common.limits import TooManyError
from webapp.files import store
from webapp.files.contents import content_remove
from webapp.files.quota import lock_organisation, refresh_count
from webapp.jobs.models import ACTIVE_STATES
from webapp.jobs.services import job_cancel, job_enqueue
from webapp.segmentation.models import ImageFile, ImageSet, PredictedImage, PredictionBatch

AT_ONCE = 200  # rows of one piece; SQLite takes 32,766 values in one statement
KIND = "removal.images"
Target = ImageSet | PredictionBatch
Report = Callable[[int], None]  # how many rows are gone; raises to stop
_ENDING_SECONDS = 30.0  # that a cancelled prediction may take to end


def is_large(target: Target) -> bool:
    """Whether taking it away would keep somebody waiting."""
    return sum(rows.count() for rows in _rows_of(target)) > settings.REMOVED_AT_ONCE


def removal_start(*, user: User, target: Target) -> None:
    """Have a set with its predictions, or one prediction, gone for everybody; a job does the rest.

    What is being predicted is cancelled. Where as many jobs wait as may, the sweep does the rest
    within a day.
    """
    batches = _batches_of(target)
    n_files, n_predictions = (rows.count() for rows in _rows_of(target))
    noun = "images" if isinstance(target, PredictionBatch) else "predictions"
    numbers = {noun: n_predictions} | ({"files": n_files} if noun == "predictions" else {})
    with transaction.atomic():
        prediction_jobs_cancel(user=user, batches=batches)
        audit(user, "removed", target, **numbers)
        now = timezone.now()
        batches.update(removed_at=now)
        type(target).everything.filter(pk=target.pk).update(removed_at=now)
        parameters = {"model": type(target).__name__, "key": str(target.pk)}
        with contextlib.suppress(TooManyError), transaction.atomic():
            job_enqueue(user=user, kind=KIND, parameters=parameters, title=target.name)


def removals_finish() -> int:
    """Take away what jobs left that were cancelled or failed; return how many objects."""
    count = 0
    for model in (PredictionBatch, ImageSet):
        for target in model.everything.exclude(removed_at=None):
            removed_take_away(target)
            count += 1
    return count


def removed_take_away(target: Target, on_progress: Report = lambda n_rows: None) -> int:
    """Take away the rows and files of what was removed, and itself; return how many rows.

    It may be stopped or killed at any moment, and goes on when it is called again.
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
    """An image's bytes lie under their digest; nothing is its own."""
    return []


def _rows_of(target: Target) -> tuple[QuerySet[ImageFile], QuerySet[PredictedImage]]:
    """Files and predicted images that go with it, those of its removed predictions included."""
    if isinstance(target, PredictionBatch):
        return ImageFile.objects.none(), PredictedImage.objects.filter(batch=target.pk)
    results = PredictedImage.objects.filter(batch__image_set=target.pk)
    return ImageFile.objects.filter(image_set=target.pk), results


def _batches_of(target: Target) -> QuerySet[PredictionBatch]:
    own = {"pk": target.pk} if isinstance(target, PredictionBatch) else {"image_set": target.pk}
    return PredictionBatch.everything.filter(**own)


def _wait_for_predictions(batches: QuerySet[PredictionBatch], on_progress: Report) -> None:
    """Wait for what was cancelled, which may be writing the files of an image."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while time.monotonic() < deadline and batches.filter(job__state__in=ACTIVE_STATES).exists():
        on_progress(0)
        time.sleep(0.2)


def contents_release(*, organisation_id: int, digests: Iterable[str]) -> None:
    """Remove the stored bytes that no file and no prediction of the organisation needs."""
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


def prediction_jobs_cancel(*, user: User, batches: Any) -> None:
    """Cancel what is being predicted of batches that are about to be deleted."""
    for batch in batches.filter(job__state__in=ACTIVE_STATES).select_related("job"):
        job_cancel(user=user, job=batch.job)


def prediction_paths(result: PredictedImage) -> list:
    """Return where the arrays of a predicted image lie."""
    return [
        result.marginals_path,
        result.mask_path,
        result.layers_path,
        result.preview_path,
        result.objects_path,
    ]
