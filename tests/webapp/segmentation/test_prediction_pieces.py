"""Predictions beyond one host: pieces that any worker takes, each image once, whoever dies."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from engine import load_segmentation_model
from tests.webapp.factories.images import MakeSet, make_segmenter
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, User
from webapp.audit.models import AuditLine
from webapp.files.contents import StorageFullError
from webapp.jobs import runner
from webapp.jobs.claims import ClaimLostError, job_claim_next
from webapp.jobs.models import Job, JobState
from webapp.jobs.pieces import spread_report
from webapp.jobs.registry import Queue, kinds_of
from webapp.jobs.runner import run_job
from webapp.jobs.selectors import running_label
from webapp.jobs.services import job_cancel, job_enqueue, jobs_sweep
from webapp.segmentation import jobs
from webapp.segmentation.models import ImageSet, PredictedImage, PredictionBatch, Segmenter
from webapp.segmentation.services.image_sets import prediction_paths
from webapp.segmentation.services.predictions import (
    predict_image,
    prediction_delete,
    prediction_go_on,
    prediction_start,
)


@pytest.fixture(autouse=True)
def two_images_a_piece(settings: LazySettings) -> None:
    settings.PIECE_IMAGES = 2


@pytest.fixture
def five_images(bob: User, make_set: MakeSet) -> ImageSet:
    return make_set(bob, images=5)


@pytest.fixture
def spread(bob: User, segmenter: Segmenter, five_images: ImageSet) -> PredictionBatch:
    """A prediction that was dealt out in three pieces, none of which has begun."""
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=five_images)
    run_job(batch.job_id, watched=False)
    batch.job.refresh_from_db()
    return batch


def claim_next() -> Job | None:
    return job_claim_next(kinds=kinds_of(Queue.LONG))


def run_one() -> Job | None:
    """What a worker does with a message: the job whose turn it is."""
    job = claim_next()
    if job is not None:
        runner._run(job, watched=False)
    return job


def run_all() -> int:
    count = 0
    while run_one():
        count += 1
    return count


def done(batch: PredictionBatch) -> int:
    return batch.images.filter(state=PredictedImage.State.DONE).count()


def test_pieces_give_what_one_process_gives(
    bob: User,
    spread: PredictionBatch,
    segmenter: Segmenter,
    five_images: ImageSet,
    settings: LazySettings,
    sent_job_ids: list[str],
    client_of: Callable[[User], Client],
) -> None:
    pieces = spread.job.pieces.order_by("created_at")
    assert spread.job.state == JobState.RUNNING
    assert (spread.job.n_pieces, spread.job.stores_bytes) == (3, 0)
    assert [p.parameters["first"] for p in pieces] == ["leaf_0.jpg", "leaf_2.jpg", "leaf_4.jpg"]
    assert {str(piece.pk) for piece in pieces} <= set(sent_job_ids)
    assert running_label(bob) == "1 running"
    listed = Page(client_of(bob).get("/jobs/"))
    link = listed.one("link", "Predict: Leaves, Leaf model", exactly=True)
    assert link.address == f"/jobs/{spread.job_id}/"
    assert str(pieces[0].pk) not in listed.source
    assert client_of(bob).get(f"/jobs/{pieces[0].pk}/").status_code == 404

    assert run_all() == 3
    spread.job.refresh_from_db()
    assert spread.job.state == JobState.SUCCEEDED, spread.job.error
    assert spread.job.sentence == "5 of 5 images predicted."
    assert not Job.objects.filter(parent__isnull=False).exists()
    assert AuditLine.objects.filter(verb="finished").count() == 1

    settings.PIECE_IMAGES = 100
    alone = prediction_start(user=bob, segmenter=segmenter, image_set=five_images)
    run_job(alone.job_id, watched=False)
    assert Job.objects.get(pk=alone.job_id).n_pieces == 0
    for one, other in zip(spread.images.all(), alone.images.all(), strict=True):
        np.testing.assert_array_equal(np.load(one.marginals_path), np.load(other.marginals_path))
        assert (one.iou, one.error, one.mean_entropy) == (
            other.iou,
            other.error,
            other.mean_entropy,
        )


def test_room_is_reserved_by_the_pieces_and_counted_once(
    bob: User, segmenter: Segmenter, five_images: ImageSet
) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=five_images)
    reserved = batch.job.stores_bytes
    before = Organisation.objects.get(pk=bob.organisation_id).stored_bytes
    run_job(batch.job_id, watched=False)
    pieces = Job.objects.filter(parent=batch.job_id)
    assert sum(pieces.values_list("stores_bytes", flat=True)) == reserved > 0
    run_all()
    rows = batch.images.select_related("batch")
    written = sum(path.stat().st_size for row in rows for path in prediction_paths(row))
    after = Organisation.objects.get(pk=bob.organisation_id).stored_bytes
    assert after - before == written


def test_a_piece_whose_host_dies_is_finished_by_another_and_nothing_is_done_twice(
    spread: PredictionBatch,
) -> None:
    dead = claim_next()
    assert dead is not None
    model = load_segmentation_model(spread.segmenter.path)
    rows = list(spread.images.filter(name__lt="leaf_2").select_related("batch"))
    predict_image(model=model, row=rows[0], job=dead)
    seconds = spread.images.get(pk=rows[0].pk).seconds
    Job.objects.filter(pk=dead.pk).update(worker="elsewhere:1:1", heartbeat_at=None)
    assert jobs_sweep()["requeued"] == 1
    assert run_all() == 3
    with pytest.raises(ClaimLostError):  # it was only thought dead
        predict_image(model=model, row=rows[1], job=dead)
    spread.job.refresh_from_db()
    assert spread.job.state == JobState.SUCCEEDED
    assert done(spread) == 5
    assert spread.images.get(pk=rows[0].pk).seconds == seconds


def test_whoever_dies_between_a_piece_and_the_whole_leaves_that_to_the_sweep(
    spread: PredictionBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "spread_advance", lambda job_id: None)
    assert run_all() == 3
    spread.job.refresh_from_db()
    assert spread.job.state == JobState.RUNNING
    jobs_sweep()
    jobs_sweep()
    spread.job.refresh_from_db()
    assert spread.job.state == JobState.SUCCEEDED


def test_progress_of_the_whole_is_told_by_its_pieces(spread: PredictionBatch) -> None:
    run_one()
    minute_ago = timezone.now() - timedelta(minutes=1)
    Job.objects.filter(pk=spread.job_id).update(
        heartbeat_at=minute_ago, attempt_started_at=minute_ago
    )
    assert claim_next()  # another worker has one, and this one reports
    run_one()
    spread.job.refresh_from_db()
    assert spread.job.sentence == "2 of 5 so far, 2 workers at it"
    assert spread.job.progress == pytest.approx(0.4)
    assert spread.job.seconds_left == pytest.approx(90, rel=0.1)


def test_time_left_is_told_before_any_image_is_done(spread: PredictionBatch) -> None:
    """Large predictions told none until the first piece had brought an image."""
    assert spread.job.seconds_left == pytest.approx(5 * jobs.USUAL_SECONDS)
    minute_ago = timezone.now() - timedelta(minutes=1)
    Job.objects.filter(pk=spread.job_id).update(heartbeat_at=minute_ago)
    spread_report(job_id=spread.job_id)
    spread.job.refresh_from_db()
    assert spread.job.heartbeat_at > minute_ago
    assert spread.job.seconds_left == pytest.approx(5 * jobs.USUAL_SECONDS)


def test_a_cancellation_ends_all_pieces_and_keeps_what_is_done(
    bob: User, spread: PredictionBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.jobs.context.STOP_SECONDS", 0.0)
    run_one()
    real = jobs.predict_image

    def predict_then_cancel(**options: object) -> None:
        real(**options)
        assert job_cancel(user=bob, job=spread.job)

    monkeypatch.setattr(jobs, "predict_image", predict_then_cancel)
    run_one()
    spread.job.refresh_from_db()
    assert spread.job.state == JobState.CANCELLED
    assert spread.job.sentence.endswith(" s. 3 of 5 images are predicted.")
    assert run_one() is None
    monkeypatch.setattr(jobs, "predict_image", real)
    assert prediction_go_on(user=bob, batch=spread) == 2
    assert run_all() == 1  # what is left fits into one piece, which the job itself does
    assert done(spread) == 5


def test_a_cancellation_while_no_piece_runs_is_at_once(bob: User, spread: PredictionBatch) -> None:
    assert job_cancel(user=bob, job=spread.job)
    assert spread.job.state == JobState.CANCELLED
    assert run_one() is None


def test_one_piece_that_fails_ends_the_whole_with_its_reason(
    spread: PredictionBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_one()

    def fill(**options: object) -> None:
        raise StorageFullError

    monkeypatch.setattr(jobs, "predict_image", fill)
    run_one()
    spread.job.refresh_from_db()
    assert spread.job.state == JobState.FAILED
    assert spread.job.error == "The server's disk is full. 2 of 5 images are predicted."
    assert run_one() is None


def test_others_need_not_wait_for_all_pieces(
    bob: User, mallory: User, spread: PredictionBatch, settings: LazySettings, make_set: MakeSet
) -> None:
    """Neither another organisation, nor a colleague with a job of one piece."""
    taken = [claim_next()]
    settings.PIECE_IMAGES = 100
    few, other = make_set(bob, name="Few"), make_set(mallory, name="Other")
    colleagues = prediction_start(user=bob, segmenter=spread.segmenter, image_set=few)
    others = prediction_start(user=mallory, segmenter=make_segmenter(mallory), image_set=other)
    taken += [claim_next() for _ in range(4)]
    order = [job.parent_id or job.pk for job in taken if job]
    assert order == [spread.job_id, others.job_id, colleagues.job_id, spread.job_id, spread.job_id]


def test_limits_of_an_organisation_hold_for_pieces(
    bob: User, spread: PredictionBatch, settings: LazySettings
) -> None:
    settings.ORGANISATION_MAX_RUNNING_JOBS = 2
    assert claim_next()
    assert claim_next()
    assert claim_next() is None
    settings.ORGANISATION_MAX_WAITING_JOBS = 1  # pieces do not count: one job was asked for
    job_enqueue(user=bob, kind="segmentation.predict", parameters={"batch": str(spread.pk)})


def test_a_prediction_deleted_meanwhile_ends_its_pieces(bob: User, spread: PredictionBatch) -> None:
    run_one()
    job_id = spread.job_id
    prediction_delete(user=bob, batch=spread)
    assert Job.objects.get(pk=job_id).state == JobState.CANCELLED
    assert run_one() is None
    assert not Job.objects.filter(parent=job_id).exists()
