"""Learning from rooms of any size."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.roster import as_rooms, roommate_shares
from engine.datasets.roster_sampler import capacities_for, sample_roster
from engine.datasets.university import simulate_university
from engine.learning.roommates.evaluation import evaluate_roommates
from engine.learning.roommates.training import train_roommates


def test_a_roster_of_doubles_is_exactly_a_file_of_pairs() -> None:
    year = simulate_university(60, 1, rng=np.random.default_rng(0)).cohorts[0]
    room = np.full(60, -1)
    room[year.pairs[:, 0]] = room[year.pairs[:, 1]] = np.arange(30)[::-1]
    by_pairs = train_roommates([(year.survey, year.pairs)], max_seconds=200)
    by_rooms = train_roommates([(year.survey, room)], max_seconds=200)
    assert by_rooms.model.theta == pytest.approx(by_pairs.model.theta, abs=1e-12)
    first = evaluate_roommates(by_pairs.model, year.survey, year.pairs)
    second = evaluate_roommates(by_pairs.model, year.survey, room)
    assert (first.auc, first.hamming_error) == (second.auc, second.hamming_error)


def test_weights_are_recovered_from_rooms_of_mixed_sizes() -> None:
    rng = np.random.default_rng(3)
    university = simulate_university(240, 2, rng=rng, strength=24.0)
    years = []
    for cohort in university.cohorts:
        scores = university.features.scores(cohort.survey, university.theta)
        sample = sample_roster(scores, capacities_for(240, (2, 3, 3, 4)), rng=rng)
        years.append((cohort.survey, sample.room))
    trained = train_roommates(years, ridge=30.0, max_seconds=300)
    assert trained.result.relative_gap <= 1e-4
    survey = university.cohorts[0].survey
    truth = university.features.scores(survey, university.theta)
    learned = trained.model.scores(survey)
    upper = np.triu_indices(240, 1)
    assert np.corrcoef(_centred(truth)[upper], _centred(learned)[upper])[0, 1] > 0.85
    assert evaluate_roommates(trained.model, *years[1]).auc > 0.6


def _centred(scores: np.ndarray) -> np.ndarray:
    """Scores without what belongs to one student: that part is not identified."""
    plain = scores - np.diag(np.diag(scores))
    mean = plain.sum(axis=1) / (len(scores) - 2)
    return plain - mean[:, None] - mean


def test_shares_of_a_room_sum_to_one_for_each_resident() -> None:
    room = as_rooms(np.array([0, 0, 0, 1, 1, 2, -1, 0]), 8)
    pairs, shares = roommate_shares(room)
    total = np.bincount(pairs.ravel(), weights=np.repeat(shares, 2), minlength=8)
    assert total.tolist() == pytest.approx([1, 1, 1, 1, 1, 0, 0, 1])


def test_an_odd_number_of_residents_leaves_one_of_an_odd_room_out() -> None:
    room = as_rooms(np.array([0, 0, 0, 1, 1]), 5)
    assert room.tolist() == [0, 0, -1, 1, 1]


def test_a_roster_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="expected one for each of 5 students"):
        as_rooms(np.zeros(4), 5)
