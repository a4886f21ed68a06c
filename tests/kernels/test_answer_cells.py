"""Counts of pairs of answers, beside the features of every pair."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.hunts.years import make_year, questions, random_answers
from engine.crf.survey_features import make_survey_features, pair_features
from engine.structures.survey import outer_products


@pytest.mark.parametrize("levels", [(5,), (2, 3), (3, 9, 2, 5)])
def test_outer_products_are_those_of_all_pairs(levels):
    rng = np.random.default_rng(0)
    asked = questions(levels)
    answers = random_answers(14, asked, rng)
    answers[3, 0] = -1  # a question left blank
    survey, _ = make_year(answers, rng.permutation(14).reshape(-1, 2), asked)
    features = make_survey_features([survey])
    codes = features.codes(survey)
    rates = rng.normal(size=(14, 14))
    rates = rates + rates.T
    np.fill_diagonal(rates, 0.0)
    first, second = np.triu_indices(14, 1)
    places, values = pair_features(features, codes[first], codes[second])
    dense = np.zeros((len(first), features.n_features))
    for k in range(places.shape[1]):
        dense[np.arange(len(first)), places[:, k]] += values[:, k]
    wanted = dense.T @ (rates[first, second][:, None] * dense)
    assert_allclose(outer_products(features, codes, rates), wanted, atol=1e-12)
