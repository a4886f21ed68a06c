"""Large sets: the request makes the first rows of a prediction, its job makes the others."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.images import MakeSet
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.jobs.context import JobContext
from webapp.jobs.models import JobState
from webapp.jobs.runner import run_job
from webapp.jobs.services import job_cancel
from webapp.segmentation.models import ImageSet, PredictedImage, PredictionBatch, Segmenter
from webapp.segmentation.services import waiting_images
from webapp.segmentation.services.predictions import prediction_go_on, prediction_start
from webapp.segmentation.services.waiting_images import bytes_to_come, predicted_bytes, rows_make

ClientOf = Callable[[User], Client]


@pytest.fixture(autouse=True)
def two_rows_at_a_time(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    monkeypatch.setattr(waiting_images, "DEAL_IMAGES", 2)
    settings.PIECE_IMAGES = 3


@pytest.fixture
def large_set(bob: User, make_set: MakeSet) -> ImageSet:
    return make_set(bob, images=7)


@pytest.fixture
def batch(bob: User, segmenter: Segmenter, large_set: ImageSet) -> PredictionBatch:
    return prediction_start(user=bob, segmenter=segmenter, image_set=large_set)


def names(batch: PredictionBatch) -> list[str]:
    return list(batch.images.values_list("name", flat=True))


def test_the_request_makes_the_first_rows_and_reserves_room_for_all(batch: PredictionBatch) -> None:
    assert (batch.images.count(), batch.n_unlisted) == (2, 5)
    assert batch.job.stores_bytes == 7 * predicted_bytes(36, 24) == bytes_to_come(batch)


def test_the_job_makes_the_others_and_deals_all_of_them_out(batch: PredictionBatch) -> None:
    run_job(batch.job_id, watched=False)
    batch.refresh_from_db()
    assert names(batch) == [f"leaf_{k}.jpg" for k in range(7)]
    assert batch.n_unlisted == 0
    assert batch.images.exclude(mask_digest="").count() == 2
    assert batch.job.n_pieces == 3


def test_pages_count_images_that_have_no_row_yet(
    bob: User, client_of: ClientOf, batch: PredictionBatch
) -> None:
    client = client_of(bob)
    assert Page(client.get(batch.get_absolute_url())).says("7 images, started")
    assert Page(client.get(reverse("segmentation:predictions"))).one("row", "Leaves").says("0 of 7")


def test_a_cancellation_while_rows_are_made_keeps_those_there_are(
    bob: User, batch: PredictionBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[str, float | None]] = []

    def report(self: JobContext, sentence: str, fraction: float | None = None) -> None:
        said.append((sentence, fraction))
        job_cancel(user=bob, job=self.job)

    monkeypatch.setattr(JobContext, "report", report)
    monkeypatch.setattr("webapp.jobs.context.STOP_SECONDS", 0)
    run_job(batch.job_id, watched=False)
    monkeypatch.undo()
    monkeypatch.setattr(waiting_images, "DEAL_IMAGES", 2)
    batch.refresh_from_db()
    assert said == [("Listing images: 2 of 7", 2 / 7)]
    assert batch.job.state == JobState.CANCELLED
    assert (batch.images.count(), batch.n_unlisted) == (4, 3)
    assert prediction_go_on(user=bob, batch=batch) == 7
    batch.refresh_from_db()
    run_job(batch.job_id, watched=False)
    assert len(names(batch)) == 7


def test_two_processes_that_both_make_rows_make_each_once(batch: PredictionBatch) -> None:
    other = PredictionBatch.objects.get(pk=batch.pk)
    assert [rows_make(batch=one, learned=set()) for one in (batch, other, batch)] == [3, 1, 0]
    assert rows_make(batch=other, learned=set()) == 0
    assert names(batch) == [f"leaf_{k}.jpg" for k in range(7)]


def test_an_image_removed_meanwhile_is_not_waited_for(
    batch: PredictionBatch, large_set: ImageSet
) -> None:
    large_set.files.filter(name__in=["leaf_5.jpg", "leaf_6.jpg"]).delete()
    run_job(batch.job_id, watched=False)
    batch.refresh_from_db()
    assert (len(names(batch)), batch.n_unlisted) == (5, 0)
    waiting = batch.images.filter(state=PredictedImage.State.WAITING).count()
    assert waiting == 5
