"""Classes learned from strokes, predicted, counted and exported."""

import csv
import gzip
import io
import json

import numpy as np
import pytest
import tifffile
from openpyxl import load_workbook
from PIL import Image

from tests.webapp.factories.painting import INSIDE, OUTSIDE
from tests.webapp.roles import Page
from webapp.files import store
from webapp.jobs.runner import run_job
from webapp.segmentation.model_origin import origin_read
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.services import painting
from webapp.segmentation.services.painted_models import painting_learn
from webapp.segmentation.services.predictions import prediction_start


@pytest.fixture
def painted(bob, file) -> PredictionBatch:
    """Two strokes learned from, and both images predicted; a pixel is half a micrometre."""
    for one in (INSIDE, OUTSIDE):
        painting.stroke_add(user=bob, file=file, stroke=one)
    ImageSet.objects.filter(pk=file.image_set_id).update(pixel_size=0.5)
    image_set = ImageSet.objects.get(pk=file.image_set_id)
    segmenter = painting_learn(user=bob, image_set=image_set, predict=True)
    run_job(segmenter.job_id, watched=False)
    batch = PredictionBatch.objects.get(segmenter=segmenter)
    run_job(batch.job_id, watched=False)
    return PredictionBatch.objects.get(pk=batch.pk)


def test_from_strokes_to_counts_and_files(client_of, bob, alice, painted) -> None:
    segmenter = Segmenter.objects.get()
    assert [one["name"] for one in segmenter.classes] == ["Cell", "Background"]
    assert "Learned from strokes on 1 image." in segmenter.outcome["sentence"]
    rows = list(painted.images.all())
    assert [row.state for row in rows] == ["done", "done"]
    assert rows[0].learned_from
    assert not rows[1].learned_from
    checked = segmenter.outcome["checked"]
    assert checked["n_images"] == 1
    assert [row["pixels"] > 0 for row in checked["classes"]] == [True, True]
    for row in rows:
        assert row.shares["1"]["count"] == 1
        assert row.shares["1"]["area"] == pytest.approx(24 * 16, rel=0.2)
        assert row.shares["1"]["share"] + row.shares["2"]["share"] == pytest.approx(1)
    origin = origin_read(segmenter.path)
    assert origin.figures == checked
    assert origin.learned_digests == segmenter.learned_digests
    client = client_of(alice)
    model_page = Page(client.get(segmenter.get_absolute_url()))
    assert model_page.says("each block of it was")
    assert model_page.has("columnheader", "Recall (found)")
    assert model_page.has("columnheader", "Precision (correct)")
    assert Page(client.get(painted.get_absolute_url())).says("no figure of how right it is")
    followed = model_page.one("link", "open the prediction of Plate")
    assert followed.address == painted.get_absolute_url()  # it followed learning
    page = Page(client.get(rows[1].get_absolute_url()))
    assert page.element.xpath("//*[@data-looking]")
    assert "Correct by painting" not in page.source
    assert Page(client_of(bob).get(rows[1].get_absolute_url())).has("link", "Correct by painting")
    report = Page(client.get(f"{painted.get_absolute_url()}objects/"))
    assert report.says("Objects under 10 pixels are left out")
    assert report.has("columnheader", "µm²")
    _check_files(client, painted, rows[1])


def _check_files(client, batch, row) -> None:
    def get(kind: str) -> bytes:
        answer = client.get(f"{row.get_absolute_url()}{kind}")
        assert answer.status_code == 200, kind
        return answer.getvalue()

    labels = tifffile.imread(io.BytesIO(get("labels.tif")))
    assert labels.shape == (64, 96)
    assert set(np.unique(labels)) == {1, 2}
    coloured = Image.open(io.BytesIO(get("mask.png")))
    assert coloured.mode == "P"
    assert np.array_equal(np.asarray(coloured), labels)
    probabilities = np.load(io.BytesIO(get("marginals.npy")))
    assert probabilities.shape == (64, 96, 2)
    assert np.array_equal(probabilities.argmax(axis=2) + 1, labels)
    assert Image.open(io.BytesIO(get("overlay.png"))).size == (96, 64)
    table = list(csv.DictReader(io.StringIO(get("objects.csv").decode("utf-8-sig"))))
    cells = [line for line in table if line["class"] == "Cell"]
    assert len(cells) == 1
    area = (labels == 1).sum() / 4
    assert float(cells[0]["area_um2"]) == pytest.approx(area, rel=0.05)
    sheet = load_workbook(io.BytesIO(get("objects.xlsx"))).active
    assert [cell.value for cell in sheet[1]][:3] == ["image", "class", "object"]
    assert sheet.max_row == len(table) + 1
    coco = json.loads(get("coco.json"))
    assert {one["name"] for one in coco["categories"]} == {"Cell"}  # background is no object
    assert {line["class"] for line in table} == {"Cell"}
    found = coco["annotations"][0]
    counts = np.array(found["segmentation"]["counts"])
    runs = np.repeat(np.arange(len(counts)) % 2, counts).reshape(96, 64).T
    assert runs.sum() == found["area"]
    assert np.array_equal(runs == 1, labels == 1)
    whole = client.get(f"{batch.get_absolute_url()}objects.csv").content.decode("utf-8-sig")
    assert whole.count("Cell") == 2


def test_the_page_is_told_of_objects_in_the_unit_of_the_set(client_of, alice, painted) -> None:
    row = painted.images.first()
    answer = client_of(alice).get(f"{row.get_absolute_url()}objects/?class=1").json()
    assert answer["count"] == 1
    assert answer["total"] == pytest.approx(24 * 16 / 4, rel=0.2)
    assert client_of(alice).get(f"{row.get_absolute_url()}objects/?class=x").json()["count"] == 0


def test_known_labels_of_other_images_measure_what_was_predicted(
    client_of, bob, alice, painted
) -> None:
    """Labels are found by name: the second set numbers its classes the other way round."""
    old = painted.images.get(learned_from=False)
    stranger = {"value": 3, "name": "Dust", "colour": "#112233"}
    known_file = old.file
    ImageSet.objects.filter(pk=known_file.image_set_id).update(
        classes=[
            {"value": 2, "name": "cell", "colour": "#3b82f6"},
            {"value": 1, "name": "Background", "colour": "#b9c2be"},
            stranger,
        ]
    )
    known_file.refresh_from_db()
    labels = np.ones((64, 96), dtype=int)
    labels[:, :4] = 3
    mask = Image.open(store.get(old.mask_path))
    labels[np.asarray(mask) == 1] = 2
    labels[10, 40:50] = 2  # ten pixels that it will have wrong
    for value in (1, 2, 3):
        runs = [
            number
            for y, x in zip(*np.nonzero(labels == value), strict=True)
            for number in (int(y), int(x), int(x))
        ]
        stroke = {"value": value, "tool": "fill", "radius": 1, "points": runs, "radii": []}
        painting.stroke_add(user=bob, file=known_file, stroke=stroke)
    batch = prediction_start(user=bob, segmenter=painted.segmenter, image_set=known_file.image_set)
    run_job(batch.job_id, watched=False)
    row = batch.images.get(image_digest=old.image_digest)
    predicted = np.asarray(Image.open(store.get(row.mask_path)))
    truth = np.array([0, 2, 1, 0])[labels]
    known = truth > 0
    wrong = (predicted != truth) & known
    assert row.error == pytest.approx(wrong.sum() / known.sum())
    assert row.accuracy == pytest.approx(1 - row.error)
    cell = (predicted == 1) & known
    union = (cell | (truth == 1)).sum()
    counts = np.array(row.confusion)
    assert counts[0, 0] / (counts[0].sum() + counts[:, 0].sum() - counts[0, 0]) == pytest.approx(
        (cell & (truth == 1)).sum() / union
    )
    assert counts.sum() == known.sum()
    assert 0 < row.log_loss < 0.7
    client = client_of(alice)
    page = Page(client.get(batch.get_absolute_url()))
    assert page.says("painted or uploaded labels")
    assert page.has("heading", "Class by class")
    viewer = Page(client.get(row.get_absolute_url()))
    assert viewer.one("button", "Errors").element.get("data-show") == "errors"
    packed = gzip.decompress(store.get(row.layers_path).read_bytes())
    length = int.from_bytes(packed[:4], "little")
    assert json.loads(packed[4 : 4 + length])["hasTruth"]
    assert np.array_equal(
        np.frombuffer(packed[-64 * 96 :], np.uint8), np.where(known, truth - 1, 255).ravel()
    )
    sure = client.get(f"{row.get_absolute_url()}labels.tif?least=0.99")
    least = tifffile.imread(io.BytesIO(sure.getvalue()))
    sides = np.load(store.get(row.marginals_path)).max(axis=2)
    assert np.array_equal(least == 0, sides < 0.99)
    for bad in ("x", "2", "nan"):
        assert client.get(f"{row.get_absolute_url()}labels.tif?least={bad}").status_code == 404


def test_nothing_is_said_of_missing_paint_while_images_are_predicted(
    client_of, bob, painted
) -> None:
    """It once said "no image here is painted" until the last was compared with."""
    again = prediction_start(user=bob, segmenter=painted.segmenter, image_set=painted.image_set)
    page = Page(client_of(bob).get(again.get_absolute_url()))
    assert page.section("Images").says("0 of 2 so far")
    assert not page.says("No image here is painted")
