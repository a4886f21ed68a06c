"""The size of a pixel belongs to a picture: its file states it, or a person does for the set."""

import csv
import io
import json

import numpy as np
import pytest
import tifffile

from tests.webapp.factories.images import make_batch, make_segmenter, upload
from tests.webapp.roles import Page
from webapp.segmentation.models import ImageSet, PredictedImage
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.uploads import upload_take

SIZES = {"coarse.tif": (0.5, 0.5), "fine.tif": (0.1, 0.1), "flat.tif": (0.5, 2.0)}


def picture(size: tuple[float, float] | None) -> bytes:
    numbers = np.zeros((24, 36), np.uint8)
    numbers[6:12, 9:18] = 200
    stream = io.BytesIO()
    options: dict = {"imagej": True, "metadata": {"unit": "um"}} if size else {}
    if size:
        options["resolution"] = (1 / size[0], 1 / size[1])
    tifffile.imwrite(stream, numbers, **options)
    return stream.getvalue()


@pytest.fixture
def plate(bob) -> ImageSet:
    """Three pictures of one scene that state three sizes of a pixel."""
    image_set = image_set_create(user=bob, name="Plate", foreground="cell")
    for name, size in SIZES.items():
        list(upload_take(user=bob, image_set=image_set, uploaded=upload(name, picture(size))))
    return image_set


@pytest.fixture
def measured(bob, plate):
    """All predicted; the model is noise, so one object of known pixels is put in its place."""
    batch = make_batch(bob, make_segmenter(bob), plate)
    from webapp.files import store
    from webapp.segmentation.measuring import classes_of_row, measure_row

    mask = np.zeros((24, 36), np.uint8)
    mask[6:12, 9:18] = 1
    for row in batch.images.select_related("batch"):
        table, summary, _ = measure_row(mask, mask.astype(float), mask * 7.0, classes_of_row(row))
        store.get(row.objects_path).write_bytes(table)
        PredictedImage.objects.filter(pk=row.pk).update(shares=summary)
    return batch


def table(client, batch) -> dict[str, dict[str, str]]:
    content = client.get(f"/predictions/{batch.pk}/objects.csv")
    rows = csv.DictReader(io.StringIO(content.content.decode("utf-8-sig")))
    return {row["image"]: row for row in rows}


def test_every_area_is_by_its_own_picture_s_pixels(client_of, alice, measured) -> None:
    """The first picture's size served the whole set: areas were 25 times too large."""
    rows = table(client_of(alice), measured)
    for name, (x, y) in SIZES.items():
        assert float(rows[name]["area_um2"]) == pytest.approx(54 * x * y)
        assert float(rows[name]["perimeter_um"]) == pytest.approx(16 * x + 10 * y)
        assert float(rows[name]["pixel_width_um"]) == x
        assert float(rows[name]["pixel_height_um"]) == y
    page = Page(client_of(alice).get(f"/predictions/{measured.pk}/objects/"))
    assert page.says("Pixels are 0.1 µm to 0.5 × 2 µm")
    assert page.one("row", "coarse.tif").says("13.5")


def test_one_picture_without_a_size_leaves_all_in_pixels_and_says_so(
    client_of, bob, measured
) -> None:
    row = measured.images.get(name="fine.tif")
    PredictedImage.objects.filter(pk=row.pk).update(stated_size=[])
    client = client_of(bob)
    rows = table(client, measured)
    assert {float(one["area_px2"]) for one in rows.values()} == {54.0}
    assert rows["fine.tif"]["pixel_width_um"] == ""
    page = Page(client.get(f"/predictions/{measured.pk}/objects/"))
    assert page.says("1 image of 3 states no size of a pixel")


def test_a_person_s_size_is_for_pictures_without_one_or_for_all(client_of, bob, measured) -> None:
    client, plate = client_of(bob), measured.image_set
    row = measured.images.get(name="fine.tif")
    PredictedImage.objects.filter(pk=row.pk).update(stated_size=[])
    answer = client.post(f"/image-sets/{plate.pk}/display/", {"pixel_size": "3"})
    assert answer.status_code == 302
    rows = table(client, measured)
    assert float(rows["fine.tif"]["area_um2"]) == pytest.approx(54 * 9)
    assert float(rows["coarse.tif"]["area_um2"]) == pytest.approx(54 / 4)
    client.post(f"/image-sets/{plate.pk}/display/", {"pixel_size": "3", "pixel_size_for_all": "on"})
    rows = table(client, measured)
    assert {float(one["area_um2"]) for one in rows.values()} == {54 * 9.0}
    page = Page(client.get(plate.get_absolute_url()))
    assert page.says("A pixel of every picture is 3 µm.")


def test_the_size_outlives_the_picture(client_of, bob, measured) -> None:
    measured.image_set.files.all().delete()
    rows = table(client_of(bob), measured)
    assert float(rows["flat.tif"]["area_um2"]) == pytest.approx(54.0)


def test_objects_for_other_programs_say_what_they_are(client_of, alice, measured) -> None:
    """COCO's own tools read "info" first, and it was not there."""
    content = client_of(alice).get(f"/predictions/{measured.pk}/objects.coco.json").content
    found = json.loads(content)
    assert found["info"]["description"] == f"Objects of {measured.name}"
    assert found["licenses"] == []
    sizes = {one["file_name"]: tuple(one["pixel_size_um"]) for one in found["images"]}
    assert sizes == SIZES


def test_pages_show_each_picture_s_size(client_of, alice, plate) -> None:
    page = Page(client_of(alice).get(plate.get_absolute_url()))
    for size in ("pixel 0.5 µm", "pixel 0.1 µm", "pixel 0.5 × 2 µm"):
        assert page.has("listitem", size)
