"""The truth of simulated universities is what the module says it is."""

import numpy as np

from engine.datasets import university
from engine.datasets.university import simulate_university

PUBLISHED = (
    (-0.0296, -0.0218, 0.0, -0.0056, -0.0484, -0.0025, -0.0097)
    + (-0.037, 0.0131, -0.0006, -0.0133, 0.2277, 0.0518, 0.0)
)  # fmt: skip
CUT = 11  # the single-sex floor as first choice


def test_all_weights_but_one_are_the_published_ones():
    made = simulate_university(20, 1, rng=np.random.default_rng(0), strength=2.0)
    weights = made.theta[made.features.feature_offsets[:-1]] / 2.0
    expected = np.array(PUBLISHED)
    expected[CUT] = university.FIRST_CHOICE_WEIGHT
    assert np.allclose(weights, expected)
    assert np.count_nonzero(made.theta) == np.count_nonzero(expected)


def test_the_cut_weight_and_its_reason_are_written_down():
    assert str(PUBLISHED[CUT]) in university.__doc__
    assert str(university.FIRST_CHOICE_WEIGHT) in university.__doc__
    others = np.abs(np.delete(PUBLISHED, CUT)).sum()
    assert 0.9 * others < PUBLISHED[CUT] < others
