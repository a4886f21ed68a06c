"""Model files whose numbers could not have been learned are refused."""

from dataclasses import replace

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.survey_features import make_survey_features
from engine.learning.roommates.model import load_roommate_model, make_roommate_model
from tests.learning.roommates.cohorts import random_survey


@pytest.fixture
def model():
    features = make_survey_features([random_survey(12)])
    return make_roommate_model(np.zeros(features.n_features), features, ridge=1.0, rho=1.0)


@pytest.mark.parametrize("calibration", [None, 0.7])
def test_a_model_survives_its_file(tmp_path, model, calibration):
    kept = model if calibration is None else model.with_calibration(calibration)
    kept.save(tmp_path / "m.npz")
    again = load_roommate_model(tmp_path / "m.npz")
    assert again.calibration == calibration
    assert again.features.frequencies == model.features.frequencies


@pytest.mark.parametrize("calibration", [np.inf, -np.inf, -2.0, 0.0])
def test_a_factor_that_reverses_or_empties_probabilities_is_refused(tmp_path, model, calibration):
    model.with_calibration(calibration).save(tmp_path / "m.npz")
    with pytest.raises(InvalidProblemError, match=r"m\.npz is damaged: its settings"):
        load_roommate_model(tmp_path / "m.npz")


@pytest.mark.parametrize("factor", [0.0, -1.0, 2.0, np.nan, np.inf])
def test_shares_of_answers_that_are_none_are_refused(tmp_path, model, factor):
    model.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as archive:
        parts = dict(archive)
    parts["frequencies"][:2] *= factor
    np.savez(tmp_path / "bad.npz", **parts)
    with pytest.raises(InvalidProblemError, match="its shares of answers"):
        load_roommate_model(tmp_path / "bad.npz")


def test_files_of_earlier_versions_name_no_method(tmp_path, model):
    named = replace(model, method="theta: potentials")
    named.save(tmp_path / "new.npz")
    assert load_roommate_model(tmp_path / "new.npz").method == "theta: potentials"
    with np.load(tmp_path / "new.npz") as archive:
        parts = {name: part for name, part in archive.items() if name != "method"}
    np.savez(tmp_path / "old.npz", **parts)
    assert load_roommate_model(tmp_path / "old.npz").method == ""
