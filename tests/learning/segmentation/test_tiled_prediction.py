"""Prediction in tiles: what the whole gives, in flat memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.core.array_file import ArrayFile
from engine.core.errors import StoppedError
from engine.crf.image_grid import shrink_image
from engine.crf.picture_windows import ArraySource, ShrunkPicture, cut_tiles
from engine.learning.segmentation import class_learning, tiled_prediction, tree_learning
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.model import Detail
from engine.learning.segmentation.prediction import predict_segmentation
from engine.learning.segmentation.tiled_prediction import TiledPrediction
from engine.learning.segmentation.tree_options import TreeOptions
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures
from tests.learning.segmentation.leaf_pictures import leaves

FEW = TreeOptions(n_trees=12, n_leaves=8, rate=0.3, min_leaf=10)
MOST_AT_SEAMS = 1e-3


def collect(model, image, **options):  # type: ignore[no-untyped-def]
    """The marginals of all rectangles, put together; no pixel is written twice."""
    parts, count = {}, np.zeros(image.shape[:2], dtype=int)

    def write(top: int, left: int, values: np.ndarray) -> None:
        parts[top, left] = np.array(values)
        count[top : top + values.shape[0], left : left + values.shape[1]] += 1

    report = TiledPrediction(model, ArraySource(image), **options).run(write)
    assert (count == 1).all()
    depth = next(iter(parts.values())).shape[2:]
    whole = np.zeros((*image.shape[:2], *depth), dtype=np.float32)
    for (top, left), values in parts.items():
        whole[top : top + values.shape[0], left : left + values.shape[1]] = values
    return whole, report


@pytest.fixture(scope="module")
def classes():  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_learning, "FIRST", FEW)
        patch.setattr(tree_learning, "SECOND", FEW)
        patch.setattr(class_learning, "EDGE_LABELS", 10_000)
        detail = Detail(scale=1.0)
        return train_class_segmentation(
            *class_pictures(4), CLASSES, detail=detail, loss="univariate"
        ).model


@pytest.fixture(scope="module")
def mask_model():  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        small = TreeOptions(n_trees=20, n_leaves=8, rate=0.2)
        patch.setattr(tree_learning, "FIRST", small)
        patch.setattr(tree_learning, "SECOND", small)
        return train_boosted_segmentation(*leaves(4), max_side=4000, loss="univariate").model


def test_classes_in_tiles_are_those_of_the_whole(classes) -> None:  # type: ignore[no-untyped-def]
    image = class_pictures(1, side=420, seed=7)[0][0]
    whole = predict_segmentation(classes, image).probabilities
    tiled, report = collect(classes, image, core=150)
    assert report.n_tiles == 9
    assert report.grid_shape == image.shape[:2]
    assert np.mean(tiled.argmax(axis=2) != whole.argmax(axis=2)) < MOST_AT_SEAMS
    assert np.abs(tiled - whole).mean() < 1e-3


def test_masks_in_tiles_know_where_the_thing_lies_in_the_whole(mask_model) -> None:  # type: ignore[no-untyped-def]
    small = leaves(1, seed=3)[0][0]
    image = np.ascontiguousarray(np.tile(small, (8, 8, 1)))[:300, :400]
    whole = predict_segmentation(mask_model, image).marginals
    tiled, report = collect(mask_model, image, core=140)
    assert report.n_tiles == 9
    assert np.mean((tiled > 0.5) != (whole > 0.5)) < MOST_AT_SEAMS
    assert np.abs(tiled - whole).mean() < 1e-3


def test_a_model_that_is_smaller_than_its_picture_is_enlarged_in_bands(
    classes, monkeypatch
) -> None:  # type: ignore[no-untyped-def]

    monkeypatch.setattr(tiled_prediction, "BAND_PIXELS", 10_000)
    half = replace(classes, detail=Detail(scale=0.37))
    image = class_pictures(1, side=200, seed=8)[0][0]
    whole = predict_segmentation(half, image).probabilities
    tiled, report = collect(half, image)
    assert report.n_tiles == 1
    assert np.abs(tiled - whole).max() < 1e-5


def test_a_window_of_the_shrunk_picture_is_part_of_it() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (101, 77, 3), dtype=np.uint8)
    for shape, most in (((33, 25), 0.0), ((101, 77), 0.0), ((50, 30), 6.0), ((130, 90), 0.5)):
        whole = shrink_image(image, shape)
        windows = ShrunkPicture(ArraySource(image), shape)
        part = windows.window(7, 3, 20, 15).astype(float)
        assert np.abs(part - whole[7:27, 3:18]).mean() <= most


def test_cores_cover_all_and_windows_stay_inside() -> None:
    seen = np.zeros((250, 90), dtype=int)
    for tile in cut_tiles((250, 90), core=100, margin=30):
        top, left, rows, columns = tile.window
        assert min(top, left) >= 0
        assert (top + rows <= 250, left + columns <= 90) == (True, True)
        assert np.zeros((rows, columns))[tile.inside].shape == (tile.rows, tile.columns)
        seen[tile.top : tile.top + tile.rows, tile.left : tile.left + tile.columns] += 1
    assert (seen == 1).all()


def test_it_stops_between_tiles(classes) -> None:  # type: ignore[no-untyped-def]
    image = class_pictures(1, side=300)[0][0]
    done: list[int] = []
    with pytest.raises(StoppedError):
        collect(
            classes,
            image,
            core=128,
            on_tile=lambda k, n: done.append(k),
            should_stop=lambda: len(done) >= 2,
        )
    assert done == [1, 2]


def test_an_array_file_is_an_npy_file(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((9, 7, 2)).astype(np.float32)
    path = tmp_path / "a.npy"
    with ArrayFile(path, values.shape) as file:
        file.write(4, 0, values[4:])
        file.write(0, 3, values[:4, 3:])
        file.write(0, 0, values[:4, :3])
        assert np.array_equal(file.read(2, 1, 5, 4), values[2:7, 1:5])
    assert np.array_equal(np.load(path), values)
