"""One result for masks and label maps: the same properties, whatever the number of labels."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine.core.errors import InvalidProblemError
from engine.learning.segmentation.model import load_segmentation_model
from engine.learning.segmentation.prediction import (
    Prediction,
    evaluate_mask,
    predict_segmentation,
)

DATA = Path(__file__).parent / "data"
MODELS = {"mask_linear": 2, "mask_trees": 2, "classes_two": 2, "classes_maps": 3}


def predicted(name: str, **options: bool) -> Prediction:
    with np.load(DATA / "old_predictions.npz") as stored:
        scene = "waves" if name == "classes_maps" else "leaf"
        maps = stored[f"{scene}_maps"] if name.endswith("maps") else None
        model = load_segmentation_model(DATA / f"old_{name}.npz")
        return predict_segmentation(model, stored[scene], maps, **options)


@pytest.mark.parametrize(("name", "n_labels"), MODELS.items())
def test_a_result_has_the_same_properties_for_any_number_of_labels(
    name: str, n_labels: int
) -> None:
    found = predicted(name, with_best=True)
    assert found.n_labels == len(found.classes) == n_labels
    size = found.labels.shape
    assert found.labels.dtype == found.read_out("map").dtype == np.uint8
    assert found.probabilities.shape == (*size, n_labels)
    assert_allclose(found.probabilities.sum(axis=2), 1, atol=2e-3)
    assert_array_equal(found.labels, found.probabilities.argmax(axis=2))
    p = np.clip(found.probabilities, 1e-7, 1)
    assert_allclose(found.doubt, -(p * np.log(p)).sum(axis=2), atol=1e-4)
    assert_array_equal(found.above(1, 0.7), found.probabilities[:, :, 1] >= np.float32(0.7))
    assert found.score <= found.upper_bound < np.inf
    assert found.read_out("map").max() < n_labels
    assert_array_equal(found.mask, found.read_out("map") > 0)
    for array in (found.labels, found.marginals, found.read_out("map")):
        assert not array.flags.writeable
    with pytest.raises(InvalidProblemError, match="readout: expected one of"):
        found.read_out("best")


@pytest.mark.parametrize("name", MODELS)
def test_the_best_labelling_is_searched_for_on_request(name: str) -> None:
    without = predicted(name, with_best=False)
    assert (without.best, without.score, without.upper_bound) == (None, -np.inf, np.inf)
    with pytest.raises(InvalidProblemError, match="was not requested"):
        without.read_out("map")
    assert (predicted(name).best is not None) == name.startswith("mask")


def test_two_labels_are_evaluated_alike_and_three_are_refused() -> None:
    for name in ("mask_trees", "classes_two"):
        found = predicted(name, with_best=True)
        errors = evaluate_mask(found, found.mask, readout="map")
        assert (errors.error_map, errors.iou) == (0.0, 1.0)
    with pytest.raises(InvalidProblemError, match="two labels, received 3"):
        evaluate_mask(predicted("classes_maps", with_best=True), np.zeros((40, 48), dtype=bool))
