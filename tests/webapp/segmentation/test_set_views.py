"""How a set shows its deep pictures: chosen with the first, kept, changed by staff."""

import io

import numpy as np
import pytest
import tifffile
from PIL import Image

from tests.webapp.roles import Page
from webapp.segmentation.models import ImageSet
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.uploads import image_file_add
from webapp.segmentation.services.views import view_for

RAMP = np.linspace(200, 3200, 2400).reshape(40, 60).astype(np.uint16)


def tiff(values: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values, **options)
    return buffer.getvalue()


@pytest.fixture
def plate(bob) -> ImageSet:
    """Two 12-bit pictures, the second a quarter as bright."""
    image_set = image_set_create(user=bob, name="Plate", foreground="cell")
    options = {"resolution": (4, 4), "imagej": True, "metadata": {"unit": "um"}}
    for name, values in (("a.tif", RAMP), ("b.tif", RAMP // 4)):
        content = tiff(values, **options)
        image_file_add(user=bob, image_set=image_set, name=name, chunks=[content])
    image_set.refresh_from_db()
    return image_set


def grey(client, image_set: ImageSet, name: str) -> float:
    file = image_set.files.get(name=name)
    answer = client.get(f"/image-sets/{image_set.pk}/files/{file.pk}/thumbnail/")
    content = b"".join(answer.streaming_content)
    return float(np.asarray(Image.open(io.BytesIO(content))).mean())


def test_the_first_deep_picture_decides_for_all(client_of, bob, plate) -> None:
    channel = plate.view["channels"][0]
    assert channel["low"] == pytest.approx(203, abs=3)
    assert channel["high"] == pytest.approx(3197, abs=3)
    assert plate.pixel_size is None
    client = client_of(bob)
    assert grey(client, plate, "a.tif") > 100 > 40 > grey(client, plate, "b.tif")
    page = Page(client.get(plate.get_absolute_url()))
    assert page.says("percentile 0.1 to 99.9")
    assert page.one("region", "Files").says("12 bit")
    assert page.text.count("0.25 µm") == 2


def test_staff_change_it_and_small_pictures_follow(client_of, bob, plate) -> None:
    client = client_of(bob)
    before = grey(client, plate, "b.tif")
    answer = client.post(
        f"/image-sets/{plate.pk}/display/",
        {"low": "0", "high": "40", "channel_0": "grey", "pixel_size": "0.5"},
    )
    assert answer.status_code == 302
    plate.refresh_from_db()
    assert plate.view["percentiles"] == [0.0, 40.0]
    assert plate.pixel_size == 0.5
    assert grey(client, plate, "b.tif") > 2 * before


@pytest.mark.parametrize(
    "fields", [{"low": "60", "high": "40"}, {"low": "0", "high": "140"}, {"channel_0": "beige"}]
)
def test_nonsense_changes_nothing(client_of, bob, plate, fields) -> None:
    form = {"low": "0", "high": "99", "channel_0": "grey", **fields}
    answer = client_of(bob).post(f"/image-sets/{plate.pk}/display/", form)
    assert answer.status_code == 422
    assert ImageSet.objects.get(pk=plate.pk).view == plate.view


def test_sets_from_before_show_each_picture_by_its_own_range(bob, plate) -> None:
    plate.files.update(facts={})
    ImageSet.objects.filter(pk=plate.pk).update(view={})
    plate.refresh_from_db()
    assert view_for(plate, None, is_mask=True) is None

    class Stack:
        planes = RAMP[None, None]

    assert view_for(plate, Stack, is_mask=False) is None
