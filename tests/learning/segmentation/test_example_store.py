"""Examples in memory, in files and in a cache are the same examples."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.crf.grid_features import GridExample
from engine.datasets.synthetic_images import generate_leaf_images
from engine.learning.segmentation import example_store
from engine.learning.segmentation.example_store import ExampleStore
from engine.learning.segmentation.mask_learning import train_segmentation

PICTURES = generate_leaf_images(4, rng=np.random.default_rng(2), shape=(24, 33))


def filled(store: ExampleStore) -> ExampleStore:
    for picture in PICTURES:
        store.append(picture.image, picture.mask)
    return store


def same(first: GridExample, second: GridExample) -> None:
    weights = np.random.default_rng(0).normal(size=first.features.n_parameters)
    a, b = first.features.scores(weights), second.features.scores(weights)
    for name in ("node", "horizontal", "vertical"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert_array_equal(first.features.edges.vertical, second.features.edges.vertical)
    assert_array_equal(first.labels, second.labels)


def test_files_and_memory_hold_the_same() -> None:
    inside, outside = filled(ExampleStore()), filled(ExampleStore(memory_bytes=3000))
    assert inside.sizes == outside.sizes == (24 * 33,) * 4
    for k in range(4):
        same(inside[k], outside[k])
        assert_array_equal(inside.labels(k), PICTURES[k].mask)
    assert [e.labels.sum() for e in inside[1:3]] == [p.mask.sum() for p in PICTURES[1:3]]


def test_the_digest_tells_pictures_labels_and_their_order_apart() -> None:
    """Not where they are kept: a run goes on from its checkpoint with another cache too."""
    store = filled(ExampleStore())
    assert store.digest == filled(ExampleStore(memory_bytes=0)).digest
    assert store.digest != ExampleStore().digest
    turned = ExampleStore()
    for picture in reversed(PICTURES):
        turned.append(picture.image, picture.mask)
    relabelled = ExampleStore()
    for picture in PICTURES:
        relabelled.append(picture.image, ~picture.mask)
    assert len({store.digest, turned.digest, relabelled.digest}) == 3


def test_nothing_can_leave_files_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process left them for ever while they had names."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = filled(ExampleStore(memory_bytes=0))
    assert not list(tmp_path.iterdir())
    same(store[3], filled(ExampleStore())[3])


def test_threads_read_the_features_of_their_own_pictures() -> None:
    store, inside = filled(ExampleStore(memory_bytes=0)), filled(ExampleStore())
    numbers = 20 * list(range(4))
    with ThreadPoolExecutor(4) as pool:
        examples = list(pool.map(store.__getitem__, numbers))
    for number, example in zip(numbers, examples, strict=True):
        same(example, inside[number])


def test_a_cache_spares_the_second_run_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = filled(ExampleStore(tmp_path / "cache"))
    calls: list[int] = []
    compute = example_store.compute_parts

    def counted(colours: np.ndarray):  # type: ignore[no-untyped-def]
        calls.append(1)
        return compute(colours)

    monkeypatch.setattr(example_store, "compute_parts", counted)
    again = filled(ExampleStore(tmp_path / "cache"))
    assert not calls
    for k in range(4):
        same(fresh[k], again[k])
    damaged = sorted((tmp_path / "cache").glob("*.npz"))[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    repaired = filled(ExampleStore(tmp_path / "cache"))
    assert len(calls) == 1
    for k in range(4):
        same(fresh[k], repaired[k])


@pytest.mark.parametrize("solver", ["theta", "frank-wolfe", "block-coordinate"])
def test_learning_from_files_gives_the_same_answer(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, masks = [p.image for p in PICTURES], [p.mask for p in PICTURES]
    options = {"ridge": 3e4, "solver": solver, "relative_gap": 0.02}
    inside = train_segmentation(images, masks, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(ExampleStore.__init__, "__defaults__", (None, 0))
    monkeypatch.setattr("engine.core.array_store.ArrayStore.__init__.__defaults__", (0, None))
    outside = train_segmentation(images, masks, **options)  # type: ignore[arg-type]
    assert outside.result.objective == pytest.approx(inside.result.objective, rel=1e-12)
    assert_array_equal(outside.model.theta, inside.model.theta)
