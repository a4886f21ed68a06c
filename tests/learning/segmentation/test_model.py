"""A learned model predicts, survives its file, and a bad file is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.errors import InvalidProblemError
from engine.learning.segmentation.grid_readout import best_labelling
from engine.learning.segmentation.model import (
    N_PARAMETERS,
    Detail,
    load_segmentation_model,
    make_segmentation_model,
)
from engine.learning.segmentation.prediction import predict_segmentation
from tests.learning.segmentation.leaf_pictures import leaves
from tests.reference.tiny_grids import all_statistics, tiny_example


def test_prediction_has_the_size_of_the_picture(trained: Any) -> None:
    images, masks = leaves(1, seed=3, shape=(300, 410))
    prediction = predict_segmentation(trained.model, images[0])
    assert prediction.mask.shape == prediction.marginals.shape == masks[0].shape
    assert prediction.grid_shape == (146, 200)
    assert prediction.marginals.dtype == np.float32
    assert 0.0 <= prediction.marginals.min() <= prediction.marginals.max() <= 1.0
    assert prediction.doubt.max() <= np.log(2) + 1e-6
    assert prediction.upper_bound >= prediction.score
    with pytest.raises(ValueError, match="read-only"):
        prediction.mask[0, 0] = True
    with pytest.raises(InvalidProblemError, match="bytes of shape"):
        predict_segmentation(trained.model, images[0][:, :, 0])


def test_best_labelling_against_enumeration() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        example = tiny_example(rng)
        theta = 1.5 * rng.normal(size=14)
        best = (all_statistics(example.features) @ theta).max()
        labels, score, bound = best_labelling(example.features, theta)
        own = theta @ example.features.observed_statistics(labels)
        assert score == pytest.approx(own, abs=1e-9)
        assert score <= best + 1e-9 <= bound + 2e-9
        if bound - score < 1e-9:
            assert score == pytest.approx(best, abs=1e-9)


def test_a_model_survives_its_file(tmp_path: Path, trained: Any) -> None:
    trained.model.save(tmp_path / "model.npz")
    loaded = load_segmentation_model(tmp_path / "model.npz")
    assert_allclose(loaded.theta, trained.model.theta, rtol=0)
    assert (loaded.ridge, loaded.rho, loaded.max_side) == (
        trained.model.ridge,
        trained.model.rho,
        trained.model.max_side,
    )


def spoil(path: Path, **changes: Any) -> Path:
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    for name, value in changes.items():
        if value is None:
            del parts[name]
        else:
            parts[name] = np.asarray(value)
    np.savez(path, **parts)
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"theta": np.full(N_PARAMETERS, np.nan)}, "damaged: theta"),
        ({"theta": np.zeros(12)}, "other image features"),
        ({"colour_thresholds": np.zeros(10)}, "other image features"),
        ({"format": "bethe-hall roommate model 1"}, "not a segmentation model"),
        ({"rho": None}, "damaged: it lacks rho"),
        ({"ridge": -1.0}, "damaged: ridge"),
        ({"max_side": 0}, "damaged: max_side"),
        ({"max_side": np.nan}, "damaged: max_side is not a finite number"),
        ({"theta": np.full(N_PARAMETERS, 1j)}, "damaged: theta is not a finite number"),
        ({"theta": np.full(N_PARAMETERS, "a")}, "damaged: theta is not a finite number"),
        ({"ridge": [1.0, 2.0]}, "damaged: ridge is not one number"),
    ],
)
def test_a_bad_model_file_is_refused(tmp_path: Path, changes: Any, words: str) -> None:
    model = make_segmentation_model(np.zeros(N_PARAMETERS), ridge=1.0, rho=0.5, detail=Detail(200))
    model.save(tmp_path / "m.npz")
    with pytest.raises(InvalidProblemError, match=words):
        load_segmentation_model(spoil(tmp_path / "m.npz", **changes))


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    with pytest.raises(InvalidProblemError, match="no such file"):
        load_segmentation_model(path)
    path.write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(InvalidProblemError, match="not a whole model file"):
        load_segmentation_model(path)
    np.save(tmp_path / "array.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidProblemError, match="not a"):
        load_segmentation_model(tmp_path / "array.npy")
