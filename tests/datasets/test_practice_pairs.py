"""Pairs that are invented for practice."""

import numpy as np
import pytest

from engine.core.errors import StoppedError
from engine.datasets.practice_pairs import simulate_pairs
from tests.learning.roommates.cohorts import random_survey


def test_a_stop_between_groups_gives_no_part_of_the_pairs() -> None:
    survey, asked = random_survey(8, Hall=tuple("NNNNSSSS")), []

    def should_stop() -> bool:
        asked.append(True)
        return len(asked) > 1

    with pytest.raises(StoppedError):
        simulate_pairs(survey, rng=np.random.default_rng(0), same=["Hall"], should_stop=should_stop)
