"""Model files of earlier formats: masks with linear weights or trees, and label maps.

Version 0.1 wrote the files in ``data``, and predicted what ``old_predictions.npz`` holds.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.errors import InvalidProblemError
from engine.learning.segmentation.model import FORMAT, SegmentationModel, load_segmentation_model
from engine.learning.segmentation.prediction import predict_segmentation

DATA = Path(__file__).parent / "data"
MASKS = ("mask_linear", "mask_linear_maps", "mask_trees", "mask_trees_maps")
LABEL_MAPS = ("classes_two", "classes_maps")


@pytest.fixture(scope="module")
def stored() -> dict[str, np.ndarray]:
    with np.load(DATA / "old_predictions.npz") as file:
        return dict(file)


def picture_of(name: str, stored: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the picture that was predicted, and its maps."""
    scene = "waves" if name == "classes_maps" else "leaf"
    return stored[scene], stored[f"{scene}_maps"] if name.endswith("maps") else None


def assert_predicts_as_before(
    model: SegmentationModel, name: str, stored: dict[str, np.ndarray]
) -> None:
    """Compare all pixels, or with trees all but those near a pixel that falls on a threshold.

    Filters differ by a last digit between processors, and a tree splits between two such values.
    """
    found = predict_segmentation(model, *picture_of(name, stored), with_best=True)
    apart = np.abs(found.marginals - stored[f"old_{name}.marginals"])
    is_exact = name.startswith("mask_linear")
    assert np.mean(apart > 1e-6) <= (0.0 if is_exact else 0.4)
    assert apart.max() < (1e-6 if is_exact else 0.1)
    differs = found.read_out("map") != stored[f"old_{name}.best"]
    assert differs.mean() <= (0.0 if is_exact else 0.005)
    bounds = stored[f"old_{name}.bounds"]
    assert_allclose([found.score, found.upper_bound], bounds, rtol=1e-6 if is_exact else 1e-3)


@pytest.mark.parametrize("name", [*MASKS, *LABEL_MAPS])
def test_it_predicts_as_before_and_so_does_its_copy(
    name: str, stored: dict[str, np.ndarray], tmp_path: Path
) -> None:
    model = load_segmentation_model(DATA / f"old_{name}.npz")
    assert_predicts_as_before(model, name, stored)
    model.save(tmp_path / "copy.npz")
    with np.load(tmp_path / "copy.npz") as file:
        assert str(file["format"]) == FORMAT
    assert_predicts_as_before(load_segmentation_model(tmp_path / "copy.npz"), name, stored)


def test_settings_of_earlier_files_are_kept() -> None:
    linear, trees, classes = (
        load_segmentation_model(DATA / f"old_{name}.npz")
        for name in ("mask_linear_maps", "mask_trees_maps", "classes_maps")
    )
    assert (linear.unaries, linear.loss, linear.rho, linear.n_maps) == (None, "likelihood", 0.3, 2)
    assert (trees.loss, trees.rho, trees.max_side, trees.n_maps) == ("univariate", 0.5, 40, 2)
    assert linear.is_mask
    assert trees.is_mask
    assert linear.classes == trees.classes == ("background", "foreground")
    assert not classes.is_mask
    assert classes.classes == ("ground", "water", "wood")
    assert (classes.values, classes.unknown) == ((0, 10, 20), (255,))
    assert (classes.detail.scale, classes.loss, classes.rho) == (0.5, "likelihood", 0.5)


@pytest.mark.parametrize("name", ["mask_linear", "mask_trees", "classes_two"])
def test_an_earlier_file_that_lacks_a_part_is_refused(name: str, tmp_path: Path) -> None:
    with np.load(DATA / f"old_{name}.npz") as file:
        parts = dict(file)
    for missing in ("theta", "ridge", "max_side", "colour_thresholds"):
        np.savez(tmp_path / "m.npz", **{k: v for k, v in parts.items() if k != missing})
        with pytest.raises(InvalidProblemError, match=f"damaged: it lacks {missing}"):
            load_segmentation_model(tmp_path / "m.npz")
    np.savez(tmp_path / "m.npz", **(parts | {"format": np.array("bethe-hall roommate model 1")}))
    with pytest.raises(InvalidProblemError, match="not a segmentation model"):
        load_segmentation_model(tmp_path / "m.npz")
