"""Probabilities of another program beside images: uploaded, learned from, needed to predict."""

import io

import numpy as np
import pytest
import tifffile

from engine import InvalidProblemError
from tests.webapp.factories.images import encoded, upload, zipped
from tests.webapp.roles import Page
from webapp.jobs.runner import run_job
from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.services import painting
from webapp.segmentation.services.image_sets import image_file_remove, image_set_create
from webapp.segmentation.services.painted_models import painting_learn
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.probability_maps import maps_beside, read_planes
from webapp.segmentation.services.uploads import upload_take

HEIGHT, WIDTH = 64, 96


def stroke(value: int, *points: float) -> dict:
    return {"value": value, "tool": "brush", "radius": 3.0, "points": list(points), "radii": []}


def right_half(seed: int) -> np.ndarray:
    """What another program told of noise: its right half is of the first class, shape (., ., 2)."""
    rng = np.random.default_rng(seed)
    first = np.clip(
        0.8 * (np.arange(WIDTH) >= WIDTH // 2) + 0.2 * rng.random((HEIGHT, WIDTH)), 0, 1
    )
    return np.stack([first, 1.0 - first], axis=2).astype(np.float32)


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def tiff(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values)
    return buffer.getvalue()


def take(bob, image_set: ImageSet, name: str, content: bytes) -> list:
    return list(upload_take(user=bob, image_set=image_set, uploaded=upload(name, content)))


@pytest.fixture
def noise(bob) -> ImageSet:
    """Two images of noise: their colours tell nothing."""
    image_set = image_set_create(user=bob, name="Plate", foreground="cell")
    rng = np.random.default_rng(0)
    for k in range(2):
        pixels = rng.integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        take(bob, image_set, f"well_{k}.png", encoded(pixels, "PNG"))
    return image_set


def learned(bob, image_set: ImageSet) -> Segmenter:
    """A model of one stroke in each half of the first image."""
    first = image_set.files.get(name="well_0.png")
    for one in (stroke(1, 60, 10, 90, 55), stroke(2, 8, 10, 40, 55)):
        painting.stroke_add(user=bob, file=first, stroke=one)
    segmenter = painting_learn(user=bob, image_set=image_set, predict=False)
    run_job(segmenter.job_id, watched=False)
    return Segmenter.objects.get(pk=segmenter.pk)


def predicted(bob, segmenter: Segmenter, image_set: ImageSet) -> list:
    batch = prediction_start(user=bob, segmenter=segmenter, image_set=image_set)
    run_job(batch.job_id, watched=False)
    return list(PredictionBatch.objects.get(pk=batch.pk).images.order_by("name"))


def test_a_model_learns_from_maps_and_needs_them(client_of, bob, alice, noise) -> None:
    (first,) = take(bob, noise, "well_0_Probabilities.tif", tiff(right_half(0)))
    assert (first.outcome, first.sentence) == ("added", "Probabilities, 2 planes")
    page = Page(client_of(alice).get(noise.get_absolute_url()))
    assert page.has("link", "Probability maps")
    painted = noise.files.get(name="well_0.png")
    paint = f"/image-sets/{noise.pk}/paint/{painted.pk}/"
    assert Page(client_of(bob).get(paint)).says("1 of 2 images has a probability map")
    take(bob, noise, "well_1.prob.npy", npy(right_half(1)))
    assert Page(client_of(bob).get(paint)).says("learns from the probability maps")
    assert noise.files.filter(role=ImageFile.Role.IMAGE).count() == 2

    segmenter = learned(bob, noise)
    assert segmenter.outcome["n_maps"] == 2
    words = Page(client_of(alice).get(segmenter.get_absolute_url()))
    assert "each image to predict needs its own" in words.said_of("Beside colours")
    for row in predicted(bob, segmenter, noise):
        assert row.state == "done", row.sentence
        assert row.shares["1"]["share"] == pytest.approx(0.5, abs=0.03)

    image_file_remove(user=bob, file=noise.files.get(name="well_1.prob.npy"))
    rows = predicted(bob, segmenter, noise)
    assert [row.state for row in rows] == ["done", "refused"]
    assert "well_1.png has none" in rows[1].sentence


def test_a_set_of_which_some_images_have_maps_is_learned_without(bob, noise) -> None:
    take(bob, noise, "well_0_prob.npy", npy(right_half(0)))
    assert learned(bob, noise).outcome["n_maps"] == 0


def test_maps_of_different_planes_are_not_learned_from(client_of, bob, noise) -> None:
    take(bob, noise, "well_0_prob.npy", npy(right_half(0)))
    take(bob, noise, "well_1_prob.npy", npy(right_half(1)[:, :, 0]))
    painted = noise.files.get(name="well_0.png")
    page = Page(client_of(bob).get(f"/image-sets/{noise.pk}/paint/{painted.pk}/"))
    assert page.says("different numbers of planes")


def test_a_zip_has_a_folder_of_maps(bob, noise) -> None:
    results = take(bob, noise, "maps.zip", zipped({"maps/well_1.npy": npy(right_half(1))}))
    assert [(one.name, one.outcome) for one in results] == [("well_1.probabilities.npy", "added")]
    assert noise.files.get(name="well_1.probabilities.npy").role == "map"


def test_a_map_that_came_before_its_image_is_one_when_it_comes_again(bob, noise) -> None:
    content = npy(right_half(0)[:, :, 0])
    take(bob, noise, "late_prob.npy", content)
    assert noise.files.get(name="late_prob.npy").role == "image"
    take(bob, noise, "late.png", encoded(np.full((HEIGHT, WIDTH, 3), 9, dtype=np.uint8), "PNG"))
    (result,) = take(bob, noise, "late_prob.npy", content)
    assert (result.outcome, result.sentence) == ("replaced", "Probabilities, 1 plane")
    (again,) = take(bob, noise, "late_prob.npy", content)
    assert again.outcome == "same"


def test_a_map_stays_one_while_its_image_is_away(client_of, bob, noise) -> None:
    take(bob, noise, "well_0_prob.npy", npy(right_half(0)))
    image_file_remove(user=bob, file=noise.files.get(name="well_0.png"))
    take(bob, noise, "well_0_prob.npy", npy(right_half(1)))
    file = noise.files.get(name="well_0_prob.npy")
    assert (file.role, file.problem) == ("map", "No image is named well_0.")
    take(bob, noise, "well_0.png", encoded(np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8), "PNG"))
    assert maps_beside(noise).n_with == 1


def test_letters_beyond_ascii_match_in_either_case(bob, noise) -> None:
    black = encoded(np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8), "PNG")
    take(bob, noise, "\u00c4pfel.png", black)
    take(bob, noise, "a\u0308pfel_PROB.npy", npy(right_half(0)))  # two signs, as macOS writes it
    image = noise.files.get(name="\u00c4pfel.png")
    np.testing.assert_array_equal(read_planes(image), right_half(0))
    with pytest.raises(InvalidProblemError, match=r"well_1\.png has none"):
        read_planes(noise.files.get(name="well_1.png"))


@pytest.mark.parametrize(
    "values",
    [
        np.moveaxis(right_half(0), 2, 0),  # planes first
        np.rint(255 * right_half(0)).astype(np.uint8),
        right_half(0).astype(np.float16),
        right_half(0).astype(">f8"),
        np.repeat(right_half(0)[:, :, :1], 32, axis=2),
    ],
)
def test_planes_come_in_many_ways(bob, noise, values) -> None:
    (result,) = take(bob, noise, "well_0_prob.npy", npy(values))
    assert result.outcome == "added", result.sentence
    planes = read_planes(noise.files.get(name="well_0.png"))
    np.testing.assert_allclose(planes[:, :, 0], right_half(0)[:, :, 0], atol=3e-3)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.full((HEIGHT, WIDTH), np.nan), "must lie between 0 and 1"),
        (np.zeros((HEIGHT, WIDTH, 33)), "at most 32 planes"),
        (np.zeros((HEIGHT, 0)), "expected numbers of shape"),
        (np.array([{}]), "cannot be read"),  # objects: code would have to be run
        (2.0 * right_half(0), "must lie between 0 and 1"),
        (np.zeros((HEIGHT, WIDTH, 2), dtype=complex), "expected numbers of shape"),
    ],
)
def test_what_is_no_probability_is_refused(bob, noise, values, sentence) -> None:
    (result,) = take(bob, noise, "well_0_prob.npy", npy(values))
    assert result.outcome == "refused"
    assert result.sentence.startswith("well_0_prob.npy")
    assert sentence in result.sentence
    assert noise.files.count() == 2


def test_a_map_of_another_size_is_said_and_not_used(bob, noise) -> None:
    take(bob, noise, "well_0_prob.npy", npy(right_half(0)[:, :40]))
    file = noise.files.get(name="well_0_prob.npy")
    assert file.problem == "The map is 40 × 64 pixels, but well_0.png is 96 × 64."


def test_a_picture_that_is_only_named_as_a_map_stays_a_picture(bob, noise) -> None:
    (result,) = take(bob, noise, "tissue_prob.tif", tiff(right_half(0)[:, :, 0]))
    assert result.outcome == "added"
    assert noise.files.get(name="tissue_prob.tif").role == "image"
