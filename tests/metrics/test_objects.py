"""Objects measured on pixels of any width and height."""

import numpy as np
import pytest
from skimage.draw import disk, ellipse
from skimage.measure import label, perimeter, regionprops

from engine.metrics import measure_objects


def blobs() -> np.ndarray:
    rng = np.random.default_rng(3)
    mask = np.zeros((120, 150), dtype=bool)
    for _ in range(14):
        mask[disk(rng.integers(5, 115, 2), rng.integers(1, 12), shape=mask.shape)] = True
    mask[0, :20] = True
    mask[100, 100] = True
    mask |= rng.random(mask.shape) < 0.02
    return mask


def test_perimeters_of_square_pixels_are_those_of_scikit_image() -> None:
    mask = blobs()
    table = measure_objects(mask, np.zeros(mask.shape), pixel_size=0.25)
    joined = label(mask, connectivity=2)
    found = sorted(regionprops(joined), key=lambda one: (-one.num_pixels, one.label))
    assert len(table) > 30
    assert np.allclose(table.perimeter, [0.25 * one.perimeter for one in found])
    assert np.allclose(table.area, [0.0625 * one.num_pixels for one in found])
    whole = [perimeter(joined == one.label) for one in found]
    assert np.allclose(table.perimeter, 0.25 * np.array(whole))


def test_pixels_that_are_no_squares_have_two_sides() -> None:
    """Only the width of a pixel was looked at: areas were four times too small."""
    mask = np.zeros((40, 60), dtype=bool)
    mask[10:20, 10:40] = True
    table = measure_objects(mask, np.zeros(mask.shape), pixel_size=(0.5, 2.0))
    assert table.area.tolist() == [300 * 0.5 * 2.0]
    assert table.perimeter[0] == pytest.approx(2 * (29 * 0.5 + 9 * 2.0))


def test_a_circle_is_a_circle_whatever_the_pixels() -> None:
    """A disc sampled by pixels twice as high as wide has the border of the same disc."""
    square = np.zeros((200, 200), dtype=bool)
    square[disk((100, 100), 80)] = True
    flat = np.zeros((100, 200), dtype=bool)
    flat[ellipse(50, 100, 40, 80)] = True
    first = measure_objects(square, np.zeros(square.shape)).perimeter[0]
    second = measure_objects(flat, np.zeros(flat.shape), pixel_size=(1.0, 2.0)).perimeter[0]
    assert second == pytest.approx(first, rel=0.06)


def test_one_pixel_that_is_no_number_spoils_no_mean() -> None:
    mask = np.zeros((9, 12), dtype=bool)
    mask[1:4, 1:4] = mask[6:8, 6:8] = True
    values = np.full(mask.shape, 5.0)
    values[2, 2] = np.inf
    values[6:8, 6:8] = np.nan
    table = measure_objects(mask, values)
    assert table.mean[0] == 5.0
    assert np.isnan(table.mean[1])
    assert table.rows()[1]["mean"] is None
