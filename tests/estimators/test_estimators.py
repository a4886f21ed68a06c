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
THEIR_CHECKS = (
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimator_cloneable,
)


@pytest.mark.parametrize("check", THEIR_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ALL)
def test_their_checks_pass(kind, check):
    check(kind.__name__, kind())


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
    model = Segmenter(relative_gap=1e-2).fit(images[:2], masks[:2])
    (mask,), (tau,) = model.predict(images[2:]), model.predict_proba(images[2:])
    assert mask.shape == masks[2].shape == tau.shape
    assert model.score(images[:2], masks[:2]) > 0.8
    assert clone(model).get_params() == model.get_params()


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
