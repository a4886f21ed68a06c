"""Objects as files of other programs, read back with the programs' own libraries."""

import io
import json
import zipfile

import numpy as np
import pytest
import roifile
import tifffile
from skimage.draw import polygon2mask

from engine.core.errors import InvalidProblemError
from engine.datasets.object_files import (
    ObjectOutline,
    cellpose_seg,
    coco_shape,
    geojson,
    imagej_rois,
    label_tiff,
    object_windows,
    outline_of,
)


def numbered() -> np.ndarray:
    """Objects at the border, touching, joined by a corner, of one pixel, and with ragged sides."""
    numbers = np.zeros((40, 60), dtype=np.int32)
    numbers[0:6, 0:8], numbers[3:9, 8:20] = 1, 2
    numbers[30:35, 50:60], numbers[35:40, 45:50] = 3, 3
    numbers[20, 20] = 4
    rng = np.random.default_rng(1)
    numbers[12:19, 30:44] = 5 * (rng.random((7, 14)) < 0.8)
    numbers[15, 30:44] = 5
    return numbers


def filled(ring: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Pixels whose middle lies inside a ring of x and y between pixels."""
    return polygon2mask(shape, np.asarray(ring)[:, ::-1] - 0.5)


def test_label_tiff_has_16_bits_until_it_needs_32() -> None:
    numbers = numbered()
    read = tifffile.imread(io.BytesIO(label_tiff(numbers)))
    assert read.dtype == np.uint16
    assert np.array_equal(read, numbers)
    many = np.arange(300 * 300).reshape(300, 300)
    read = tifffile.imread(io.BytesIO(label_tiff(many)))
    assert read.dtype == np.uint32
    assert np.array_equal(read, many)


def test_imagej_reads_the_same_pixels() -> None:
    numbers = numbered()
    archive = zipfile.ZipFile(io.BytesIO(imagej_rois(numbers)))
    assert archive.namelist() == [f"{k:05d}.roi" for k in range(1, 6)]
    for name in archive.namelist()[:4]:
        number = int(name[:5])
        roi = roifile.ImagejRoi.frombytes(archive.read(name))
        own = numbers == number
        rows, columns = np.nonzero(own)
        assert (roi.left, roi.top) == (columns.min(), rows.min())
        assert (roi.right, roi.bottom) == (columns.max() + 1, rows.max() + 1)
        assert np.array_equal(filled(roi.coordinates(), numbers.shape), own)
    with pytest.raises(InvalidProblemError, match="ImageJ"):
        imagej_rois(np.zeros((2, 40_000), dtype=np.int32))


def test_geojson_encloses_the_same_pixels() -> None:
    numbers = numbered()
    whole = json.loads(geojson(numbers, {1: ("Cell", "#ff0080")}))
    assert [one["properties"]["name"] for one in whole["features"]] == list("12345")
    first = whole["features"][0]["properties"]
    assert first["classification"] == {"name": "Cell", "color": [255, 0, 128]}
    for one in whole["features"][:4]:
        (ring,) = one["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        own = numbers == int(one["properties"]["name"])
        assert np.array_equal(filled(np.array(ring), numbers.shape), own)


def test_cellpose_reads_its_dictionary() -> None:
    numbers = numbered()
    # The test reads its own file; the product never unpickles.
    read = np.load(io.BytesIO(cellpose_seg(numbers, "a.tif")), allow_pickle=True).item()
    assert np.array_equal(read["masks"], numbers)
    assert read["filename"] == "a.tif"
    assert len(read["ismanual"]) == 5
    assert (read["outlines"] > 0).sum() < (numbers > 0).sum()


def test_coco_runs_give_back_every_pixel() -> None:
    numbers = numbered()
    numbers[:, 57:60] = 6  # whole columns, which one run covers together
    for one in object_windows(numbers):
        found = coco_shape(one, numbers.shape)
        counts = np.array(found["segmentation"]["counts"])
        read = np.repeat(np.arange(len(counts)) % 2, counts)
        read = np.append(read, np.zeros(numbers.size - len(read), dtype=int))
        own = numbers == one.number
        assert np.array_equal(read.reshape(60, 40).T == 1, own)
        assert found["area"] == own.sum()
        left, top, width, height = found["bbox"]
        assert own[top : top + height, left : left + width].sum() == own.sum()


def test_an_outline_of_pixels_joined_by_a_corner_goes_round_both() -> None:
    assert len(outline_of(np.eye(2, dtype=bool))) == 8
    assert len(outline_of(np.eye(2, dtype=bool)[::-1])) == 8
    assert isinstance(next(object_windows(numbered())), ObjectOutline)
    assert list(object_windows(np.zeros((3, 3), dtype=int))) == []
