"""Touching objects separated, matched with known ones, and measured as scikit-image does."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage.draw import ellipse
from skimage.measure import label, perimeter, regionprops

from engine.core.errors import InvalidProblemError
from engine.datasets.object_edges import edges_of
from engine.metrics import match_objects, measure_objects, object_planes, separate_objects
from engine.metrics.object_scores import ObjectMatches


def crowd(seed: int, count: int = 60, side: int = 240) -> np.ndarray:
    """Numbered ellipses. Many touch, and a later one covers an earlier one."""
    rng = np.random.default_rng(seed)
    known = np.zeros((side, side), dtype=np.int32)
    for number in range(1, count + 1):
        centre, radii = rng.uniform(0, side, 2), rng.uniform(9, 14, 2)
        own = ellipse(*centre, *radii, shape=known.shape, rotation=rng.uniform(0, np.pi))
        if (known[own] > 0).mean() < 0.2:
            known[own] = number
    return known


def scores(splits: float) -> float:
    """Object F1 over four crowds."""
    found = []
    for seed in range(4):
        known = crowd(seed)
        probability = gaussian_filter((known > 0).astype(float), 1.0)
        numbers = separate_objects(known > 0, probability, splits=splits)
        found.append(match_objects(numbers, known))
    return (found[0] + found[1] + found[2] + found[3]).f1


def test_touching_objects_are_told_apart() -> None:
    assert scores(0.0) > scores(-1.0) + 0.2
    assert scores(0.0) > 0.85


def test_the_slider_only_adds_splits() -> None:
    rng = np.random.default_rng(0)
    mask = (crowd(0, count=120) > 0) & (gaussian_filter(rng.random((240, 240)), 1.0) > 0.4)
    counts = [int(separate_objects(mask, splits=k).max()) for k in (-1, -0.6, 0, 0.6, 1)]
    assert counts == sorted(counts)
    assert counts[0] == label(mask, connectivity=2).max()
    assert counts[0] < counts[2] < counts[4]


def test_every_pixel_of_the_mask_keeps_a_number() -> None:
    rng = np.random.default_rng(0)
    mask = rng.random((80, 90)) < 0.4
    numbers = separate_objects(mask, rng.random(mask.shape))
    assert np.array_equal(numbers > 0, mask)
    assert set(np.unique(numbers)) == set(range(int(numbers.max()) + 1))


@pytest.mark.parametrize("mask", [np.zeros((9, 9), bool), np.ones((9, 12), bool), np.eye(5) > 0])
def test_nothing_and_one_object(mask: np.ndarray) -> None:
    assert separate_objects(mask, splits=-1.0).max() == bool(mask.any())
    assert separate_objects(mask).max() >= bool(mask.any())


def test_a_larger_typical_object_means_fewer_splits() -> None:
    mask = crowd(0, count=120) > 0
    small, large = (separate_objects(mask, typical_area=area).max() for area in (60.0, 6000.0))
    assert small > large


def test_bad_numbers_are_refused() -> None:
    mask = np.ones((4, 4), dtype=bool)
    with pytest.raises(InvalidProblemError, match="splits"):
        separate_objects(mask, splits=1.5)
    with pytest.raises(InvalidProblemError, match="typical_area"):
        separate_objects(mask, typical_area=0.0)
    with pytest.raises(InvalidProblemError, match="probability"):
        separate_objects(mask, np.zeros((4, 5)))
    with pytest.raises(InvalidProblemError, match="known"):
        match_objects(np.zeros((4, 4), int), np.zeros((4, 5), int))


def test_touching_objects_are_measured_as_if_alone() -> None:
    """The border between two touching objects was inside both, so it had no length."""
    known = crowd(3)
    picture = np.random.default_rng(0).integers(0, 255, (*known.shape, 3)).astype(np.uint8)
    table = measure_objects(known, picture, with_shape=True)
    assert len(table) > 30
    for one in regionprops(table.labels, picture):
        k = one.label - 1
        assert table.area[k] == one.area
        assert table.centre[k] == pytest.approx(one.centroid)
        assert table.perimeter[k] == pytest.approx(perimeter(table.labels == one.label))
        assert table.shape[k].tolist() == [
            one.equivalent_diameter_area,
            one.eccentricity,
            one.solidity,
            one.feret_diameter_max,
        ]
        assert table.channels[k] == pytest.approx(one.intensity_mean)
    assert table.mean == pytest.approx(table.channels.mean(axis=1))


def test_shapes_know_pixels_that_are_not_square() -> None:
    known = crowd(4)
    table = measure_objects(known, known, pixel_size=(0.5, 2.0), with_shape=True)
    for one in regionprops(table.labels, spacing=(2.0, 0.5)):
        expected = [one.equivalent_diameter_area, one.eccentricity, one.solidity]
        assert table.shape[one.label - 1, :3].tolist() == expected
        assert table.shape[one.label - 1, 3] == pytest.approx(one.feret_diameter_max, rel=1e-12)


def test_objects_at_the_border_and_outside_the_sizes_are_left_out() -> None:
    known = np.zeros((20, 30), dtype=np.int64)
    known[0:4, 5:9], known[8:10, 8:10], known[12:19, 10:29] = 7, 3, 9
    numbers = measure_objects(known, known)
    assert numbers.area.tolist() == [133.0, 16.0, 4.0]
    assert numbers.labels[0, 5] == 2
    inner = measure_objects(known, known, drop_border=True)
    assert inner.area.tolist() == [133.0, 4.0]
    assert inner.labels[0, 5] == 0
    assert measure_objects(known, known, min_pixels=5, max_pixels=100).area.tolist() == [16.0]
    assert len(measure_objects(known * 0, known, with_shape=True)) == 0


def test_probabilities_that_are_no_numbers_are_refused() -> None:
    """They gave one object without a word."""
    mask = crowd(0) > 0
    probability = mask.astype(float)
    probability[~mask] = np.nan
    assert separate_objects(mask, probability).max() > 1
    probability[np.nonzero(mask)[0][0], np.nonzero(mask)[1][0]] = np.nan
    with pytest.raises(InvalidProblemError, match="found 1 that"):
        separate_objects(mask, probability)


def tissue(seed: int, count: int = 40, side: int = 160) -> np.ndarray:
    """Numbered cells that fill a disc without gaps: the nearest of some places."""
    places = np.random.default_rng(seed).uniform(0, side, (count, 2))
    rows, columns = np.mgrid[:side, :side]
    apart = (rows[..., None] - places[:, 0]) ** 2 + (columns[..., None] - places[:, 1]) ** 2
    inside = (rows - side / 2) ** 2 + (columns - side / 2) ** 2 < (0.45 * side) ** 2
    return np.where(inside, apart.argmin(axis=2) + 1, 0)


def known_planes(known: np.ndarray) -> np.ndarray:
    """Probabilities as of a model that learned edges well: background, inside, edge."""
    labels = edges_of(known)
    sharp = np.stack([labels == k for k in range(3)], axis=2).astype(float)
    blurred = np.stack([gaussian_filter(sharp[:, :, k], 0.7) for k in range(3)], axis=2)
    return blurred / blurred.sum(axis=2, keepdims=True)


def test_learned_edges_separate_what_shape_alone_does_not() -> None:
    plain = learned = ObjectMatches(0, 0, 0)
    for seed in range(3):
        known = tissue(seed)
        mask, probability, edge = object_planes(known_planes(known), 1, 2, [0])
        plain += match_objects(separate_objects(mask, probability), known)
        learned += match_objects(separate_objects(mask, probability, edge=edge), known)
    assert learned.f1 > plain.f1 + 0.2
    assert learned.f1 > 0.7


def test_edges_belong_to_the_likeliest_class_beside_them() -> None:
    planes = np.zeros((1, 4, 4))
    planes[0] = [[0.1, 0.5, 0.1, 0.3], [0.1, 0.1, 0.3, 0.5], [0.6, 0.2, 0.1, 0.1], [0, 0, 0, 1]]
    first, one, _ = object_planes(planes, 1, 3, [0])
    second, two, edge = object_planes(planes, 2, 3, [0])
    assert first.tolist() == [[True, False, False, True]]  # a tie goes to the first class
    assert second.tolist() == [[False, True, False, False]]
    assert one.round(3).tolist() == [[0.8, 0.1, 0.3, 1.0]]
    assert two.round(3).tolist() == [[0.1, 0.8, 0.1, 0.0]]
    assert edge.tolist() == [[0.0, 0.5, 0.0, 0.0]]


@pytest.mark.parametrize("edge", [np.zeros((3, 4)), np.full((4, 4), np.nan)])
def test_planes_that_do_not_fit_are_refused(edge: np.ndarray) -> None:
    with pytest.raises(InvalidProblemError, match="edge: expected"):
        separate_objects(np.ones((4, 4), dtype=bool), np.ones((4, 4)), edge=edge)
