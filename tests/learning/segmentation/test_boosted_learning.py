"""Boosted trees as unaries: their sums, their files, and what learning makes of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.progress import Progress
from engine.crf.filter_bank import Frame
from engine.crf.forest import Forest, forest_from_arrays
from engine.crf.image_grid import enlarge, shrink_image
from engine.learning.segmentation import tree_learning
from engine.learning.segmentation.boosted_learning import TrainedBoosted, train_boosted_segmentation
from engine.learning.segmentation.boosted_trees import fit_forest
from engine.learning.segmentation.mask_weights import MaskWeights
from engine.learning.segmentation.model import load_segmentation_model
from engine.learning.segmentation.prediction import evaluate_mask, predict_segmentation
from engine.learning.segmentation.training_pictures import FOLDS, deal_pictures
from engine.learning.segmentation.tree_features import trees_alone
from engine.learning.segmentation.tree_options import TreeOptions
from engine.metrics.classes import Confusion
from tests.learning.segmentation.leaf_pictures import leaves
from tests.small_trees import learned_trees

SMALL = TreeOptions(n_trees=20, n_leaves=8, rate=0.2)


@pytest.fixture(scope="module")
def trained() -> TrainedBoosted:
    with learned_trees(SMALL):
        return train_boosted_segmentation(*leaves(6), max_side=64, holdout=leaves(2, seed=5))


def test_an_interrupted_run_does_not_grow_its_trees_again(
    trained: TrainedBoosted, small_trees: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = FileCheckpoint(tmp_path / "checkpoint.npz", is_private=True)
    fitted: list[int] = []

    def fit(*arguments, **options):  # type: ignore[no-untyped-def]
        if options["start"] is None:  # not a refit
            fitted.append(1)
        return fit_forest(*arguments, **options)

    monkeypatch.setattr(tree_learning, "fit_forest", fit)

    def stop_at_the_second_stage() -> bool:
        return len(fitted) > FOLDS

    with pytest.raises(StoppedError):
        train_boosted_segmentation(
            *leaves(6), max_side=64, checkpoint=place, should_stop=stop_at_the_second_stage
        )
    saved = place.load()
    assert saved is not None
    n_kept = sum(name.endswith("_offsets") for name in saved)
    assert n_kept >= FOLDS
    fitted.clear()
    again = train_boosted_segmentation(*leaves(6), max_side=64, checkpoint=place)
    assert len(fitted) == 2 * FOLDS - n_kept
    assert_allclose(again.model.theta, trained.model.theta, rtol=1e-6)
    other = leaves(6, seed=3)
    fitted.clear()
    train_boosted_segmentation(*other, max_side=64, checkpoint=place)
    assert len(fitted) == 2 * FOLDS, "trees of other pictures are no use"


def test_an_interrupted_run_does_not_learn_its_weights_again(
    trained: TrainedBoosted, small_trees: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every interruption lost the weights that were learned for each loss."""
    place = FileCheckpoint(tmp_path / "checkpoint.npz", is_private=True)
    fitted: list[str] = []
    usual, most = MaskWeights.fit, 1

    def fit(self, examples, candidate, *arguments, **options):  # type: ignore[no-untyped-def]
        if len(fitted) == most:
            raise StoppedError("The process is killed.")
        fitted.append(candidate.loss)
        return usual(self, examples, candidate, *arguments, **options)

    monkeypatch.setattr(MaskWeights, "fit", fit)
    with pytest.raises(StoppedError):
        train_boosted_segmentation(*leaves(6), max_side=64, checkpoint=place)
    most = 100
    again = train_boosted_segmentation(*leaves(6), max_side=64, checkpoint=place)
    n_fits = len(fitted)
    assert_array_equal(again.model.theta, trained.model.theta)
    assert again.errors == trained.errors
    fitted.clear()
    empty = FileCheckpoint(tmp_path / "other.npz", is_private=True)
    train_boosted_segmentation(*leaves(6), max_side=64, checkpoint=empty)
    assert n_fits == len(fitted), "nothing is learned twice, interrupted or not"


@pytest.fixture
def small_trees() -> Iterator[None]:
    with learned_trees(SMALL):
        yield


def grow(samples, labels, options=SMALL):  # type: ignore[no-untyped-def]
    """Return a forest of the log-odds of labels (n,), for samples (n, K)."""
    planes, classes = np.ascontiguousarray(samples.T), labels.astype(np.uint8)
    return fit_forest(planes, classes, 2, options, rng=np.random.default_rng(0)).of_log_odds()


def test_a_forest_is_as_right_as_scikit_learns() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(0)
    samples = rng.normal(size=(9000, 7)).astype(np.float32)
    labels = samples[:, 0] * samples[:, 1] + 0.3 * rng.normal(size=9000) > 0
    seen, fresh = slice(0, 3000), slice(3000, None)
    forest = grow(samples[seen], labels[seen], TreeOptions(60, 15, 0.2, share=1.0))
    theirs = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, learning_rate=0.2, max_bins=63, min_samples_leaf=40
    ).fit(samples[seen], labels[seen])
    own = 1.0 / (1.0 + np.exp(-forest.scores(samples[fresh].T)[:, 0]))
    loss = log_loss(labels[fresh], theirs.predict_proba(samples[fresh])[:, 1])
    assert log_loss(labels[fresh], own) <= 1.05 * loss


def test_older_files_of_forests_have_one_offset_and_say_the_same() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(300, 3)).astype(np.float32)
    forest = grow(samples, samples[:, 0] > 0)
    older = forest.arrays()
    older["offset"] = older.pop("offsets")[0]
    older["values"] = older["values"][:, 0]
    read = forest_from_arrays(older)
    assert_array_equal(read.scores(samples.T), forest.scores(samples.T))
    assert read.n_outputs == 1
    with pytest.raises(InvalidProblemError):
        forest_from_arrays(older | {"offset": np.zeros((2, 2))})


def test_one_label_alone_gives_no_trees_and_no_certainty() -> None:
    forest = grow(np.zeros((10, 3), np.float32), np.zeros(10, bool))
    assert_allclose(forest.scores(np.ones((3, 2, 2), np.float32)), np.log(1 / 11))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("children", lambda a: a + 10_000),
        ("children", lambda a: -a - 1),
        ("features", lambda a: a + 100),
        ("starts", lambda a: a + 10_000),
        ("depths", lambda a: a + 1000),
        ("values", lambda a: a * np.nan),
        ("thresholds", lambda a: a[:-1]),
    ],
)
def test_arrays_that_would_lead_astray_are_refused(name, change) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(300, 3)).astype(np.float32)
    arrays = grow(samples, samples[:, 0] > 0).arrays()
    assert isinstance(forest_from_arrays(arrays), Forest)
    with pytest.raises(InvalidProblemError):
        forest_from_arrays(arrays | {name: change(arrays[name])})
    with pytest.raises(InvalidProblemError, match="lack"):
        forest_from_arrays({key: value for key, value in arrays.items() if key != name})


def test_it_learns_leaves_and_reads_back_what_it_wrote(
    trained: TrainedBoosted, tmp_path: Path
) -> None:
    (image,), (mask,) = leaves(1, seed=9)
    before = predict_segmentation(trained.model, image)
    assert evaluate_mask(before, mask).error_mpm < 0.15
    compared = {k: v for k, v in trained.errors.items() if not k.endswith("refitted")}
    assert set(compared) == {"univariate", "likelihood", "trees"}
    assert compared[trained.loss] <= compared["trees"]
    trained.model.save(tmp_path / "model.npz")
    read = load_segmentation_model(tmp_path / "model.npz")
    assert read.is_mask
    after = predict_segmentation(read, image)
    assert_array_equal(after.marginals, before.marginals)
    assert_array_equal(after.mask, before.mask)


def test_the_readout_is_the_larger_marginal_unless_asked(trained: TrainedBoosted) -> None:
    (image,), _ = leaves(1, seed=3)
    prediction = predict_segmentation(trained.model, image)
    assert_array_equal(prediction.read_out("marginal"), prediction.marginals > 0.5)
    assert_array_equal(prediction.read_out("map"), prediction.mask)
    with pytest.raises(InvalidProblemError, match="readout"):
        prediction.read_out("best")


def test_a_damaged_file_is_refused(trained: TrainedBoosted, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    trained.model.save(path)
    parts = dict(np.load(path))
    for name, value in (
        ("theta", np.full(174, np.nan)),
        ("loss", np.array("other")),
        ("scales", np.ones(6)),
        ("first_2_children", np.full(parts["first_2_children"].shape, 10**6)),
        ("second_0_n_features", np.array(7)),
    ):
        np.savez(path, **(parts | {name: value}))
        with pytest.raises(InvalidProblemError, match=r"model\.npz"):
            load_segmentation_model(path)


@pytest.mark.usefixtures("small_trees")
def test_the_likelihood_has_a_certificate_and_the_others_say_that_they_have_none() -> None:
    images, masks = leaves(4)
    certified = train_boosted_segmentation(images, masks, max_side=48, loss="likelihood")
    assert certified.result.is_certified
    assert certified.result.relative_gap <= 1e-3
    for loss in ("univariate", "clique"):
        result = train_boosted_segmentation(images, masks, max_side=48, loss=loss).result
        assert not result.is_certified
        assert result.relative_gap == float("inf")


@pytest.mark.usefixtures("small_trees")
def test_one_picture_is_enough_and_its_pixels_are_not_judged_by_trees_that_saw_them() -> None:
    images, masks = leaves(1)
    trained = train_boosted_segmentation(images, masks, max_side=64)
    assert set(trained.errors) >= {"trees", "univariate", "likelihood"}
    labels = masks[0].view(np.uint8)
    read = [(images[0], np.zeros((*labels.shape, 0)), labels, Frame(0, 0, *labels.shape))]
    (dealt,) = deal_pictures(read, 2, 4000, np.random.default_rng(0))
    assert dealt.folds.shape == masks[0].shape
    assert set(np.unique(dealt.folds)) == set(range(FOLDS))


@pytest.mark.parametrize(("count", "n_leaves"), [(1, 15), (5, 15), (8, 24)])
def test_second_trees_of_few_pictures_have_few_leaves(
    count: int, n_leaves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the leaves that 200 pictures bear they took half as long again, and did no better."""
    grown: list[int] = []

    def fit_two(samples, labels, n_classes, options, **more):  # type: ignore[no-untyped-def]
        grown.append(options.n_leaves)
        return fit_forest(samples, labels, n_classes, replace(options, n_trees=2), **more)

    monkeypatch.setattr(tree_learning, "fit_forest", fit_two)
    train_boosted_segmentation(*leaves(count), max_side=32, loss="trees")
    assert set(grown[FOLDS:]) == {n_leaves}


@pytest.mark.usefixtures("small_trees")
def test_time_left_is_told_from_the_first_trees_on_and_stopping_stops() -> None:
    reports: list[Progress] = []
    train_boosted_segmentation(
        *leaves(4), max_side=32, on_progress=reports.append, holdout=leaves(1, seed=2)
    )
    fractions = [report.fraction for report in reports]
    assert fractions == sorted(fractions)
    assert all(report.seconds_left is not None for report in reports[1:-1])
    assert reports[-1].preview.marginals[0].shape == (24, 32)  # type: ignore[attr-defined]
    with pytest.raises(StoppedError):
        train_boosted_segmentation(*leaves(4), max_side=32, should_stop=lambda: True)


@pytest.mark.usefixtures("small_trees")
def test_trees_stand_alone_where_no_weights_do_better(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    real, plain = MaskWeights.judge, trees_alone()

    def worse(problem, examples, theta):  # type: ignore[no-untyped-def]
        counts = real(problem, examples, theta)
        if np.array_equal(theta, plain):
            return counts
        return [Confusion(one.counts[:, ::-1]) for one in counts]

    monkeypatch.setattr(MaskWeights, "judge", worse)
    trained = train_boosted_segmentation(*leaves(4), max_side=32)
    assert trained.loss == "trees"
    assert set(trained.errors) == {"univariate", "likelihood", "trees"}
    image = leaves(1)[0][0]
    found = predict_segmentation(trained.model, image)
    small = shrink_image(image, trained.model.grid_shape(*image.shape[:2]))
    odds = trained.model.features(small).nodes.values[:, :, 1]
    assert np.mean((found.labels) == (enlarge(odds, found.labels.shape) > 0)) > 0.99


def test_bad_options_are_refused_before_anything_is_read() -> None:
    def never() -> None:
        raise AssertionError("read")
        yield

    for options in ({"loss": "hinge"}, {"rho": 0.7}, {"max_seconds": -1.0}, {"ridge_factor": 0}):
        with pytest.raises(InvalidProblemError):
            train_boosted_segmentation(never(), never(), **options)  # type: ignore[arg-type]
