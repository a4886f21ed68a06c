"""Edges of objects, learned on the pages from masks."""

import io

import numpy as np
import pytest
import tifffile

from engine import InvalidProblemError, NetworkOptions, load_segmentation_model
from engine.learning.segmentation.network.learning import EDGE_WIDTH
from tests.webapp.factories.images import encoded
from tests.webapp.roles import Page
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.segmentation.labelled_files import LabelledFiles
from webapp.segmentation.models import ImageSet, Segmenter
from webapp.segmentation.object_options import background_of, edge_of
from webapp.segmentation.selectors.image_sets import masked_images
from webapp.segmentation.services.image_sets import image_set_create, pairing_refresh
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.segmenters import (
    LearningChoices,
    edge_classes,
    segmenter_learn,
)
from webapp.segmentation.services.uploads import image_file_add

FAST = LearningChoices(max_seconds=60)


def touching(seed: int, side: int = 48) -> tuple[np.ndarray, np.ndarray]:
    """Two touching squares of numbers of their own, with a darker line where they touch."""
    rng = np.random.default_rng(seed)
    numbers = np.zeros((side, side), dtype=np.uint16)
    top = int(rng.integers(6, 16))
    numbers[top : top + 20, 6:22], numbers[top : top + 20, 22:40] = 7, 9
    grey = np.where(numbers > 0, 170, 40)
    grey[top : top + 20, 20:24] = 110
    image = np.repeat((grey + rng.normal(0, 6, grey.shape))[:, :, None], 3, axis=2)
    return np.clip(image, 0, 255).astype(np.uint8), numbers


def tiff(numbers: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, numbers)
    return buffer.getvalue()


@pytest.fixture
def numbered(bob) -> ImageSet:
    image_set = image_set_create(user=bob, name="Nuclei", foreground="nucleus")
    for k in range(3):
        image, numbers = touching(k)
        for name, content in (
            (f"n{k}.png", encoded(image, "PNG")),
            (f"n{k}_instances.tif", tiff(numbers)),
        ):
            image_file_add(user=bob, image_set=image_set, name=name, chunks=[content])
    pairing_refresh(image_set=image_set)
    return image_set


def sent(image_set: ImageSet, **changes: str) -> dict[str, object]:
    fields = {"name": "N", "image_sets": [image_set.pk], "restraint": "1", "max_side": "200"}
    fields |= {"max_seconds": "60", "holdout_percent": "20", "solver": "auto", "edges": "on"}
    return fields | changes


def test_all_masks_offer_edges(client_of, bob, numbered, image_set) -> None:
    page = Page(client_of(bob).get("/image-models/new/"))
    assert page.has("checkbox", "Learn the edges of objects that touch")
    assert page.one("group", "Learn from").says("3 images with masks, whose objects have numbers")
    assert page.one("group", "Learn from").says("2 images with masks")
    assert "pixels that touch are one object" in page.source


def test_sets_of_another_organisation_offer_nothing(client_of, mallory, make_set, numbered) -> None:
    make_set(mallory)
    page = Page(client_of(mallory).get("/image-models/new/"))
    assert page.one("group", "Learn from").says("2 images with masks")
    assert "whose objects have numbers" not in page.source


@pytest.mark.parametrize("solver", ["theta", "certified", "frank-wolfe"])
def test_methods_of_masks_alone_are_refused_beside_their_field(
    client_of, bob, numbered, solver
) -> None:
    response = client_of(bob).post("/image-models/new/", sent(numbered, solver=solver))
    assert response.status_code == 422
    assert "Edges are learned by" in Page(response, status=422).field("Method").description
    assert not Segmenter.objects.exists()


def plain_files(name: str) -> list[tuple[str, bytes]]:
    """A picture and a mask of two parts that touch, and a square beside them."""
    marked = np.zeros((48, 48), np.uint8)
    marked[2:10, 2:10] = marked[10:18, 4:16] = marked[30:40, 30:40] = 255
    image, _ = touching(9)
    return [(f"{name}.png", encoded(image, "PNG")), (f"{name}.mask.png", encoded(marked, "PNG"))]


def test_pixels_that_touch_are_one_object_of_a_mask_without_numbers(bob) -> None:
    image_set = image_set_create(user=bob, name="Plain", foreground="nucleus")
    for name, content in plain_files("plain"):
        image_file_add(user=bob, image_set=image_set, name=name, chunks=[content])
    pairing_refresh(image_set=image_set)
    files = LabelledFiles(
        masked_images([image_set]), on_next=int, when_read=len, n_planes=0, edges=True
    )
    _, labels, _ = files.in_step()
    (found,) = labels
    assert (found[3:17, 5:9] == 1).all(), "where parts touch there is no edge"
    assert (found[2, 2:10] == 2).all()
    assert (found > 0).sum() == 64 + 96 + 100


@pytest.mark.any_database
def test_edges_are_learned_and_separate_touching_objects(client_of, bob, numbered) -> None:
    response = client_of(bob).post("/image-models/new/", sent(numbered, max_seconds="1800"))
    segmenter = Segmenter.objects.get()
    assert response.url == segmenter.get_absolute_url()
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    segmenter.job.refresh_from_db()
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    model = load_segmentation_model(segmenter.path)
    assert model.classes == ("Background", "Nucleus", "Edge")
    assert model.loss == "trees", "smoothing removes edges two pixels wide"
    assert (segmenter.outcome["n_learned"], segmenter.outcome["n_held_out"]) == (3, 0)
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.one("region", "Result").says("3 masked")
    assert "painted image" not in page.source
    assert "painted pixels" not in page.source
    assert page.says("Smoothing would remove the edges of objects")
    assert "clearly better" not in page.source, "nothing else was compared"
    batch = prediction_start(user=bob, image_set=numbered, segmenter=segmenter)
    run_job(batch.job_id, watched=False)
    batch.refresh_from_db()
    assert batch.object_options["edge"] == 3
    assert {row.state for row in batch.images.all()} == {"done"}
    counts = {row.shares["2"]["count"] for row in batch.images.all()}
    assert counts == {2}


def test_masks_without_numbers_are_learned_from_beside_others(bob, numbered) -> None:
    for name, content in plain_files("plain"):
        image_file_add(user=bob, image_set=numbered, name=name, chunks=[content])
    pairing_refresh(image_set=numbered)
    segmenter = segmenter_learn(user=bob, name="N", image_sets=[numbered], choices=FAST, edges=True)
    assert len(segmenter.learned_digests) == 4
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    assert segmenter.outcome["n_learned"] == 4


@pytest.mark.parametrize(("seconds", "channels"), [(300, None), (1800, EDGE_WIDTH)])
def test_a_network_of_edges_depends_on_the_time_that_was_chosen(
    bob, numbered, monkeypatch, seconds, channels
) -> None:
    """Not on the time that is left: a job that goes on after a kill has the same network."""
    asked: list[NetworkOptions] = []

    def stopped(*_: object, network: NetworkOptions, **__: object) -> None:
        asked.append(network)
        raise InvalidProblemError("Asked enough.")

    monkeypatch.setattr("webapp.segmentation.jobs.train_class_segmentation", stopped)
    choices = LearningChoices(max_seconds=seconds, solver="network")
    segmenter = segmenter_learn(
        user=bob, name="N", image_sets=[numbered], choices=choices, edges=True
    )
    Job.objects.filter(pk=segmenter.job_id).update(ran_before=seconds - 100)
    run_job(segmenter.job_id, watched=False)
    assert [one.width for one in asked] == [channels]


@pytest.mark.parametrize("name", ["nucleus", "edge", "Background", "border", " "])
def test_names_of_the_classes_tell_objects_from_edges(name) -> None:
    classes = edge_classes(name)
    assert len({one["name"] for one in classes}) == 3
    assert background_of(classes) == (1,)
    assert edge_of(classes) == 3
