"""Predicting a batch: the job, its numbers, what is left when it ends early."""

import errno

import numpy as np
import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import connection
from django.utils import timezone

from engine import InvalidProblemError
from tests.webapp.factories.images import make_batch
from tests.webapp.roles import Page
from webapp.files.contents import StorageFullError
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.jobs.services import jobs_sweep
from webapp.segmentation import jobs
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.jobs import predicted_sentence
from webapp.segmentation.models import PredictedImage
from webapp.segmentation.selectors.predictions import batch_numbers
from webapp.segmentation.services import predictions
from webapp.segmentation.services.predictions import (
    prediction_delete,
    prediction_start,
)


def test_the_job_predicts_every_image(bob, segmenter, image_set) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    run_job(batch.job_id, watched=False)
    batch.job.refresh_from_db()
    assert batch.job.state == JobState.SUCCEEDED, batch.job.error
    assert batch.job.sentence == "3 of 3 images predicted."
    for row in batch.images.select_related("batch"):
        marginals = np.load(row.marginals_path, allow_pickle=False)
        assert (marginals.shape, marginals.dtype) == ((24, 36), np.float32)
        assert marginals.min() >= 0
        assert marginals.max() <= 1
        assert row.layers_path.exists()


def test_what_was_learned_is_looked_up_before_the_transaction_and_once(
    bob, segmenter, image_set, image
) -> None:
    """With 10,000 images and 8,000 learned ones, nobody else could write for four seconds."""
    depths: list[int] = []

    class Digests(list):
        def __iter__(self):
            depths.append(len(connection.savepoint_ids))
            return super().__iter__()

    segmenter.learned_digests = Digests([image.digest])
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    assert depths == [0]
    assert [row.name for row in batch.images.filter(learned_from=True)] == ["leaf_0.jpg"]


def test_known_masks_give_numbers_and_others_none(batch) -> None:
    with_mask = batch.images.get(name="leaf_0.jpg")
    without = batch.images.get(name="leaf_2.jpg")
    assert 0 <= with_mask.iou <= 1
    assert with_mask.error == pytest.approx(with_mask.extra_share + with_mask.missed_share)
    assert with_mask.error == pytest.approx(with_mask.error_mpm)
    assert with_mask.accuracy == pytest.approx(1 - with_mask.error)
    assert sum(with_mask.reliability["pixels"]) == 24 * 36
    assert without.iou is None
    assert 0 <= without.mean_entropy <= 1


def test_the_best_labelling_is_read_out_by_choice(bob, segmenter, image_set) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set, readout="map")
    run_job(batch.job_id, watched=False)
    row = batch.images.exclude(error=None).first()
    assert row.error == pytest.approx(row.error_map)
    assert row.error == pytest.approx(row.extra_share + row.missed_share)


def test_a_bad_file_never_stops_the_batch(bob, segmenter, image_set, image) -> None:
    """The file is damaged on disk after it was taken."""
    image.store.path(image.digest).write_bytes(b"rotten")
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    run_job(batch.job_id, watched=False)
    batch.job.refresh_from_db()
    assert batch.job.sentence.startswith("2 of 3 images predicted. leaf_0.jpg")
    refused = batch.images.get(name="leaf_0.jpg")
    assert refused.state == PredictedImage.State.REFUSED
    assert "not a picture" in refused.sentence


def test_a_damaged_mask_costs_the_numbers_not_the_prediction(bob, segmenter, image_set) -> None:
    mask = image_set.files.get(name="leaf_0.mask.png")
    mask.store.path(mask.digest).write_bytes(b"rotten")
    row = make_batch(bob, segmenter, image_set).images.get(name="leaf_0.jpg")
    assert row.state == PredictedImage.State.DONE
    assert row.iou is None
    assert "mask of leaf_0.jpg" in row.sentence


def test_a_second_attempt_goes_on_where_the_first_was_killed(bob, segmenter, image_set) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    done = batch.images.first()
    done.state, done.seconds = PredictedImage.State.DONE, 123.0
    done.save()
    run_job(batch.job_id, watched=False)
    done.refresh_from_db()
    assert done.seconds == 123.0
    assert batch.images.filter(state=PredictedImage.State.DONE).count() == 3


def test_a_cancelled_job_keeps_what_is_done(bob, segmenter, image_set, monkeypatch) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    real = jobs.predict_image

    def predict_then_cancel(**options) -> None:
        real(**options)
        Job.objects.filter(pk=batch.job_id).update(cancel_requested_at=timezone.now())

    monkeypatch.setattr("webapp.jobs.context.STOP_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "predict_image", predict_then_cancel)
    run_job(batch.job_id, watched=False)
    batch.job.refresh_from_db()
    assert batch.job.state == JobState.CANCELLED
    assert batch.job.sentence.startswith("Cancelled after")
    assert batch.job.sentence.endswith(" s. 1 of 3 images is predicted.")
    assert batch.images.filter(state=PredictedImage.State.DONE).count() == 1


@pytest.mark.parametrize(
    "error",
    [
        InvalidProblemError("A weight of the model is missing."),
        StorageFullError(),
        MemoryError(),
        SoftTimeLimitExceeded(),
        RuntimeError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_job_that_fails_half_way_says_what_is_predicted(
    client_of, bob, segmenter, image_set, monkeypatch, error
) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    real = jobs.predict_image

    def predict_two(**options) -> None:
        if PredictedImage.objects.filter(state=PredictedImage.State.DONE).count() == 2:
            raise error
        real(**options)

    monkeypatch.setattr(jobs, "predict_image", predict_two)
    run_job(batch.job_id, watched=False)
    batch.job.refresh_from_db()
    assert batch.job.state == JobState.FAILED
    assert " 2 of 3 images are predicted." in batch.job.error
    assert "Nothing was changed" not in batch.job.error
    page = Page(client_of(bob).get(batch.get_absolute_url()))
    assert page.text.count("2 of 3 images are predicted.") == 1
    assert page.one("row", "leaf_2.jpg").says("Not predicted")
    assert "Waiting" not in page.source


def test_a_job_given_up_says_what_is_predicted(bob, batch) -> None:
    """Its process was killed as often as a job may be."""
    batch.images.filter(name="leaf_2.jpg").update(state=PredictedImage.State.WAITING)
    Job.objects.filter(pk=batch.job_id).update(
        state=JobState.RUNNING,
        worker="elsewhere:1:1",
        heartbeat_at=None,
        deaths=settings.JOB_MAX_DEATHS,
    )
    assert jobs_sweep()["given_up"] == 1
    batch.job.refresh_from_db()
    assert "it was given up. 2 of 3 images are predicted. It may" in batch.job.error


def test_what_a_cancelled_job_left_is_predicted_by_another(client_of, alice, bob, batch) -> None:
    url = batch.get_absolute_url()
    refused = Page(client_of(bob).post(f"{url}go-on/", follow=True))
    assert refused.one("alert").says("Every image of this prediction is settled.")

    batch.images.filter(name="leaf_2.jpg").update(state=PredictedImage.State.WAITING, seconds=0)
    Job.objects.filter(pk=batch.job_id).update(state=JobState.CANCELLED)
    assert "Predict the other 1" not in Page(client_of(alice).get(url)).source
    assert Page(client_of(bob).get(url)).has("button", "Predict the other 1")
    before = dict(batch.images.values_list("name", "seconds"))
    client_of(bob).post(f"{url}go-on/")
    batch.refresh_from_db()
    assert batch.job.state == JobState.QUEUED
    page = Page(client_of(bob).post(f"{url}go-on/", follow=True))
    assert page.one("alert").says("being predicted")
    run_job(batch.job_id, watched=False)
    batch.job.refresh_from_db()
    assert batch.job.sentence == "3 of 3 images predicted."
    after = dict(batch.images.values_list("name", "seconds"))
    assert [name for name in after if after[name] != before[name]] == ["leaf_2.jpg"]


def test_what_cannot_be_measured_has_no_columns(client_of, alice, bob, segmenter, make_set) -> None:
    for masks, said in ((2, False), (0, True)):
        batch = make_batch(bob, segmenter, make_set(bob, masks=masks, name=f"{masks} masks"))
        page = Page(client_of(alice).get(batch.get_absolute_url()))
        assert page.says("No image here has a known mask") == said
        assert page.has("columnheader", "Log loss (nats)", exactly=True) != said
        assert page.has("columnheader", "Entropy (bits)", exactly=True)


def test_a_batch_deleted_while_it_is_predicted_leaves_no_file(
    bob, segmenter, image_set, media_root, monkeypatch
) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    real = predictions.evaluate_mask

    def delete_then_evaluate(*arguments, **options):
        prediction_delete(user=bob, batch=batch)
        return real(*arguments, **options)

    monkeypatch.setattr(predictions, "evaluate_mask", delete_then_evaluate)
    job = batch.job
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert job.sentence.endswith("Nothing was changed.")
    assert not list(media_root.rglob("*.npy"))


def test_a_full_disk_fails_the_job_and_leaves_no_half_file(
    bob, segmenter, image_set, media_root, monkeypatch
) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("engine.core.whole_file.os.fsync", full)
    run_job(batch.job_id, watched=False)
    batch.job.refresh_from_db()
    assert batch.job.state == JobState.FAILED
    assert "disk is full" in batch.job.error
    assert not list(media_root.rglob("*.part"))
    assert not list(media_root.rglob("*.npy"))


def test_images_learned_from_are_marked_and_left_out_of_the_means(
    bob, segmenter, image_set, image
) -> None:
    segmenter.learned_digests = [image.digest]
    segmenter.save()
    batch = make_batch(bob, segmenter, image_set)
    assert batch.images.get(name="leaf_0.jpg").learned_from
    numbers = batch_numbers(batch)
    assert (numbers.n_images, numbers.includes_learned) == (1, False)
    assert numbers.iou.mean == pytest.approx(batch.images.get(name="leaf_1.jpg").iou)


def test_when_all_were_learned_from_the_page_says_so(client_of, bob, segmenter, image_set) -> None:
    segmenter.learned_digests = list(image_set.files.values_list("digest", flat=True))
    segmenter.save()
    batch = make_batch(bob, segmenter, image_set)
    page = Page(client_of(bob).get(batch.get_absolute_url()))
    assert page.says("no figure of how right it is")
    assert not page.has("region", "Numbers")


def test_an_empty_set_cannot_be_predicted(bob, segmenter, make_set) -> None:
    with pytest.raises(SegmentationError, match="no images yet"):
        prediction_start(user=bob, segmenter=segmenter, image_set=make_set(bob, images=0))


def test_a_model_that_is_not_learned_cannot_predict(bob, segmenter, image_set) -> None:
    segmenter.outcome = {}
    with pytest.raises(SegmentationError, match="not learned yet"):
        prediction_start(user=bob, segmenter=segmenter, image_set=image_set)


def test_deleting_leaves_images_and_no_arrays(bob, batch, image_set, media_root) -> None:
    prediction_delete(user=bob, batch=batch)
    left = {p.parent.name for p in media_root.rglob("*") if p.is_file()}
    assert left.isdisjoint({"marginals", "masks", "layers", "previews"})
    assert all(file.store.path(file.digest).exists() for file in image_set.files.all())


def test_one_image_is_no_images(batch) -> None:
    batch.images.exclude(name="leaf_0.jpg").delete()
    assert predicted_sentence(batch.images.all()) == "1 of 1 image predicted."
    batch.images.update(state=PredictedImage.State.REFUSED, sentence="It is damaged.")
    assert predicted_sentence(batch.images.all()) == "0 of 1 image predicted. It is damaged."
