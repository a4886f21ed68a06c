"""The vectorised means agree with summing over allowed partners one by one."""

import numpy as np
import pytest

from engine import Question, Questionnaire, Rules, Survey, explain_pair
from engine.crf.survey_features import make_survey_features
from engine.learning.roommates.explanation import allowed_partners
from engine.learning.roommates.model import make_roommate_model
from engine.learning.roommates.partner_means import compute_partner_means


def make_case(seed: int) -> tuple[object, Survey]:
    rng = np.random.default_rng(seed)
    questionnaire = Questionnaire(
        (Question("Tidy", "ordinal", ("1", "2", "3")), Question("Smokes", "binary", ("No", "Yes")))
    )
    answers = np.stack([rng.integers(-1, 3, 14), rng.integers(-1, 2, 14)], axis=1)
    survey = Survey(
        tuple(f"S-{k}" for k in range(14)),
        questionnaire,
        answers.astype(np.int16),
        {"Hall": tuple(rng.choice(["a", "b", ""], 14).tolist())},
    )
    features = make_survey_features([survey])
    model = make_roommate_model(rng.normal(size=features.n_features), features, 1.0, 1.0)
    return model, survey


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        Rules(same=("Hall",)),
        Rules(same=("Hall",), forbids=((0, 1), (1, 0), (2, 9), (3, 4)), single=(5, 7)),
        Rules(forbids=((0, 1), (0, 5)), single=(5,)),
    ],
)
def test_means_agree_with_explanations(rules: Rules) -> None:
    model, survey = make_case(3)
    means = compute_partner_means(model, survey, rules)
    for i in range(14):
        assert means.counts[i] == allowed_partners(survey, i, rules).sum()
    for i, j in ((0, 2), (3, 8), (6, 13)):
        if means.counts[i] + means.counts[j]:
            explanation = explain_pair(model, survey, i, j, rules)
            average = means.of_pairs(np.array([[i, j]])).sum()
            assert average == pytest.approx(explanation.average, abs=1e-12)
