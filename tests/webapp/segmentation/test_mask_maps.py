"""Probabilities of another program beside masks: learned from, and needed to predict."""

from collections.abc import Iterator

import numpy as np
import pytest

from engine import load_segmentation_model
from engine.learning.segmentation import detail_choice
from tests.small_trees import learned_trees
from tests.webapp.factories.images import encoded, upload
from tests.webapp.roles import Page
from tests.webapp.segmentation.test_probability_maps import npy, take, tiff
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.segmentation import jobs
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.services.corrections import mask_correct
from webapp.segmentation.services.image_sets import image_file_remove, image_set_create
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.probability_maps import maps_beside
from webapp.segmentation.services.segmenters import LearningChoices, segmenter_learn

HEIGHT, WIDTH, COUNT = 32, 48, 5
QUICK = {"max_side": 48, "max_seconds": 60, "relative_gap": 0.01, "holdout_percent": 20}


@pytest.fixture(autouse=True)
def small_trees() -> Iterator[None]:
    with learned_trees():
        yield


def thing(number: int) -> np.ndarray:
    """A block that lies elsewhere in every picture, (height, width) bool."""
    mask = np.zeros((HEIGHT, WIDTH), dtype=bool)
    mask[4 + 2 * number : 18 + 2 * number, 5 + 6 * number : 23 + 6 * number] = True
    return mask[:HEIGHT, :WIDTH]


def told(number: int) -> np.ndarray:
    """What another program told of it: (height, width) float32."""
    noise = np.random.default_rng(number).random((HEIGHT, WIDTH))
    return (0.7 * thing(number) + 0.3 * noise).astype(np.float32)


def grainy_set(bob, *, masks: int = COUNT, maps: int = COUNT, name: str = "Plate") -> ImageSet:
    """Images of noise, whose colours tell nothing, the first of them with masks and maps."""
    image_set = image_set_create(user=bob, name=name, foreground="cell")
    rng = np.random.default_rng(0)
    for k in range(COUNT):
        pixels = rng.integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        take(bob, image_set, f"well_{k}.png", encoded(pixels, "PNG"))
        if k < masks:
            mask = encoded(255 * thing(k).astype(np.uint8), "PNG")
            take(bob, image_set, f"well_{k}.mask.png", mask)
        if k < maps:
            take(bob, image_set, f"well_{k}_prob.npy", npy(told(k)))
    return image_set


def queued(bob, *image_sets: ImageSet, **options) -> Segmenter:
    choices = LearningChoices(**QUICK | options)
    return segmenter_learn(user=bob, name="Cells", image_sets=image_sets, choices=choices, seed=1)


def ran(segmenter: Segmenter) -> Segmenter:
    run_job(segmenter.job_id, watched=False)
    return Segmenter.objects.select_related("job").get(pk=segmenter.pk)


def learned(bob, *image_sets: ImageSet, **options) -> Segmenter:
    segmenter = ran(queued(bob, *image_sets, **options))
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    return segmenter


def predicted(bob, segmenter: Segmenter, image_set: ImageSet) -> list:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    run_job(batch.job_id, watched=False)
    return list(PredictionBatch.objects.get(pk=batch.pk).images.order_by("name"))


@pytest.fixture
def model(bob) -> Segmenter:
    """A model of maps of one plane."""
    return learned(bob, grainy_set(bob, name="Earlier"))


@pytest.mark.parametrize("solver", ["auto", "theta"])
def test_a_model_learns_from_maps_beside_masks_and_needs_them(client_of, bob, solver) -> None:
    image_set = grainy_set(bob)
    page = Page(client_of(bob).get(f"/image-models/new/?set={image_set.pk}"))
    assert page.one("group", "Learn from").says("learns from their probability maps, too (1 plane)")
    waiting = queued(bob, image_set, solver=solver)
    words = Page(client_of(bob).get(waiting.get_absolute_url()))
    assert words.says("1 plane: each image to predict needs its own")
    segmenter = learned(bob, image_set, solver=solver)
    assert segmenter.outcome["n_maps"] == 1
    assert segmenter.outcome["checked"]["n_images"] == 1
    assert segmenter.outcome["checked"]["error"]["mean"] < 0.1
    words = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert "each image to predict needs its own" in words.said_of("Beside colours")
    rows = predicted(bob, segmenter, image_set)
    assert [row.state for row in rows] == ["done"] * COUNT
    assert max(row.error for row in rows) < 0.1


def test_without_their_maps_the_same_images_tell_nothing(bob) -> None:
    segmenter = learned(bob, grainy_set(bob, maps=0))
    assert segmenter.outcome["n_maps"] == 0
    assert segmenter.outcome["checked"]["error"]["mean"] > 0.15


def test_where_only_some_images_have_maps_none_is_learned_from_and_the_page_says_so(
    client_of, bob
) -> None:
    image_set = grainy_set(bob, maps=1)
    page = Page(client_of(bob).get("/image-models/new/"))
    sets = page.one("group", "Learn from")
    assert sets.says("1 of 5 images has a probability map: maps are learned from where every")
    assert learned(bob, image_set).outcome["n_maps"] == 0
    for k in range(1, COUNT):
        take(bob, image_set, f"well_{k}_prob.npy", npy(np.stack([told(k)] * 2, axis=2)))
    page = Page(client_of(bob).get("/image-models/new/"))
    sets = page.one("group", "Learn from")
    assert sets.says("probability maps with different numbers of planes are not learned from")
    assert queued(bob, image_set).job.parameters["planes"] == 0


def test_maps_of_several_sets_are_learned_from_where_all_have_them(client_of, bob) -> None:
    first, second = grainy_set(bob), grainy_set(bob, maps=0, name="Other")
    assert maps_beside(first, second).n_images == 2 * COUNT
    assert queued(bob, first, second).job.parameters["planes"] == 0
    assert queued(bob, first).job.parameters["planes"] == 1
    page = Page(client_of(bob).get("/image-models/new/"))
    assert page.says("where every image of all of them has one")
    assert page.text.count("learns from their probability maps") == 1


def test_a_page_without_maps_says_nothing_of_them(client_of, bob) -> None:
    grainy_set(bob, maps=0)
    page = Page(client_of(bob).get("/image-models/new/"))
    assert "aps are learned from" not in page.source


def test_maps_that_go_or_change_before_learning_begins_leave_their_images_out(bob) -> None:
    image_set = grainy_set(bob)
    segmenter = queued(bob, image_set, holdout_percent=0)
    image_file_remove(user=bob, file=image_set.files.get(name="well_0_prob.npy"))
    take(bob, image_set, "well_1_prob.npy", npy(told(1)[:, :20]))
    take(bob, image_set, "well_2_prob.npy", npy(np.stack([told(2)] * 3, axis=2)))
    segmenter = ran(segmenter)
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    assert (segmenter.outcome["n_learned"], segmenter.outcome["n_maps"]) == (2, 1)
    reasons = {one["name"]: one["reason"] for one in segmenter.outcome["left_out"]}
    assert "well_0.png has none" in reasons["well_0.png"]
    assert "well_1.png has none" in reasons["well_1.png"]
    assert reasons["well_2.png"] == "well_2.png: its probability map has 3 planes, not 1."


def test_where_all_maps_went_learning_fails_in_a_sentence(bob) -> None:
    image_set = grainy_set(bob)
    segmenter = queued(bob, image_set)
    for k in range(COUNT):
        image_file_remove(user=bob, file=image_set.files.get(name=f"well_{k}_prob.npy"))
    segmenter = ran(segmenter)
    assert segmenter.job.state == JobState.FAILED
    assert "None of the images can be used. Left out: The model needs" in segmenter.job.error
    assert not segmenter.is_ready


def test_a_set_without_maps_is_refused_before_anything_is_queued(client_of, bob, model) -> None:
    bare = grainy_set(bob, maps=0, name="Bare")
    n_jobs = Job.objects.count()
    form = {"image_set": bare.pk, "segmenter": model.pk, "readout": "marginal"}
    answer = client_of(bob).post("/predictions/new/", form)
    assert answer.status_code == 422
    sentence = "Cells needs a probability map of 1 plane beside each image: Bare has none."
    assert Page(answer, status=422).has("alert", sentence)
    take(bob, bare, "well_0_prob.npy", npy(np.stack([told(0)] * 2, axis=2)))
    with pytest.raises(SegmentationError, match="Bare has maps of 2 planes"):
        prediction_start(user=bob, segmenter=model, image_set=bare)
    assert Job.objects.count() == n_jobs
    assert not PredictionBatch.objects.exists()


def test_images_without_their_map_are_refused_one_by_one(bob, model) -> None:
    image_set = grainy_set(bob, maps=3)
    batch = prediction_start(user=bob, segmenter=model, image_set=image_set)
    image_file_remove(user=bob, file=image_set.files.get(name="well_2_prob.npy"))
    image_file_remove(user=bob, file=image_set.files.get(name="well_1.png"))
    run_job(batch.job_id, watched=False)
    rows = list(batch.images.order_by("name"))
    assert [row.state for row in rows] == ["done", "refused", "refused", "refused", "refused"]
    assert "learned with 1 map beside each image" in rows[1].sentence
    assert "well_2.png has none" in rows[2].sentence


def test_maps_of_another_organisation_are_nobodys_but_its_own(bob, mallory, model) -> None:
    grainy_set(mallory, name="Theirs")
    bare = grainy_set(bob, maps=0, name="Bare")
    assert maps_beside(bare).n_with == 0
    with pytest.raises(SegmentationError, match="Bare has none"):
        prediction_start(user=bob, segmenter=model, image_set=bare)


def test_a_model_with_maps_goes_to_another_installation(client_of, bob, mallory, model) -> None:
    exported = client_of(bob).get(f"{model.get_absolute_url()}model.npz").getvalue()
    taken = {"name": "From afar", "foreground": "cell", "digest": ""}
    form = {"file": upload("cells.npz", exported), **taken}
    assert client_of(mallory).post("/image-models/import/", form).status_code == 302
    imported = Segmenter.objects.get(organisation=mallory.organisation)
    assert imported.outcome["n_maps"] == 1
    page = Page(client_of(mallory).get(imported.get_absolute_url()))
    assert "each image to predict needs its own" in page.said_of("Beside colours")
    bare = grainy_set(mallory, maps=0, name="Bare")
    with pytest.raises(SegmentationError, match="From afar needs a probability map of 1 plane"):
        prediction_start(user=mallory, segmenter=imported, image_set=bare)
    rows = predicted(mallory, imported, grainy_set(mallory))
    assert max(row.error for row in rows) < 0.1


def test_a_set_is_learned_from_again_with_a_corrected_mask(bob, model) -> None:
    image_set = grainy_set(bob, masks=0)
    for row in predicted(bob, model, image_set)[:4]:
        drawn = encoded(255 * thing(int(row.name[5])).astype(np.uint8), "PNG")
        mask_correct(user=bob, row=row, painted=drawn)
    again = learned(bob, image_set)
    assert again.outcome["n_maps"] == 1
    assert again.outcome["n_learned"] == 3
    assert again.outcome["checked"]["error"]["mean"] < 0.1


def test_the_size_that_pays_is_tried_with_maps(bob, monkeypatch) -> None:
    monkeypatch.setattr(detail_choice, "TREES", 6)
    segmenter = learned(bob, grainy_set(bob), max_side=0)
    assert segmenter.outcome["n_maps"] == 1
    assert segmenter.outcome["detail"][0][1] < 0.12
    assert load_segmentation_model(segmenter.path).n_maps == 1


def test_maps_of_bytes_in_a_tiff_are_learned_from(bob) -> None:
    image_set = grainy_set(bob, maps=0)
    for k in range(COUNT):
        planes = np.stack([told(k), 1 - told(k)], axis=2)
        take(bob, image_set, f"well_{k}.prob.tif", tiff(np.rint(255 * planes).astype(np.uint8)))
    assert learned(bob, image_set).outcome["n_maps"] == 2


def test_a_map_that_goes_while_it_is_learned_only_leaves_its_image_unchecked(
    bob, monkeypatch
) -> None:
    image_set = grainy_set(bob)
    train = jobs.train_boosted_segmentation

    def train_and_lose(*given, **options):
        trained = train(*given, **options)
        for file in image_set.files.filter(role="map"):
            image_file_remove(user=bob, file=file)
        return trained

    monkeypatch.setattr(jobs, "train_boosted_segmentation", train_and_lose)
    segmenter = learned(bob, image_set)
    assert segmenter.outcome["n_maps"] == 1
    assert segmenter.outcome["checked"] == {}
    (left_out,) = segmenter.outcome["left_out"]
    assert "has none" in left_out["reason"]
    assert segmenter.is_ready
