"""Simulated universities: the chain draws from the model, and learning recovers the truth."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.datasets.matching_sampler import sample_matching
from engine.datasets.university import simulate_university
from engine.learning.roommates.explanation import question_weights
from engine.learning.roommates.training import train_roommates
from tests.reference import perfect_matchings as reference


def test_the_chain_draws_matchings_with_their_probabilities():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6, 6))
    scores = scores + scores.T
    log_z = reference.log_partition(scores)
    draws = 1500
    counts = Counter()
    for _ in range(draws):
        sample = sample_matching(scores, rng=rng)
        counts[tuple(sorted(tuple(sorted(p)) for p in sample.pairs.tolist()))] += 1
    chi_square = 0.0
    for pairs in reference.enumerate_pairs(tuple(range(6))):
        expected = draws * np.exp(sum(scores[p] for p in pairs) - log_z)
        chi_square += (counts[tuple(sorted(pairs))] - expected) ** 2 / max(expected, 1.0)
    assert chi_square < 45.0  # 14 degrees of freedom: passed by chance once in 25,000


def test_two_starts_agree_before_a_sample_is_taken():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(100, 100)) * 2
    sample = sample_matching((scores + scores.T) / 2, rng=rng)
    assert sample.has_mixed
    assert sample.score_difference <= 3.0
    assert sorted(sample.pairs.ravel().tolist()) == list(range(100))


def test_every_answer_occurs_in_small_years_too():
    university = simulate_university(40, 2, rng=np.random.default_rng(0))
    for year in university.cohorts:
        for q, question in enumerate(year.survey.questionnaire.questions):
            assert set(year.survey.answers[:, q].tolist()) == set(range(question.n_levels))


def test_the_same_seed_gives_the_same_university():
    one, two = (simulate_university(20, 1, rng=np.random.default_rng(5)) for _ in "ab")
    assert np.array_equal(one.cohorts[0].pairs, two.cohorts[0].pairs)
    assert np.array_equal(one.cohorts[0].survey.answers, two.cohorts[0].survey.answers)


def test_pairs_by_gender_agree_in_it_and_blanks_appear():
    university = simulate_university(
        40, 1, rng=np.random.default_rng(2), by_gender=True, blank_share=0.1
    )
    year = university.cohorts[0]
    genders = np.array(year.survey.attributes["Gender"])
    assert (genders[year.pairs[:, 0]] == genders[year.pairs[:, 1]]).all()
    assert year.survey.blanks.sum() > 0


def test_a_gender_whose_chain_has_not_mixed_is_not_forgotten(monkeypatch):
    drawn = []

    def stuck_at_first(scores, *, rng):
        sample = sample_matching(scores, rng=rng)
        if not drawn:
            sample = replace(sample, sweeps=20_000, score_difference=9.0, has_mixed=False)
        drawn.append(sample)
        return sample

    monkeypatch.setattr("engine.datasets.university.sample_matching", stuck_at_first)
    university = simulate_university(40, 1, rng=np.random.default_rng(2), by_gender=True)
    year = university.cohorts[0]
    assert len(drawn) == 2
    assert not year.sample.has_mixed
    assert year.sample.score_difference == 9.0
    assert year.sample.sweeps == 20_000
    assert np.array_equal(year.sample.pairs, year.pairs)


def test_odd_years_and_misfitting_frequencies_are_refused():
    with pytest.raises(InvalidProblemError, match="even number"):
        simulate_university(7, 1, rng=np.random.default_rng(0))
    with pytest.raises(InvalidProblemError, match="frequencies"):
        simulate_university(8, 1, rng=np.random.default_rng(0), frequencies=[[1.0]])


@pytest.mark.slow
def test_learning_recovers_the_weights_that_made_the_pairs():
    university = simulate_university(500, 3, rng=np.random.default_rng(3))
    trained = train_roommates(
        [(year.survey, year.pairs) for year in university.cohorts], ridge=10.0
    )
    truth = university.theta[university.features.feature_offsets[:-1]]
    learned = np.array([row.step_effect for row in question_weights(trained.model)])
    assert np.corrcoef(truth, learned)[0, 1] > 0.9
    strong = np.abs(truth) > 0.2
    assert (np.sign(learned[strong]) == np.sign(truth[strong])).all()
