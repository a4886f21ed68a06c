"""Files of arrays are replaced whole or not at all."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from engine.core.checkpoint import FileCheckpoint
from engine.core.npz_file import write_npz
from engine.crf.survey_features import make_survey_features
from engine.learning.roommate_model import load_roommate_model, make_roommate_model
from engine.learning.segmentation_model import (
    N_PARAMETERS,
    load_segmentation_model,
    make_segmentation_model,
)
from tests.learning.roommate_cohorts import random_survey


def roommate_model(weight):
    features = make_survey_features([random_survey(8)])
    return make_roommate_model(np.full(features.n_features, weight), features, 1.0, 1.0)


def segmentation_model(weight):
    return make_segmentation_model(np.full(N_PARAMETERS, weight), ridge=1.0, rho=0.5, max_side=64)


@pytest.fixture
def full_disk(monkeypatch):
    """Half of what is written arrives, then the disk is full."""

    def savez(file, **arrays):
        file.write(b"PK half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", savez)


@pytest.mark.parametrize(
    ("make", "load"),
    [
        (roommate_model, load_roommate_model),
        (segmentation_model, load_segmentation_model),
    ],
)
def test_a_failed_save_leaves_the_old_model(make, load, tmp_path, request):
    path = tmp_path / "model.npz"
    make(1.0).save(path)
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match="No space"):
        make(2.0).save(path)
    assert np.all(load(path).theta == 1.0)
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]


def test_an_array_file_is_readable_by_those_who_could_read_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    write_npz(tmp_path / "arrays.npz", {"x": np.arange(3)})
    mode = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "arrays.npz").stat().st_mode == mode
    os.chmod(tmp_path / "arrays.npz", 0o600)
    write_npz(tmp_path / "arrays.npz", {"x": np.arange(4)})
    assert (tmp_path / "arrays.npz").stat().st_mode & 0o777 == 0o600


def test_objects_are_refused(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(tmp_path / "arrays.npz", {"x": np.array([object()])})
    assert not list(tmp_path.iterdir())


def test_a_damaged_checkpoint_reads_as_none(tmp_path):
    path = Path(tmp_path / "state.npz")
    path.write_bytes(b"PK\x03\x04 cut off")
    assert FileCheckpoint(path).load() is None
