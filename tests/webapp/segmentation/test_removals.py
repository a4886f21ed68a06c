"""Large sets and predictions are gone at once, and taken away in pieces by a job that may die."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client

from tests.webapp.factories.images import MakeSet
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, User
from webapp.files import store
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.jobs.services import job_cancel
from webapp.segmentation.models import (
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)
from webapp.segmentation.services import removals
from webapp.segmentation.services.image_sets import image_set_purge
from webapp.segmentation.services.predictions import prediction_delete, prediction_start

ClientOf = Callable[[User], Client]


@pytest.fixture(autouse=True)
def all_is_large(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REMOVED_AT_ONCE = 2
    monkeypatch.setattr(removals, "AT_ONCE", 2)


def removal() -> Job:
    return Job.objects.get(kind=removals.KIND)


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_prediction_is_gone_before_its_rows_are(
    client_of: ClientOf, bob: User, batch: PredictionBatch, media_root: Path
) -> None:
    client, before = client_of(bob), files_in(media_root)
    client.post(f"/predictions/{batch.pk}/delete/", {"confirm": batch.name})
    assert PredictedImage.objects.count() == 3
    assert files_in(media_root) == before
    for address in (f"/predictions/{batch.pk}/", f"/predictions/{batch.pk}/files.zip"):
        assert client.get(address).status_code == 404
    assert f"/predictions/{batch.pk}/" not in Page(client.get("/predictions/")).source
    assert not batch.segmenter.batches.exists()

    run_job(removal().pk, watched=False)
    assert (removal().state, removal().result["sentence"]) == (
        JobState.SUCCEEDED,
        "3 images taken away.",
    )
    assert not PredictedImage.objects.exists()
    assert not PredictionBatch.everything.exists()
    left = {name.split("/")[1] for name in files_in(media_root) if "/" in name}
    assert left.isdisjoint({"marginals", "masks", "layers", "previews", "objects"})
    assert all(file.store.path(file.digest).exists() for file in ImageFile.objects.all())


def test_a_model_is_gone_at_once_with_predictions_that_are_taken_away_later(
    client_of: ClientOf, bob: User, batch: PredictionBatch, media_root: Path
) -> None:
    """The request once removed the files of every image that the model had predicted."""
    client, model = client_of(bob), batch.segmenter
    before = {name for name in files_in(media_root) if "/marginals/" in name}
    client.post(f"/image-models/{model.pk}/delete/", {"confirm": model.name})
    for address in (f"/image-models/{model.pk}/", f"/predictions/{batch.pk}/"):
        assert client.get(address).status_code == 404
    assert not Segmenter.objects.exists()
    assert before
    assert before <= files_in(media_root)
    assert client.get("/jobs/").status_code == 200
    run_job(removal().pk, watched=False)
    assert removal().state == JobState.SUCCEEDED
    assert not PredictionBatch.everything.exists()
    assert not before & files_in(media_root)


def test_a_set_goes_with_its_predictions_and_leaves_what_others_need(
    client_of: ClientOf,
    bob: User,
    image_set: ImageSet,
    batch: PredictionBatch,
    make_set: MakeSet,
    media_root: Path,
) -> None:
    twin = make_set(bob, name="Twin", images=1, masks=0).files.get()
    client = client_of(bob)
    client.post(f"/image-sets/{image_set.pk}/purge/", {"confirm": image_set.name})
    for address in (f"/image-sets/{image_set.pk}/", f"/predictions/{batch.pk}/"):
        assert client.get(address).status_code == 404
    assert "Leaves" not in Page(client.get("/image-sets/")).source
    found = Page(client.get("/search/?q=leaf_&stay=1"))  # with one hit it would lead there
    assert f"/image-sets/{image_set.pk}/" not in found.source
    run_job(removal().pk, watched=False)
    assert removal().state == JobState.SUCCEEDED
    assert list(ImageSet.everything.values_list("name", flat=True)) == ["Twin"]
    assert not PredictionBatch.everything.exists()
    originals = {name for name in files_in(media_root) if "/files/originals/" in name}
    assert {Path(name).name for name in originals} == {twin.digest}


def test_a_killed_removal_goes_on_and_room_is_given_back_at_the_end(
    bob: User, batch: PredictionBatch, media_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prediction_delete(user=bob, batch=batch)
    Organisation.objects.filter(pk=bob.organisation_id).update(stored_bytes=10**9)
    real, removed = store.remove, []

    def remove_then_die(path: Path) -> None:
        real(path)
        removed.append(path)
        if len(removed) == 12:  # within the second of three images' files
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "remove", remove_then_die)
    with pytest.raises(KeyboardInterrupt):
        run_job(removal().pk, watched=False)
    assert PredictedImage.objects.count() == 1
    assert PredictionBatch.everything.exists()
    monkeypatch.setattr(store, "remove", real)
    Job.objects.filter(pk=removal().pk).update(state=JobState.QUEUED, claim=None)
    run_job(removal().pk, watched=False)
    assert removal().state == JobState.SUCCEEDED
    assert not PredictionBatch.everything.exists()
    folders = {name.split("/")[1] for name in files_in(media_root) if "/" in name}
    assert folders.isdisjoint({"marginals", "masks", "layers", "previews", "objects"})
    organisation = Organisation.objects.get(pk=bob.organisation_id)
    folder = media_root / f"organisation-{organisation.pk}"
    assert organisation.stored_bytes == sum((folder / n).stat().st_size for n in files_in(folder))


def test_what_a_cancelled_or_refused_job_left_the_sweep_takes_away(
    bob: User, batch: PredictionBatch, image_set: ImageSet, settings: LazySettings
) -> None:
    prediction_delete(user=bob, batch=batch)
    job_cancel(user=bob, job=removal())
    settings.ORGANISATION_MAX_WAITING_JOBS = 0
    image_set_purge(user=bob, image_set=image_set)
    assert Job.objects.filter(kind=removals.KIND).count() == 1
    assert removals.removals_finish() >= 1
    assert not PredictionBatch.everything.exists()
    assert not ImageSet.everything.exists()


def test_a_running_prediction_is_cancelled_before(
    bob: User, segmenter: Segmenter, image_set: ImageSet
) -> None:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    prediction_delete(user=bob, batch=batch)
    batch.job.refresh_from_db()
    assert batch.job.state == JobState.CANCELLED
    run_job(removal().pk, watched=False)
    assert removal().state == JobState.SUCCEEDED
