"""The filter bank against SciPy's Gaussians and NumPy's eigenvalues."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.ndimage import gaussian_filter

from engine.crf.context import N_CONTEXT, N_LOCAL, N_PLACED, GuessCount, compute_context
from engine.crf.filter_bank import REACH, SCALES, FilterBank, blur_into


def picture(shape: tuple[int, int] = (37, 52), seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(*shape, 3))
    smooth = gaussian_filter(noise, (2, 2, 0))
    return np.uint8(np.clip(128 + 300 * smooth, 0, 255))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("shape", [(37, 52), (8, 8), (1, 5)])
def test_a_blur_is_the_gaussian_of_scipy_with_mirrored_ends(
    scale: float, shape: tuple[int, int]
) -> None:
    plane = np.random.default_rng(1).random(shape).astype(np.float32)
    out = np.empty_like(plane)
    blur_into(plane, scale, out)
    radius = int(np.ceil(REACH * scale))
    expected = gaussian_filter(plane.astype(float), scale, mode="reflect", radius=radius)
    assert_allclose(out, expected, atol=2e-6)


def test_every_feature_has_a_name_and_a_finite_value() -> None:
    for bank in (FilterBank(), FilterBank(position=False)):
        planes = bank.compute(picture())
        assert planes.shape == (len(bank.names), 37, 52)
        assert planes.dtype == np.float32
        assert np.isfinite(planes).all()
    assert len(set(FilterBank().names)) == FilterBank().n_features
    assert FilterBank().n_features == FilterBank(position=False).n_features + 3


def test_eigenvalues_are_those_of_the_averaged_products() -> None:
    bank, colours = FilterBank(), picture()
    planes = dict(zip(bank.names, bank.compute(colours), strict=True))
    from skimage.color import rgb2lab

    scale = 2.8
    smooth = gaussian_filter(rgb2lab(colours)[..., 0] / 100, scale / 2, radius=int(np.ceil(4.2)))
    padded = np.pad(smooth, 1, mode="edge")
    y = scale * (padded[2:, 1:-1] - padded[:-2, 1:-1]) / 2
    x = scale * (padded[1:-1, 2:] - padded[1:-1, :-2]) / 2
    yy, xy, xx = (gaussian_filter(p, scale, radius=9) for p in (y * y, x * y, x * x))
    values = np.linalg.eigvalsh(np.moveaxis(np.array([[yy, xy], [xy, xx]]), (0, 1), (2, 3)))
    found = planes[f"structure tensor, larger at {scale}"]
    assert_allclose(found[1:-1, 1:-1] ** 2, values[1:-1, 1:-1, 1], rtol=2e-3, atol=1e-6)


def test_a_part_with_its_surroundings_has_the_features_of_the_whole() -> None:
    bank, colours = FilterBank(position=False), picture((260, 40))
    whole, part = bank.compute(colours), bank.compute(colours[:200])
    assert_allclose(part[:, :90], whole[:, :90], atol=2e-5)


def test_context_says_where_a_pixel_lies_within_the_guess() -> None:
    log_odds = np.full((40, 60), -5.0, np.float32)
    log_odds[10:20, 30:50] = 5.0
    planes = compute_context(log_odds, FilterBank().compute(picture((40, 60))))
    assert planes.shape == (N_CONTEXT, 40, 60)
    assert np.isfinite(planes).all()
    assert planes[0, 15, 40] == 5.0
    down, across, share = planes[N_LOCAL:N_PLACED]
    assert abs(down[15, 40]) < 0.6
    assert abs(across[15, 40]) < 0.6
    assert down[0, 40] < -1
    assert share[0, 0] == pytest.approx(200 / 2400, rel=0.2)


def test_colours_of_a_guess_find_what_it_left_out() -> None:
    """A red thing half of which was guessed: all red pixels stand out, and no others."""
    colours = np.full((40, 60, 3), (30, 90, 30), np.uint8)
    colours[10:30, 10:50] = (200, 40, 40)
    log_odds = np.full((40, 60), -4.0, np.float32)
    log_odds[10:30, 10:30] = 4.0
    exact, coarse, *averaged = compute_context(log_odds, FilterBank().compute(colours))[N_PLACED:]
    assert exact[20, 45] == exact[20, 15] > 1.0  # as much where it was guessed as where it was not
    assert exact[5, 5] < -1.0
    assert coarse[20, 45] > 1.0 > -1.0 > coarse[3, 55]
    assert all(plane[20, 40] > 0.9 > -0.9 > plane[3, 3] for plane in averaged)


def test_a_guess_without_marks_or_without_differences_tells_nothing_of_colours() -> None:
    filters = FilterBank().compute(picture((40, 60)))
    for value in (-1e9, -3.0, 1e9):
        planes = compute_context(np.full((40, 60), value, np.float32), filters)
        assert_allclose(planes[N_PLACED:], 0.0, atol=1e-3)


def test_tiles_of_a_guess_tell_what_the_whole_tells() -> None:
    filters = FilterBank().compute(picture((300, 70)))
    log_odds = np.random.default_rng(3).normal(0, 3, (300, 70)).astype(np.float32)
    count = GuessCount((300, 70))
    for top in (0, 100, 200):
        rows = slice(top, top + 100)
        count.add(top, 0, log_odds[rows], filters[:, rows])
    part = compute_context(log_odds[100:], filters[:, 100:], whole=count.whole().seen_from(100, 0))
    whole = compute_context(log_odds, filters)
    assert_allclose(part[:, 100:], whole[:, 200:], atol=2e-3)
    assert_allclose(part[N_LOCAL:-2], whole[N_LOCAL:-2, 100:], atol=1e-5)


def test_context_of_one_pixel_and_of_certainty_is_finite() -> None:
    for value in (-1e9, 0.0, 1e9):
        filters = FilterBank().compute(picture((1, 1)))
        assert np.isfinite(compute_context(np.full((1, 1), value, np.float32), filters)).all()
