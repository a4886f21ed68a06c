"""Perceptron and support vector machine on matchings: optimality, certificates, separable data."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from engine.baselines import structured_svm
from engine.baselines.decoding import decode
from engine.baselines.structured_perceptron import train_structured_perceptron
from engine.baselines.structured_svm import train_structured_svm
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.crf.bipartite import BipartiteItems
from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import Survey
from engine.crf.survey_features import make_survey_features
from engine.solvers.control import Callbacks
from engine.structures.bipartite import BipartiteStructure
from engine.structures.survey import SurveyStructure
from tests.reference.exact_matchings import list_matchings


def bipartite_examples(
    n_examples: int, n: int, n_features: int, noise: float, seed: int
) -> tuple[list[BipartiteStructure], list[np.ndarray], list[np.ndarray]]:
    """Observations whose truth is the best assignment under known weights plus noise."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(n_features)
    examples, tables, truths = [], [], []
    for _ in range(n_examples):
        features = rng.standard_normal((n, n, n_features))
        scores = features @ theta + noise * rng.standard_normal((n, n))
        best = max(permutations(range(n)), key=lambda y: scores[np.arange(n), list(y)].sum())
        examples.append(BipartiteStructure(BipartiteItems(features), np.array(best)))
        tables.append(features)
        truths.append(np.array(best))
    return examples, tables, truths


def hinge_objective(
    theta: np.ndarray, ridge: float, tables: list[np.ndarray], truths: list[np.ndarray]
) -> float:
    """The regularised hinge loss by enumeration of every assignment."""
    total = 0.5 * ridge * theta @ theta
    for features, truth in zip(tables, truths, strict=True):
        scores, rows = features @ theta, np.arange(len(truth))
        observed = scores[rows, truth].sum()
        total += max(
            np.mean(np.array(y) != truth) - observed + scores[rows, list(y)].sum()
            for y in permutations(range(len(truth)))
        )
    return float(total)


def tiny_survey(seed: int) -> tuple[Survey, np.ndarray]:
    rng = np.random.default_rng(seed)
    questions = (
        Question("Smoking", "binary", ("no", "yes")),
        Question("Bedtime", "ordinal", ("early", "middle", "late")),
    )
    questionnaire = Questionnaire(questions)
    answers = np.column_stack([rng.integers(0, 2, 8), rng.integers(0, 3, 8)]).astype(np.int16)
    survey = Survey(tuple(f"S{k}" for k in range(8)), questionnaire, answers)
    return survey, np.arange(8).reshape(4, 2)


def test_svm_certifies_its_optimum_against_enumeration() -> None:
    examples, tables, truths = bipartite_examples(6, 5, 4, noise=1.0, seed=1)
    result = train_structured_svm(
        examples, ridge=0.05, rng=np.random.default_rng(0), relative_gap=1e-8
    )
    assert result.status is Status.CONVERGED
    exact = hinge_objective(result.theta, 0.05, tables, truths)
    assert result.objective == pytest.approx(exact, rel=1e-9)
    assert result.lower_bound <= exact
    rng = np.random.default_rng(5)
    for _ in range(50):  # nothing in sight is better than the certificate allows
        other = result.theta + rng.standard_normal(4) * rng.choice([0.01, 0.1, 1.0])
        assert hinge_objective(other, 0.05, tables, truths) >= result.lower_bound - 1e-9


def test_svm_bounds_are_monotone_and_never_cross() -> None:
    examples, _, _ = bipartite_examples(5, 5, 6, noise=2.0, seed=3)
    result = train_structured_svm(examples, ridge=0.1, rng=np.random.default_rng(0), max_passes=60)
    upper = [point.objective for point in result.trajectory]
    lower = [point.lower_bound for point in result.trajectory]
    assert (np.diff(upper) <= 0).all()
    assert (np.diff(lower) >= -1e-12).all()
    assert all(low <= up for low, up in zip(lower, upper, strict=True))


@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
def test_svm_certifies_that_nothing_can_be_learned_from_few_large_examples(ridge: float) -> None:
    """The dual must mix about as many answers as there are features; it used to stop at a gap of 1.

    Random pairs lie within the hull of the wrong assignments, so that theta = 0 is the optimum.
    """
    rng = np.random.default_rng(6)
    examples = [
        BipartiteStructure(
            BipartiteItems(30.0 * rng.standard_normal((30, 30, 20))), rng.permutation(30)
        )
        for _ in range(2)
    ]
    result = train_structured_svm(examples, ridge=ridge, rng=rng, relative_gap=1e-6, max_passes=40)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(2.0)
    assert result.lower_bound >= 2.0 * (1 - 1e-6)
    assert np.abs(result.theta).max() < 1e-6
    assert result.oracle_calls == 2 * (2 * result.passes - 1)


def test_svm_converges_although_it_forgets_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_svm, "MAX_CORNERS", 2)
    examples, tables, truths = bipartite_examples(4, 5, 12, noise=3.0, seed=8)
    result = train_structured_svm(
        examples, ridge=0.01, rng=np.random.default_rng(0), relative_gap=1e-6
    )
    assert result.status is Status.CONVERGED
    assert result.oracle_calls > 2 * 2 * (12 + 4)
    exact = hinge_objective(result.theta, 0.01, tables, truths)
    assert result.objective == pytest.approx(exact, rel=1e-9)
    assert exact - result.lower_bound <= 1e-6 * exact + 1e-12


@pytest.mark.parametrize("method", ["perceptron", "svm"])
def test_separable_data_is_learned_without_a_mistake(method: str) -> None:
    examples, _, _ = bipartite_examples(10, 5, 3, noise=0.0, seed=2)
    rng = np.random.default_rng(0)
    if method == "perceptron":
        result = train_structured_perceptron(examples, rng=rng, max_passes=500)
        assert result.status is Status.CONVERGED
    else:
        result = train_structured_svm(examples, ridge=1e-5, rng=rng)
    losses = [decode(example, result.theta).loss for example in examples]
    limit = 0.0 if method == "svm" else 0.04  # the average trails the separating last iterate
    assert np.mean(losses) <= limit


def test_perceptron_repeats_with_the_seed_and_can_be_stopped() -> None:
    examples, _, _ = bipartite_examples(6, 5, 4, noise=1.0, seed=4)
    first, second = (
        train_structured_perceptron(examples, rng=np.random.default_rng(7), max_passes=5)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.theta, second.theta)
    assert first.status is Status.ITERATION_LIMIT
    assert first.oracle_calls == 30
    stopped = train_structured_perceptron(
        examples, rng=np.random.default_rng(7), callbacks=Callbacks(should_stop=lambda: True)
    )
    assert (stopped.status, stopped.passes) == (Status.CANCELLED, 1)


@pytest.mark.parametrize("loss_weight", [0.0, 1.0])
def test_survey_example_decodes_like_enumeration(loss_weight: float) -> None:
    survey, pairs = tiny_survey(0)
    features = make_survey_features([survey])
    example = SurveyStructure(survey, pairs, features, 1.0)
    theta = np.random.default_rng(1).standard_normal(features.n_features)
    scores = features.scores(survey, theta)
    truth = {tuple(pair) for pair in pairs.tolist()}

    def value(matching: list[tuple[int, int]]) -> float:
        loss = 1 - len(truth & set(matching)) / 4
        return sum(scores[i, j] for i, j in matching) + loss_weight * loss

    best = max(value(y) for y in list_matchings(list(range(8)), perfect=True))
    answer = decode(example, theta, loss_weight)
    assert theta @ answer.statistics + loss_weight * answer.loss == pytest.approx(best, abs=1e-9)
    assert answer.excess <= 1e-9


def test_bad_examples_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="permutation"):
        BipartiteStructure(BipartiteItems(np.zeros((3, 3, 2))), np.array([0, 0, 1]))
    with pytest.raises(InvalidProblemError, match="as many rows as columns"):
        BipartiteItems(np.zeros((3, 4, 2)))
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidProblemError, match="no observation"):
        train_structured_perceptron([], rng=rng)
    with pytest.raises(InvalidProblemError, match="ridge"):
        train_structured_svm([], ridge=0.0, rng=rng)


def test_a_structure_without_labels_is_refused_by_name() -> None:
    unlabelled = SimpleNamespace(observed=np.zeros(2))
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidProblemError, match="has no labels"):
        train_structured_perceptron([unlabelled], rng=rng)
    with pytest.raises(InvalidProblemError, match="has no labels"):
        train_structured_svm([unlabelled], ridge=1.0, rng=rng)
