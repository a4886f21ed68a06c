"""Labelled pictures that the project draws itself."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core.errors import InvalidProblemError
from engine.datasets.synthetic_images import generate_leaf_image, generate_leaf_images


def test_the_same_state_draws_the_same_picture() -> None:
    first = generate_leaf_images(2, rng=np.random.default_rng(5))
    second = generate_leaf_images(2, rng=np.random.default_rng(5))
    for a, b in zip(first, second, strict=True):
        assert_array_equal(a.image, b.image)
        assert_array_equal(a.mask, b.mask)


def test_leaves_cover_a_sensible_share_and_differ_in_colour() -> None:
    pictures = generate_leaf_images(12, rng=np.random.default_rng(0))
    shares = [picture.mask.mean() for picture in pictures]
    assert 0.05 < np.mean(shares) < 0.6
    leaf = np.concatenate([p.image[p.mask] for p in pictures]).astype(float)
    soil = np.concatenate([p.image[~p.mask] for p in pictures]).astype(float)
    greenness = (leaf[:, 1] - leaf[:, 0]).mean() - (soil[:, 1] - soil[:, 0]).mean()
    assert greenness > 20
    assert np.quantile(leaf[:, 1] - leaf[:, 0], 0.1) < np.quantile(soil[:, 1] - soil[:, 0], 0.9)


def test_odd_sizes() -> None:
    rng = np.random.default_rng(0)
    assert generate_leaf_image(rng=rng, shape=(1, 1)).image.shape == (1, 1, 3)
    assert not generate_leaf_image(rng=rng, shape=(9, 40), leaves=0).mask.any()
    with pytest.raises(InvalidProblemError, match="sides of 1"):
        generate_leaf_image(rng=rng, shape=(0, 4))
