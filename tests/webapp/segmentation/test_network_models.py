"""Models with a network below the trees: offered where it can be learned, learned, predicting."""

from dataclasses import replace

import pytest
from django.utils import timezone

from engine import NetworkOptions, load_segmentation_model
from engine.learning.segmentation.network import learning, training
from tests.webapp.factories.painting import INSIDE, OUTSIDE
from tests.webapp.roles import Page
from webapp.jobs import registry
from webapp.jobs.checkpoint import StoredCheckpoint
from webapp.jobs.claims import job_claim_next
from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.queues import kinds_taken
from webapp.jobs.registry import Queue
from webapp.jobs.runner import run_job
from webapp.jobs.services import jobs_sweep
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.forms import LearnForm
from webapp.segmentation.models import Segmenter
from webapp.segmentation.services import painting
from webapp.segmentation.services.painted_models import painting_learn
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.segmenters import LearningChoices, segmenter_learn

MISSING = "Learning a network needs JAX."
CHOICES = LearningChoices(solver="network", max_side=48, max_seconds=300, holdout_percent=0)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch) -> None:
    """Train on windows of the size of those of other tests, which are compiled already."""
    monkeypatch.setattr(learning, "MOST_WINDOW", 32)


def test_without_jax_the_page_says_how_to_get_it_and_nothing_is_queued(
    client_of, bob, image_set, monkeypatch
) -> None:
    page = Page(client_of(bob).get("/image-models/new/"))
    assert page.has("option", "Network, then smoothed trees")
    for module in ("forms", "services.segmenters"):
        monkeypatch.setattr(f"webapp.segmentation.{module}.network_available", lambda: MISSING)
    page = Page(client_of(bob).get("/image-models/new/"))
    assert "Network, then smoothed trees" not in page.source
    assert page.field("Method").description == MISSING
    sent = {"name": "N", "image_sets": [image_set.pk], "restraint": "1", "max_side": "100"}
    sent |= {"max_seconds": "60", "holdout_percent": "20", "solver": "network"}
    assert "solver" in LearnForm(sent, user=bob).errors
    with pytest.raises(SegmentationError, match="needs JAX"):
        segmenter_learn(user=bob, name="N", image_sets=[image_set], choices=CHOICES)
    assert not Segmenter.objects.exists()


@pytest.mark.any_database
def test_a_network_is_learned_kept_and_predicts(bob, image_set, monkeypatch) -> None:
    monkeypatch.setattr(
        "webapp.segmentation.jobs.NetworkOptions", lambda: NetworkOptions(width=2, steps=2, batch=2)
    )
    segmenter = segmenter_learn(user=bob, name="N", image_sets=[image_set], choices=CHOICES)
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    segmenter.job.refresh_from_db()
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    assert load_segmentation_model(segmenter.path).network is not None
    batch = prediction_start(user=bob, image_set=image_set, segmenter=segmenter)
    run_job(batch.job_id, watched=False)
    assert {row.state for row in batch.images.all()} == {"done"}


def test_room_for_a_network_is_reserved(bob, image_set) -> None:
    small = replace(CHOICES, solver="auto")
    plain = segmenter_learn(user=bob, name="A", image_sets=[image_set], choices=small)
    deep = segmenter_learn(user=bob, name="B", image_sets=[image_set], choices=CHOICES)
    assert deep.job.stores_bytes - plain.job.stores_bytes == 64_000_000


@pytest.mark.any_database
def test_strokes_learn_with_a_network_and_predict(client_of, bob, file, monkeypatch) -> None:
    monkeypatch.setattr(
        "webapp.segmentation.services.painted_models.NetworkOptions",
        lambda: NetworkOptions(width=2, steps=2, batch=2),
    )
    for stroke in (INSIDE, OUTSIDE):
        painting.stroke_add(user=bob, file=file, stroke=stroke)
    address = f"/image-sets/{file.image_set_id}/paint/learn/"
    sent = {"max_seconds": "1800", "network": "on"}
    assert client_of(bob).post(address, sent).status_code == 302
    segmenter = Segmenter.objects.get()
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    segmenter.job.refresh_from_db()
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    assert "network alone" in segmenter.outcome["errors"]
    assert load_segmentation_model(segmenter.path).network is not None
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.has("term", "Methods compared")
    assert "network alone: " in page.said_of("Methods compared")


def test_without_jax_the_painting_page_offers_no_network(
    client_of,
    bob,
    file,
    monkeypatch,
) -> None:
    address = f"/image-sets/{file.image_set_id}/paint/"
    page = Page(client_of(bob).get(address, follow=True))
    assert page.section("Learning").says("Learn a network too")
    for module in ("forms", "services.painted_models"):
        monkeypatch.setattr(f"webapp.segmentation.{module}.network_available", lambda: MISSING)
    assert "Learn a network too" not in Page(client_of(bob).get(address, follow=True)).source
    with pytest.raises(SegmentationError, match="needs JAX"):
        painting_learn(user=bob, image_set=file.image_set, predict=False, network=True)
    assert not Segmenter.objects.exists()


def test_a_network_is_learned_by_workers_with_a_card_and_trees_by_any_learner(
    bob, image_set, file
) -> None:
    for stroke in (INSIDE, OUTSIDE):
        painting.stroke_add(user=bob, file=file, stroke=stroke)
    for network in (True, False):
        solver = "network" if network else "auto"
        choices = replace(CHOICES, solver=solver)
        masks = segmenter_learn(user=bob, name="N", image_sets=[image_set], choices=choices)
        strokes = painting_learn(user=bob, image_set=file.image_set, predict=False, network=network)
        for segmenter in (masks, strokes):
            queue = Queue.CARD if network else Queue.LONG
            assert registry.queue_of(segmenter.job.kind) == queue
            assert segmenter.job.title == f"Learn: {segmenter.name}"
            assert registry.subject_of(segmenter.job.kind).model is Segmenter


def test_a_network_that_an_earlier_version_queued_is_learned_by_a_learner(bob, image_set) -> None:
    segmenter = segmenter_learn(user=bob, name="N", image_sets=[image_set], choices=CHOICES)
    Job.objects.update(kind="segmentation.learn")
    Worker.objects.create(name="card-1@lab", processes=1, seen_at=timezone.now())
    kinds = kinds_taken(Queue.LONG, "segmentation.learn")
    claimed = job_claim_next(kinds=kinds, queue=Queue.LONG)
    assert claimed is not None
    assert claimed.pk == segmenter.job_id


def test_a_network_begun_on_a_card_is_learned_on_a_processor_when_the_card_dies(
    bob, image_set, monkeypatch
) -> None:
    """The checkpoint holds a network of the card's size, with which a processor cannot go on."""

    class Died(BaseException):
        pass

    def on(device: str) -> None:
        for module in (learning, training):
            monkeypatch.setattr(module, "device_name", lambda: device)

    save = StoredCheckpoint.save

    def save_and_die(self, state) -> None:
        save(self, state)
        raise Died

    for name, number in (("WIDTH", 3), ("STEPS", 5), ("BATCH", 2)):
        monkeypatch.setattr(learning, f"CARD_{name}", number)
    for name, number in (("WIDTH", 2), ("STEPS", 4), ("BATCH", 2)):
        monkeypatch.setattr(learning, f"CPU_{name}", number)
    segmenter = segmenter_learn(user=bob, name="N", image_sets=[image_set], choices=CHOICES)
    on("gpu")
    monkeypatch.setattr(StoredCheckpoint, "save", save_and_die)
    with pytest.raises(Died):
        run_job(segmenter.job_id, watched=False)
    monkeypatch.setattr(StoredCheckpoint, "save", save)
    assert segmenter.job.checkpoint_path.exists()
    Job.objects.update(worker="elsewhere:1:1", heartbeat_at=None)
    assert jobs_sweep()["requeued"] == 1
    on("cpu")
    run_job(segmenter.job_id, watched=False)
    segmenter.job.refresh_from_db()
    assert (segmenter.job.state, segmenter.job.attempt) == (JobState.SUCCEEDED, 2)
    assert load_segmentation_model(segmenter.path).network.shape.width == 2
