"""A checkpoint belongs to one learning problem; another's is refused and kept."""

import numpy as np
import pytest

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError
from engine.learning.roommates.training import train_roommates
from tests.learning.roommates.cohorts import random_cohorts


@pytest.mark.parametrize(
    ("change", "count", "named"),
    [
        ({"ridge": 5.0}, 2, "ridge 4.0, not 5.0"),
        ({"rho": 0.5}, 2, "rho 1.0, not 0.5"),
        ({}, 3, "cohort digest"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_and_kept(
    change, count, named, tmp_path, monkeypatch
):
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    place = FileCheckpoint(tmp_path / "state.npz")
    options = {"ridge": 4.0, "rho": 1.0, "checkpoint": place}
    train_roommates(random_cohorts(20), **options)
    before = (tmp_path / "state.npz").read_bytes()
    with pytest.raises(InvalidProblemError, match=named):
        train_roommates(random_cohorts(20, count), **(options | change))
    assert (tmp_path / "state.npz").read_bytes() == before


def test_a_file_of_something_else_is_not_taken_for_a_checkpoint(tmp_path):
    place = FileCheckpoint(tmp_path / "model.npz")
    place.save({"theta": np.zeros(3)})
    with pytest.raises(InvalidProblemError, match="not of work that has a solver"):
        train_roommates(random_cohorts(10), checkpoint=place)
    assert set(place.load()) == {"theta"}
