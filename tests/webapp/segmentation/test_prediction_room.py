"""The room that a prediction reserves, what it takes of it, and when it gives it back."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.webapp.factories.images import encoded, make_batch, picture
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation
from webapp.audit.models import AuditLine
from webapp.files import quota
from webapp.files.quota import QuotaError, stored_bytes
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.segmentation import jobs
from webapp.segmentation.models import PredictedImage, PredictionBatch
from webapp.segmentation.services.image_sets import image_set_purge, prediction_paths
from webapp.segmentation.services.predictions import prediction_go_on, prediction_start
from webapp.segmentation.services.segmenters import segmenter_delete
from webapp.segmentation.services.uploads import image_file_add
from webapp.segmentation.services.waiting_images import predicted_bytes


def test_without_room_what_is_left_is_not_predicted(bob, batch, settings) -> None:
    batch.images.filter(name="leaf_2.jpg").update(state=PredictedImage.State.WAITING)
    Job.objects.filter(pk=batch.job_id).update(state=JobState.CANCELLED)
    settings.ORGANISATION_QUOTA_GB = 0
    with pytest.raises(QuotaError, match="your organisation would take"):
        prediction_go_on(user=bob, batch=batch)
    assert not Job.objects.filter(state=JobState.QUEUED).exists()


def test_a_prediction_reserves_what_it_may_write(bob, segmenter, make_set) -> None:
    image_set = make_set(bob, images=2, masks=0)
    for seed, size in ((7, (640, 480)), (8, (1200, 900))):
        content = encoded(picture(seed, size))
        image_file_add(user=bob, image_set=image_set, name=f"large_{seed}.jpg", chunks=[content])
    reserved = prediction_start(user=bob, segmenter=segmenter, image_set=image_set).job.stores_bytes
    batch = make_batch(bob, segmenter, image_set)
    total = 0
    for row in batch.images.select_related("batch"):
        written = sum(path.stat().st_size for path in prediction_paths(row))
        assert written <= predicted_bytes(row.width, row.height), row.name
        total += predicted_bytes(row.width, row.height)
    assert reserved == total


def test_the_folder_is_walked_before_the_run_is_queued(
    bob, segmenter, image_set, monkeypatch
) -> None:
    depths = []
    Organisation.objects.update(stored_at=timezone.now() - timedelta(seconds=31))
    monkeypatch.setattr(
        quota, "_size_of", lambda folder: depths.append(len(connection.savepoint_ids)) or 0
    )
    prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    assert depths == [0]


def test_what_is_predicted_is_counted_once(bob, segmenter, image_set, monkeypatch) -> None:
    """The images written so far used to be stored and reserved at the same time."""
    lost = image_set.files.get(name="leaf_1.jpg")
    lost.store.remove(lost.digest)
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    estimate = batch.job.stores_bytes // 3
    before = stored_bytes(bob.organisation)
    Organisation.objects.update(stored_bytes=before, stored_at=timezone.now())
    counts, real = [], jobs.predict_image

    def predict_and_note(**options) -> None:
        real(**options)
        batch.job.refresh_from_db()
        counts.append((Organisation.objects.get().stored_bytes, batch.job.stores_bytes))

    monkeypatch.setattr(jobs, "predict_image", predict_and_note)
    run_job(batch.job_id, watched=False)
    assert [left for _, left in counts] == [2 * estimate, estimate, 0]
    first, second, last = [count for count, _ in counts]
    assert before < first == second < last == stored_bytes(bob.organisation)


def test_the_page_says_that_there_is_no_room(client_of, bob, segmenter, image_set, settings):
    settings.ORGANISATION_QUOTA_GB = 0
    answer = client_of(bob).post(
        "/predictions/new/", {"image_set": str(image_set.pk), "segmenter": str(segmenter.pk)}
    )
    assert answer.status_code == 422
    assert Page(answer, status=422).has("alert", "your organisation would take")
    assert not PredictionBatch.objects.exists()


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
@pytest.mark.parametrize("deleted", ["the set", "the model"])
def test_deleting_what_a_prediction_needs_cancels_it(
    bob, segmenter, image_set, state, deleted
) -> None:
    """It used to keep the room that it had reserved until a worker came to it."""
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    Job.objects.filter(pk=batch.job_id).update(state=state)
    if deleted == "the set":
        image_set_purge(user=bob, image_set=image_set)
    else:
        segmenter_delete(user=bob, segmenter=segmenter)
    batch.job.refresh_from_db()
    assert batch.job.cancelled_by == bob
    assert batch.job.state == JobState.CANCELLED or batch.job.is_cancelling
    assert AuditLine.objects.filter(verb="cancelled", target_id=str(batch.job_id)).exists()
