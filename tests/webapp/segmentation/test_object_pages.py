"""Objects of predictions: separated, measured again, exported, and shown with their numbers."""

import csv
import gzip
import io
import json
import zipfile

import numpy as np
import pytest
import roifile
import tifffile

from tests.webapp.factories.images import make_batch, make_segmenter
from tests.webapp.roles import Page
from webapp.audit.models import AuditLine
from webapp.files import store
from webapp.jobs.models import Job
from webapp.jobs.runner import run_job
from webapp.segmentation.forms import ObjectsForm
from webapp.segmentation.measuring import numbered
from webapp.segmentation.models import PredictedImage, PredictionBatch
from webapp.segmentation.object_options import ObjectOptions, background_of, edge_of, options_of
from webapp.segmentation.rendering import mask_png
from webapp.segmentation.services.image_sets import pairing_refresh
from webapp.segmentation.services.object_corrections import objects_write
from webapp.segmentation.services.objects import typical_area
from webapp.segmentation.services.uploads import image_file_add


def first(batch: PredictionBatch) -> PredictedImage:
    return batch.images.order_by("name")[0]


def get(client, batch: PredictionBatch, kind: str) -> bytes:
    answer = client.get(f"{first(batch).get_absolute_url()}{kind}")
    assert answer.status_code == 200, kind
    return answer.getvalue()


def numbers_of(answer) -> tuple[dict, np.ndarray]:
    content = gzip.decompress(answer.getvalue())
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])
    numbers = np.frombuffer(content[4 + length :], dtype="<u4")
    return header, numbers.reshape(header["height"], header["width"])


def test_one_number_for_one_object_in_every_file(client_of, alice, discs) -> None:
    client = client_of(alice)
    assert first(discs).shares["1"]["count"] == 4
    numbers = tifffile.imread(io.BytesIO(get(client, discs, "objects.tif")))
    assert numbers.dtype == np.uint16
    assert numbers[30, 30] != numbers[30, 49]
    table = list(csv.DictReader(io.StringIO(get(client, discs, "objects.csv").decode("utf-8-sig"))))
    assert [int(line["object"]) for line in table] == [1, 2, 3, 4]
    for line in table:
        own = numbers == int(line["object"])
        assert own.sum() == float(line["area_px2"])
        diameter = (4 * own.sum() / np.pi) ** 0.5
        assert float(line["equivalent_diameter_px"]) == pytest.approx(diameter, rel=1e-5)
        assert 0 < float(line["solidity"]) <= 1
        assert float(line["mean_intensity_channel_1"]) >= 0
    rois = zipfile.ZipFile(io.BytesIO(get(client, discs, "rois.zip")))
    assert len(rois.namelist()) == 4
    roi = roifile.ImagejRoi.frombytes(rois.read(rois.namelist()[0]))
    assert roi.right - roi.left == np.ptp(np.nonzero(numbers == 1)[1]) + 1
    features = json.loads(get(client, discs, "objects.geojson"))["features"]
    assert features[0]["properties"]["classification"]["name"] == "leaf"
    seg = np.load(io.BytesIO(get(client, discs, "seg.npy")), allow_pickle=True).item()
    assert np.array_equal(seg["masks"], numbers)
    coco = json.loads(get(client, discs, "coco.json"))
    assert sorted(one["area"] for one in coco["annotations"]) == sorted(
        int((numbers == k).sum()) for k in range(1, 5)
    )
    archive = b"".join(client.get(f"{discs.get_absolute_url()}archive.zip").streaming_content)
    assert "objects/leaf_0.objects.tif" in zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert AuditLine.objects.filter(verb="exported", details__file="objects.tif").count() == 1


def test_the_slider_shows_splits_and_stores_nothing(client_of, alice, discs) -> None:
    client, row = client_of(alice), first(discs)
    url = f"{row.get_absolute_url()}split/"
    header, numbers = numbers_of(client.get(url))
    assert header["count"] == 4
    assert numbers.shape == (64, 96)
    fewer, _ = numbers_of(client.get(url, {"splits": "-1", "min_pixels": "10"}))
    assert fewer["count"] == 3
    inner, _ = numbers_of(client.get(url, {"splits": 0, "min_pixels": 10, "drop_border": "on"}))
    assert inner["count"] == 3
    none, _ = numbers_of(client.get(url, {"splits": 0, "min_pixels": 100_000}))
    assert none["count"] == 0
    assert client.get(url, {"splits": "3", "min_pixels": "10"}).status_code == 400
    assert client.get(url, {"splits": "nan", "min_pixels": "10"}).status_code == 400
    assert first(discs).shares == row.shares


def test_the_page_has_the_table_and_every_file(client_of, alice, bob, discs) -> None:
    url = f"{first(discs).get_absolute_url()}count/"
    page = Page(client_of(alice).get(url))
    assert page.has("status", "4 objects")
    for kind in ("objects.tif", "rois.zip", "objects.geojson", "seg.npy", "coco.json"):
        assert any(kind in one.address for one in page.every("link"))
    assert not page.has("button", "Use for all images")
    assert Page(client_of(bob).get(url)).has("button", "Use for all images")


def test_measuring_again_changes_pages_tables_and_files_alike(client_of, bob, alice, discs) -> None:
    url = f"/predictions/{discs.pk}/objects/measure/"
    given = {"splits": "-1", "min_pixels": "10", "drop_border": "on"}
    assert client_of(alice).post(url, given).status_code == 403
    client = client_of(bob)
    assert client.post(url, given | {"splits": "9"}).status_code == 302
    assert not Job.objects.filter(kind="segmentation.objects").exists()
    assert client.post(url, given).status_code == 302
    job = Job.objects.get(kind="segmentation.objects")
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.sentence == "2 images measured."
    row = first(discs)
    assert row.shares["1"]["count"] == 2
    assert tifffile.imread(io.BytesIO(get(client, discs, "objects.tif"))).max() == 2
    assert numbers_of(client.get(f"{row.get_absolute_url()}split/"))[0]["count"] == 2
    report = Page(client.get(f"/predictions/{discs.pk}/objects/"))
    assert report.says("those at the border of an image")
    assert AuditLine.objects.filter(verb="measured").count() == 1


def test_a_prediction_without_any_object(client_of, alice, discs) -> None:
    for row in discs.images.all():
        row.batch = discs
        store.get(row.mask_path).write_bytes(mask_png(np.zeros((64, 96), dtype=bool)))
        objects_write(row, ObjectOptions())
    client, row = client_of(alice), first(discs)
    page = Page(client.get(f"{row.get_absolute_url()}count/"))
    assert page.section("Table").says("No object counts")
    assert tifffile.imread(io.BytesIO(get(client, discs, "objects.tif"))).max() == 0
    for kind in ("rois.zip", "objects.geojson", "seg.npy", "coco.json", "objects.csv"):
        get(client, discs, kind)


def test_tables_of_earlier_versions_keep_their_counts(client_of, alice, discs) -> None:
    """They have no map of numbers: pixels that touch were one object."""
    discs.object_options = {}
    discs.save()
    for row in discs.images.all():
        with np.load(store.get(row.objects_path)) as kept:
            old = {name: kept[name][:3] for name in list(kept.files)[:8]}
        np.savez(store.get(row.objects_path), **old)
    client, row = client_of(alice), first(discs)
    assert tifffile.imread(io.BytesIO(get(client, discs, "objects.tif"))).max() == 3
    get(client, discs, "objects.geojson")
    assert client.get(f"{row.get_absolute_url()}count/").status_code == 200


def test_numbered_objects_of_masks_give_the_typical_area(bob, image_set) -> None:
    """Touching pieces of a plain mask are no measure of size."""
    assert typical_area([image_set]) is None
    numbers = np.zeros((24, 36), dtype=np.uint16)
    for k in range(6):
        numbers[4 * k : 4 * k + 3, 5:10] = 300 + k
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, numbers)
    image_file_add(
        user=bob, image_set=image_set, name="leaf_2.mask.tif", chunks=[buffer.getvalue()]
    )
    pairing_refresh(image_set=image_set)
    assert typical_area([image_set]) == 15.0
    batch = make_batch(bob, make_segmenter(bob), image_set)
    assert batch.object_options["typical_area"] == 15.0


def test_splits_of_a_large_image_are_tried_on_a_smaller_copy(
    client_of, alice, discs, monkeypatch
) -> None:
    monkeypatch.setattr("webapp.segmentation.views.objects.MAX_LIVE_PIXELS", 3000)
    url = f"{first(discs).get_absolute_url()}split/"
    header, numbers = numbers_of(client_of(alice).get(url, {"splits": "0", "min_pixels": "10"}))
    assert header["step"] == 2
    assert header["count"] == 4
    assert numbers.shape == (64, 96)
    assert numbers[30, 30] != numbers[30, 49]
    assert numbers[50, 80] != 0
    joined, _ = numbers_of(client_of(alice).get(url, {"splits": "-1", "min_pixels": "10"}))
    assert joined["count"] == 3


def test_background_is_known_by_its_name_in_label_maps() -> None:
    def classes(*names: str) -> list[dict]:
        return [{"value": k, "name": name} for k, name in enumerate(names, start=1)]

    assert background_of(classes("Nucleus", "Body", "Background", "Debris", "Dust")) == (3,)
    assert background_of(classes("Cell", "Medium")) == ()
    assert background_of(classes("Other")) == ()


def classes_named(*names: str) -> list[dict]:
    return [{"value": k, "name": name} for k, name in enumerate(names, start=1)]


def test_edges_are_known_by_their_name_where_a_class_has_objects() -> None:
    assert edge_of(classes_named("Background", "Cell", "Edge")) == 3
    assert edge_of(classes_named("boundary", "Cell")) == 1
    assert edge_of(classes_named("Background", "Border")) is None  # nothing would be left
    assert edge_of(classes_named("Edge", "Border", "Cell")) is None
    assert edge_of(classes_named("Cell", "Cell edge")) is None
    assert edge_of([]) is None


def test_a_class_of_edges_separates_objects_and_belongs_to_them() -> None:
    """Two halves of a disc, with a line of edge between and an edge around them."""
    rows, columns = np.mgrid[:40, :40]
    distance = np.hypot(rows - 20, columns - 20)
    labels = np.where(distance < 15, 1, 0)
    labels[(distance < 15) & ((distance > 13) | (abs(columns - 20) < 2))] = 2
    planes = np.stack([labels == k for k in range(3)], axis=2) * 0.8 + 0.1
    classes = classes_named("Background", "Cell", "Edge")
    values = (labels + 1).astype(np.uint8)
    options = ObjectOptions(background=(1,), edge=3, min_pixels=1)
    numbers, owners = numbered(values, planes, classes, options)
    assert owners == {1: 2, 2: 2}
    assert np.array_equal(numbers > 0, distance < 15)
    assert numbers[20, 10] != numbers[20, 30]
    without = ObjectOptions(background=(1, 3), min_pixels=1)
    assert (numbered(values, planes, classes, without)[0] > 0).sum() == (labels == 1).sum()


def test_the_form_and_stored_choices_name_the_class_of_edges() -> None:
    classes = classes_named("Background", "Cell", "Edge")
    sent = {"splits": "0", "min_pixels": "5", "background": ["1"], "edge": "3"}
    form = ObjectsForm(sent, classes=classes)
    assert form.is_valid()
    options = form.options(None)
    assert (options.edge, options.no_objects) == (3, (1, 3))
    assert options_of(options.as_json(), classes) == options
    assert not ObjectsForm(sent | {"edge": "9"}, classes=classes).is_valid()
    assert ObjectsForm(sent | {"edge": ""}, classes=classes).is_valid()
    earlier = {key: value for key, value in options.as_json().items() if key != "edge"}
    assert options_of(earlier, classes).edge is None
