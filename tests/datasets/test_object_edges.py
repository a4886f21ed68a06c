"""Edges of numbered objects, and the numbers that masks hold."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import binary_erosion

from engine.core.errors import InvalidProblemError
from engine.datasets.masks import understand_mask
from engine.datasets.object_edges import edges_of
from tests.datasets.pictures import encode


def eroded(numbers: np.ndarray) -> np.ndarray:
    """The same labels, object by object: its edge is what an erosion takes away."""
    labels = np.zeros(numbers.shape, dtype=np.uint8)
    for number in np.unique(numbers[numbers != 0]):
        own = numbers == number
        kept = binary_erosion(np.pad(own, 1, mode="edge"), np.ones((3, 3)))[1:-1, 1:-1]
        labels[own] = 2
        labels[kept] = 1
    return labels


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (12, 17), (30, 5)])
def test_an_edge_is_what_an_erosion_takes(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(shape))
    for _ in range(20):
        coarse = rng.integers(0, 4, (shape[0] // 3 + 1, shape[1] // 3 + 1))
        numbers = np.kron(coarse, np.ones((3, 3), dtype=np.int64))[: shape[0], : shape[1]]
        assert np.array_equal(edges_of(numbers), eroded(numbers))


def test_what_is_no_picture_of_numbers_is_refused() -> None:
    for bad in (np.zeros(3, dtype=int), np.zeros((3, 3)), np.zeros((2, 2, 3), dtype=int)):
        with pytest.raises(InvalidProblemError, match="numbers: expected"):
            edges_of(bad)


def test_masks_keep_the_numbers_of_their_objects() -> None:
    numbers = np.kron(np.arange(12).reshape(3, 4), np.ones((5, 5), dtype=np.uint8)).astype(np.uint8)
    reading = understand_mask(encode(Image.fromarray(numbers)), name="a_instances.png")
    assert reading.n_numbered == 11
    assert np.array_equal(reading.numbers, numbers)
    two = np.where(np.isin(numbers, (1, 11)), 255, 0).astype(np.uint8)
    plain = understand_mask(encode(Image.fromarray(two)), name="a.png")
    assert plain.n_numbered == -1
    assert sorted(np.unique(plain.numbers)) == [0, 1, 2]
