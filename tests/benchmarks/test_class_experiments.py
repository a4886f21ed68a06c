"""The quick form of the learning curves of classes runs, keeps its rows, and goes on."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.peers import classes
from engine.learning.segmentation import class_learning, tree_learning
from engine.learning.segmentation.tree_options import TreeOptions
from tests.learning.segmentation.class_pictures import CLASSES, class_pictures


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    few = TreeOptions(n_trees=6, n_leaves=6, rate=0.3, min_leaf=5)
    monkeypatch.setattr(tree_learning, "FIRST", few)
    monkeypatch.setattr(tree_learning, "SECOND", few)
    monkeypatch.setattr(class_learning, "EDGE_LABELS", 10_000)
    for part, seed in (("train", 0), ("test", 1)):
        (tmp_path / part).mkdir()
        for k, (image, labels) in enumerate(zip(*class_pictures(2, seed=seed), strict=True)):
            Image.fromarray(image).save(tmp_path / part / f"p{k}.jpg", quality=95)
            Image.fromarray(labels).save(tmp_path / part / f"p{k}.png")
    lines = [f"{value},{name}" for value, name in enumerate(CLASSES)]
    (tmp_path / "classes.csv").write_text("\n".join(["value,class", *lines]))
    return tmp_path


def test_curves_of_classes_quick(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = classes.parse(["--quick", "--data", str(data), "--out", str(data / "out")])
    rows = classes.run(args)
    assert [row[:3] for row in rows] == [
        [2, painted, name] for painted in ("1.0%", "100.0%") for name in classes.CONTESTANTS
    ]
    assert all(0 <= row[3] < 0.6 for row in rows)
    assert all(row[3] < 0.2 for row in rows[len(rows) // 2 :])
    monkeypatch.setattr(classes, "CONTESTANTS", dict.fromkeys(classes.CONTESTANTS))
    assert classes.run(args) == rows  # nothing is learned again


def test_scribbles_cover_about_the_share_and_never_lie() -> None:
    labels = np.random.default_rng(0).integers(0, 3, (200, 300)).astype(np.uint8)
    painted = classes.scribbled(labels, 0.01, np.random.default_rng(1))
    known = painted != 255
    assert 0.004 < known.mean() < 0.012
    assert np.array_equal(painted[known], labels[known])
    assert classes.scribbled(labels, 1.0, np.random.default_rng(1)) is labels
