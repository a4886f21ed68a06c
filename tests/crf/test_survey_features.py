"""Survey features stay factored and mean what the explicit ones mean."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import Survey, check_pairs
from engine.crf.survey_features import SurveyFeatures, make_survey_features, pair_features
from tests.learning.roommates.cohorts import SMALL, random_pairs, random_survey, standard_form


def explicit_features(survey, features, i, j):
    """The features of one pair, written out as the documentation says."""
    row = []
    for q, question in enumerate(features.questionnaire.questions):
        a, b = int(survey.answers[i, q]), int(survey.answers[j, q])
        given = a >= 0 and b >= 0
        step = float(a != b) if question.kind == "nominal" else float(abs(a - b))
        row.append(step if given else 0.0)
        for low in range(question.n_levels):
            for high in range(low, question.n_levels):
                row.append(float(given and (min(a, b), max(a, b)) == (low, high)))
        if features.has_blanks[q]:
            row += [float((a < 0) != (b < 0)), float(a < 0 and b < 0)]
    return np.array(row)


def test_the_standard_form_has_200_features():
    questionnaire = standard_form()
    assert questionnaire.n_features == 200
    survey = random_survey(30, questionnaire=questionnaire)
    assert make_survey_features([survey]).n_features == 200


def test_each_question_with_blanks_adds_two():
    survey = random_survey(30)
    answers = survey.answers.copy()
    answers[3, 1] = -1
    features = make_survey_features([Survey(survey.ids, SMALL, answers)])
    assert features.has_blanks == (False, True, False)
    assert features.n_features == SMALL.n_features + 2


@pytest.mark.parametrize("blanks", [0.0, 0.2])
def test_scores_and_statistics_agree_with_explicit_features(blanks):
    rng = np.random.default_rng(0)
    survey = random_survey(12, 3, blanks=blanks)
    features = make_survey_features([survey])
    theta = rng.normal(size=features.n_features)
    scores = features.scores(survey, theta)
    tau = rng.random((12, 12))
    tau = tau + tau.T
    np.fill_diagonal(tau, 0.0)
    expected = np.zeros(features.n_features)
    for i in range(12):
        for j in range(i):
            row = explicit_features(survey, features, i, j)
            assert scores[i, j] == pytest.approx(row @ theta, abs=1e-12)
            expected += tau[i, j] * row
    one_hot = features.one_hot(survey)
    assert features.statistics(one_hot.T @ tau @ one_hot) == pytest.approx(expected)
    pairs = random_pairs(12)
    rows = sum(explicit_features(survey, features, i, j) for i, j in pairs)
    assert features.pair_statistics(survey, pairs) == pytest.approx(rows)


@pytest.mark.parametrize("blanks", [0.0, 0.2])
def test_sparse_pair_features_agree_with_explicit_ones(blanks):
    survey = random_survey(10, 5, blanks=blanks)
    features = make_survey_features([survey])
    pairs = random_pairs(10)
    codes = features.codes(survey)
    places, values = pair_features(features, codes[pairs[:, 0]], codes[pairs[:, 1]])
    for (i, j), place, value in zip(pairs, places, values, strict=True):
        row = np.zeros(features.n_features)
        np.add.at(row, place, value)
        assert row == pytest.approx(explicit_features(survey, features, i, j))


def test_parts_per_question_add_up_to_the_score():
    survey = random_survey(8)
    features = make_survey_features([survey])
    theta = np.random.default_rng(1).normal(size=features.n_features)
    parts = features.pair_scores(survey, theta, np.array([[2, 5]]))
    assert parts.shape == (1, 3)
    assert parts.sum() == pytest.approx(features.scores(survey, theta)[2, 5])


def test_a_blank_that_was_never_learned_neither_helps_nor_hurts():
    """It scores as the average over the answers of the past, not as the first answer."""
    past = random_survey(40, 1)
    features = make_survey_features([past])
    theta = np.random.default_rng(2).normal(size=features.n_features)
    answers = past.answers.copy()
    answers[0, 1] = -1
    now = Survey(past.ids, SMALL, answers)
    part = features.pair_scores(now, theta, np.array([[0, 7]]))[0, 1]
    block = features.question_block(theta, 1)
    share = np.bincount(past.answers[:, 1], minlength=3) / 40
    assert part == pytest.approx(share @ block[:3, past.answers[7, 1]])


def test_constant_baseline_is_minus_distance():
    survey = random_survey(6)
    features = make_survey_features([survey])
    scores = features.scores(survey, features.constant_baseline())
    a, b = survey.answers[1].astype(int), survey.answers[4].astype(int)
    expected = -abs(a[0] - b[0]) - abs(a[1] - b[1]) - float(a[2] != b[2])
    assert scores[1, 4] == pytest.approx(expected)


def test_cohorts_with_other_questions_are_refused_by_name():
    other = Questionnaire((*SMALL.questions[:2], Question("Films", "binary", ("No", "Yes"))))
    with pytest.raises(InvalidProblemError, match="Music is missing"):
        make_survey_features([random_survey(6), random_survey(6, questionnaire=other)])


@pytest.mark.parametrize(
    ("kind", "levels", "message"),
    [
        ("ordinal", ("Same",), "every student gave the same answer"),
        ("binary", ("A", "B", "C"), "two answers"),
        ("ordinal", ("A", "A"), "listed twice"),
        ("nominal", ("A", ""), "none empty, received ''"),
        ("nominal", ("A", " B"), "without space around them"),
        ("nominal", ("A", "B\u00a0"), "without space around them"),
        ("ranked", ("A", "B"), "expected kind"),
        ("nominal", tuple(map(str, range(60))), "at most 50"),
    ],
)
def test_bad_questions_are_refused(kind, levels, message):
    with pytest.raises(InvalidProblemError, match=message):
        Question("Bedtime", kind, levels)


def test_questionnaires_survive_json():
    assert Questionnaire.from_json(SMALL.to_json()) == SMALL


@pytest.mark.parametrize(
    "text",
    [
        '{"questions": [{"name": "x"}]}',
        '{"questions": [{"name": "x", "kind": "nominal", "levels": "abc"}]}',
        '{"questions": [{"name": "x", "kind": "nominal", "levels": {"a": 1, "b": 2}}]}',
        "[" * 100_000,
    ],
)
def test_other_json_is_no_schema(text):
    with pytest.raises(InvalidProblemError, match="schema must read"):
        Questionnaire.from_json(text)


def test_surveys_refuse_repeated_ids_and_codes_out_of_range():
    answers = np.zeros((2, 3), dtype=np.int16)
    with pytest.raises(InvalidProblemError, match="Row 2: A appears twice, first in row 1"):
        Survey(("A", "A"), SMALL, answers)
    answers[1, 1] = 3
    with pytest.raises(InvalidProblemError, match="B, Bedtime"):
        Survey(("A", "B"), SMALL, answers)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 0)], "paired with themselves"),
        ([(0, 9)], "not among"),
        ([(0, 1), (1, 2)], "already in another pair"),
        ([(0, 1, 2)], "shape"),
    ],
)
def test_bad_pairs_are_refused(pairs, message):
    with pytest.raises(InvalidProblemError, match=message):
        check_pairs(np.array(pairs), 4, ("a", "b", "c", "d"))


def test_features_are_a_value():
    survey = random_survey(6)
    assert make_survey_features([survey]) == make_survey_features([survey])
    assert isinstance(make_survey_features([survey]), SurveyFeatures)
