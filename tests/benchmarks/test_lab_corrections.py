"""What corrections change is compared on the same pictures and strokes."""

import numpy as np
import pytest

from benchmarks.common.microscope_pictures import CLASSES
from benchmarks.product.lab_corrections import PAINTED, Laboratory, compare
from engine.learning.segmentation import tree_learning
from engine.learning.segmentation.tree_options import TreeOptions


def test_strokes_lie_on_their_class() -> None:
    laboratory = Laboratory(1, 128, 1)
    rng = np.random.default_rng(0)
    for label in range(len(CLASSES)):
        painted = laboratory._painted([laboratory.stroke(0, label, rng)])
        places = painted < len(CLASSES)
        assert np.mean(laboratory.labels[0][places] == label) > 0.9


def test_only_pictures_that_nobody_painted_on_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    weak = TreeOptions(n_trees=2, n_leaves=3, rate=0.5, min_leaf=5)
    monkeypatch.setattr(tree_learning, "FIRST", weak)
    monkeypatch.setattr(tree_learning, "SECOND", weak)
    asked: list[list[int]] = []
    learn = Laboratory.learn

    def noted(self, strokes):
        asked.append(list(strokes))
        return learn(self, strokes)

    monkeypatch.setattr(Laboratory, "learn", noted)
    ((before, after, *own),) = compare(1, 1, 64, 2)
    assert asked[0] == list(range(PAINTED))
    assert asked[1][:PAINTED] == asked[0]
    assert asked[1][PAINTED] >= PAINTED  # the corrected picture is one of the others
    assert all(0 < share <= 1 for share in (before, after, *own))
