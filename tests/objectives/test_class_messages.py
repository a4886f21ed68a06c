"""Messages of several classes: bounds and marginals against enumeration."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.crf.class_features import ClassExample, ClassFeatures, centred
from engine.crf.image_features import code_edges
from engine.learning.segmentation.grid_readout import best_labelling
from engine.objectives.class_messages import ClassMessages


def example(
    rows: int, columns: int, n_classes: int, n_maps: int = 1, seed: int = 0
) -> ClassExample:
    rng = np.random.default_rng(seed)
    trees = centred(rng.normal(size=(rows, columns, n_classes)).astype(np.float32))
    maps = rng.normal(size=(rows, columns, n_maps)).astype(np.float32)
    features = ClassFeatures(trees, maps, code_edges(rng.random((rows, columns, 3))))
    labels = rng.integers(0, n_classes, (rows, columns)).astype(np.uint8)
    labels[rng.random((rows, columns)) < 0.3] = 255
    return ClassExample(features, labels)


def parameters(one: ClassExample, *, is_potts: bool, size: float = 0.3) -> np.ndarray:
    layout = one.features.layout
    theta = layout.plain() + size * np.random.default_rng(1).normal(size=layout.size)
    if is_potts:
        layout.split(theta)[2][:] = 0
    return theta


def all_scores(one: ClassExample, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every labelling of a small grid and its score, edge by edge."""
    scores = one.features.scores(theta)
    rows, columns = one.features.shape
    right, down = one.features.codes
    n = one.features.layout.n_classes
    labellings, values = [], []
    for flat in product(range(n), repeat=rows * columns):
        y = np.array(flat).reshape(rows, columns)
        value = 0.0
        for i in range(rows):
            for j in range(columns):
                value += scores.nodes[i, j, y[i, j]]
                if j + 1 < columns:
                    a, b = y[i, j], y[i, j + 1]
                    value += scores.pairs[0, a, b] + (a == b) * scores.agreement[0, right[i, j]]
                if i + 1 < rows:
                    a, b = y[i, j], y[i + 1, j]
                    value += scores.pairs[1, a, b] + (a == b) * scores.agreement[1, down[i, j]]
        labellings.append(y)
        values.append(value)
    return np.array(labellings), np.array(values)


@pytest.mark.parametrize("is_potts", [True, False])
def test_bounds_lie_above_the_truth_before_and_after_sweeps(is_potts: bool) -> None:
    one = example(2, 3, 3)
    for size in (0.3, 2.0):
        theta = parameters(one, is_potts=is_potts, size=size)
        labellings, values = all_scores(one, theta)
        log_z = np.logaddexp.reduce(values)
        chains = ClassMessages(one.features, theta)
        first = chains.upper_bound()
        chains.sweep(50)
        last = chains.upper_bound()
        assert log_z <= last + 1e-6 <= first + 1e-3
        statistics, entropy = chains.summarise(chains.marginals())
        value = float(theta @ statistics) + entropy
        assert value <= last + 1e-4  # a point of the polytope never lies above the bound
        if size < 1:  # and at rest they meet
            assert value == pytest.approx(last, abs=2e-3)
        labels, score, bound = best_labelling(one.features, theta)
        assert values.max() <= bound + 1e-9
        assert score <= values.max() + 1e-6
        place = (labellings == labels).all(axis=(1, 2)).argmax()
        assert values[place] == pytest.approx(score, abs=1e-4)


def test_marginals_of_a_row_without_columns_are_those_of_uncoupled_pixels_without_edges() -> None:
    one = example(3, 4, 4, n_maps=0)
    layout = one.features.layout
    theta = np.zeros(layout.size)
    layout.split(theta)[0][:, 1] = 1.0
    chains = ClassMessages(one.features, theta)
    chains.sweep(2)
    expected = np.exp(one.features.trees)
    expected /= expected.sum(axis=2, keepdims=True)
    assert_allclose(chains.marginals(), expected, rtol=1e-5)


def test_sweeps_shared_among_threads_come_to_the_same_rest(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from engine.objectives import class_messages

    monkeypatch.setattr(class_messages, "SMALL_GRID", 2)
    monkeypatch.setattr("engine.kernels.threads.count_threads", lambda: 2)
    one = example(9, 7, 3)
    theta = parameters(one, is_potts=False)
    alone, shared = (ClassMessages(one.features, theta, is_shared=k) for k in (False, True))
    alone.sweep(40)
    shared.sweep(40)
    assert_allclose(shared.marginals(), alone.marginals(), atol=1e-5)
