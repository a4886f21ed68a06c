"""Estimators keep scikit-learn's habits: its own checks where they apply, clones, grid search."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

from engine.core.errors import InvalidProblemError
from engine.crf.bipartite import BipartiteItems
from engine.datasets.synthetic_images import generate_leaf_images
from engine.estimators import Roommates, Segmenter, StructuredModel
from engine.structures import BipartiteStructure
from tests.learning.roommates.cohorts import random_cohorts

ALL = (Roommates, Segmenter, StructuredModel)


@pytest.mark.filterwarnings("ignore:Can't test estimator")
@pytest.mark.parametrize("kind", ALL)
def test_their_own_checks_pass(kind):
    """No exceptions: checks that pass a matrix do not apply, as the tags of the estimators say."""
    estimator_checks.check_estimator(kind())


@pytest.mark.parametrize("kind", ALL)
def test_an_estimator_that_was_not_fitted_says_so(kind):
    with pytest.raises(NotFittedError):
        kind().predict([None])


def test_roommates_learn_propose_and_are_searched():
    cohorts = random_cohorts(10, 4)
    surveys, pairs = [s for s, _ in cohorts], [p for _, p in cohorts]
    model = Roommates(ridge=10.0).fit(surveys[:3], pairs[:3])
    assert model.result_.status.is_converged
    (found,), (tau,) = model.predict(surveys[3:]), model.predict_proba(surveys[3:])
    assert sorted(found.ravel().tolist()) == list(range(10))
    assert tau.sum(axis=0) == pytest.approx(np.ones(10), abs=1e-5)
    assert 0.0 <= model.score(surveys[3:], pairs[3:]) <= 1.0
    search = GridSearchCV(Roommates(), {"ridge": [1.0, 100.0]}, cv=2).fit(surveys, pairs)
    assert search.best_params_["ridge"] in (1.0, 100.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with pytest.raises(InvalidProblemError, match="2 surveys"):
        model.fit(surveys[:2], pairs[:1])


def test_segmenter_learns_and_marks():
    pictures = generate_leaf_images(3, rng=np.random.default_rng(0), shape=(24, 32))
    images, masks = [p.image for p in pictures], [p.mask for p in pictures]
    model = Segmenter(loss="trees").fit(images[:2], masks[:2])
    (mask,), (tau,) = model.predict(images[2:]), model.predict_proba(images[2:])
    assert mask.shape == masks[2].shape == tau.shape
    assert model.score(images[:2], masks[:2]) > 0.8
    assert clone(model).get_params() == model.get_params()


def test_segmenter_learns_label_maps_and_passes_over_unknown_pixels():
    pictures = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(24, 32))
    images = [p.image for p in pictures]
    labels = [p.mask.astype(np.uint8) for p in pictures]
    hidden = [one.copy() for one in labels]
    for one in hidden:
        one[:4] = 255
    model = Segmenter(("ground", "leaf"), loss="trees").fit(images, hidden)
    assert model.classes_ == ("ground", "leaf")
    (found, _), (shares, _) = model.predict(images), model.predict_proba(images)
    assert found.shape == labels[0].shape
    assert shares.sum(axis=2) == pytest.approx(np.ones(found.shape), abs=1e-4)
    assert model.score(images, hidden) > 0.8
    assert clone(model).get_params() == model.get_params()


def test_segmenter_names_labels_by_their_numbers_and_refuses_a_mixture():
    pictures = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(24, 32))
    images, masks = [p.image for p in pictures], [p.mask for p in pictures]
    labels = [mask.astype(np.uint8) for mask in masks]
    for one in labels:
        one[:4], one[4:8] = 255, 2
    model = Segmenter(loss="trees", class_weights=(1.0, 1.0, 2.0)).fit(images, labels)
    assert model.classes_ == ("0", "1", "2")
    assert model.predict_proba(images)[0].shape == (24, 32, 3)
    assert Segmenter(loss="trees").fit(images, masks).classes_ == ("background", "foreground")
    with pytest.raises(InvalidProblemError, match="not both"):
        Segmenter().fit(images, [masks[0], labels[1]])
    with pytest.raises(InvalidProblemError, match=r"rho: expected 0\.5 with label maps"):
        Segmenter(rho=0.3).fit(images, labels)
    with pytest.raises(InvalidProblemError, match="expected labels of bytes"):
        Segmenter(classes=("a", "b")).fit(images, masks)


WRONG = {
    "ridge": (0.0, -1.0, np.nan, "much"), "solver": ("magic", None), "loss": ("magic", 3),
    "rho": (2.0, -1.0, np.nan), "relative_gap": (-1.0, np.inf, None), "max_side": (0, 1.5, "auto"),
    "max_seconds": (-1.0, np.nan, "long"), "max_iterations": (-1, 1.5), "position": ("no", 2),
    "marginal_gap": (0.0, np.nan), "random_state": (-1, 0.5, None),
    "unaries": ("magic", None, 3), "class_weights": ((1.0, -1.0), (np.nan, 1.0)),
    "classes": (("one",), ()),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ALL for name in kind().get_params()]
)
def test_every_option_is_refused_by_name_when_fitted(kind, name):
    for wrong in WRONG[name]:
        with pytest.raises(InvalidProblemError, match=f"^{name.replace('_', '.')}"):
            kind(**{name: wrong}).fit([None], [None])


def items(seed, count=8):
    rng = np.random.default_rng(seed)
    truth = np.array([3.0, -2.0, 1.0])
    made = []
    for _ in range(count):
        features = rng.normal(size=(4, 4, 3))
        structure = BipartiteStructure(BipartiteItems(features), np.arange(4))
        best = structure.oracle.compute_extreme_point(structure.scores(truth)).vertex
        made.append(BipartiteStructure(BipartiteItems(features), best.places % 4))
    return made


@pytest.mark.parametrize("solver", ["block-coordinate", "frank-wolfe", "fully-corrective", "theta"])
def test_structured_models_find_what_was_planted(solver):
    model = StructuredModel(solver=solver, relative_gap=0.1, ridge=3.0, max_iterations=300)
    model.set_params(marginal_gap=0.3).fit(items(0))
    assert model.result_.is_certified
    assert model.score(items(1)) > 0.6  # a heavy ridge: chance would find a quarter
    (tau,) = model.predict_proba(items(1, 1))
    assert tau.sum(axis=0) == pytest.approx(np.ones(4))
    with pytest.raises(InvalidProblemError, match="solver"):
        clone(model).set_params(solver="magic").fit(items(0))


def test_structured_models_are_searched():
    model = StructuredModel(relative_gap=0.3, max_iterations=40)
    search = GridSearchCV(model, {"ridge": [1.0, 10.0]}, cv=2).fit(items(2, 4))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
