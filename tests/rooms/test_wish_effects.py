"""Estimated effects of wishes: against the best pairs of small problems, by enumeration."""

import numpy as np
import pytest

from engine import InvalidProblemError
from engine.rooms.wish_effects import estimate_wish_effects

VALUES = (0.0, 0.2, 1.0, 3.0, 10.0)


def all_pairings(left: list[int]) -> list[list[tuple[int, int]]]:
    """Return all ways to part an even number of students into pairs."""
    if not left:
        return [[]]
    first, rest = left[0], left[1:]
    return [
        [(first, other), *pairing]
        for k, other in enumerate(rest)
        for pairing in all_pairings(rest[:k] + rest[k + 1 :])
    ]


def scores_of(rng: np.random.Generator, n: int) -> np.ndarray:
    answers = rng.integers(0, 5, size=(n, 6))
    scores = -0.3 * np.abs(answers[:, np.newaxis] - answers).sum(axis=2)
    noise = rng.normal(0.0, 0.2, size=(n, n))
    return scores + (noise + noise.T) / 2


def test_one_wish_costs_what_the_best_pairs_with_it_lose() -> None:
    """Near the truth, and above it only by what halves of pairs are worth beyond whole pairs."""
    rng = np.random.default_rng(3)
    pairings = all_pairings(list(range(8)))
    near = 0
    for _ in range(60):
        scores = scores_of(rng, 8)
        wish = (0, 1)
        worth = [sum(scores[pair] for pair in pairing) for pairing in pairings]
        with_wish = [w for w, pairing in zip(worth, pairings, strict=True) if wish in pairing]
        truth = max(worth) - max(with_wish)
        (found,) = estimate_wish_effects(scores, np.array([wish]), [1e6])
        assert found.n_honoured == 1
        assert found.cost <= truth + 1e-9 + _relaxed(scores) - max(worth)
        near += abs(found.cost - truth) <= 0.35 * (1.0 + truth)
    assert near >= 40


def _relaxed(scores: np.ndarray) -> float:
    """Return the value of the best pairs when halves of pairs are allowed."""
    from engine import assign

    table = scores.copy()
    np.fill_diagonal(table, -np.inf)
    return assign(table).weight / 2


def test_more_is_honoured_the_harder_one_tries_and_never_two_wishes_of_one_student() -> None:
    rng = np.random.default_rng(5)
    scores = scores_of(rng, 60)
    wishes = np.array([(0, k) for k in range(1, 11)] + [(20, 21), (22, 23)])
    found = estimate_wish_effects(scores, wishes, VALUES)
    counts = [effect.n_honoured for effect in found]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == 3
    costs = [effect.cost for effect in found]
    assert costs == sorted(costs)
    assert all(0 <= effect.cost_share < 1 for effect in found)


def test_forbidden_pairs_are_never_honoured() -> None:
    scores = scores_of(np.random.default_rng(1), 6)
    scores[0, 1] = scores[1, 0] = -np.inf
    (found,) = estimate_wish_effects(scores, np.array([(0, 1), (2, 3)]), [100.0])
    assert found.n_honoured == 1


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_cohorts_have_an_estimate(n: int) -> None:
    wishes = np.array([(0, 1)] if n == 2 else [], dtype=np.int64).reshape(-1, 2)
    found = estimate_wish_effects(np.zeros((n, n)), wishes, [1.0])
    assert found[0].n_honoured == len(wishes)
    assert found[0].cost == 0.0


def test_nobody_who_may_share_a_room_honours_no_wish() -> None:
    (found,) = estimate_wish_effects(np.full((4, 4), -np.inf), np.array([(0, 1)]), [1.0])
    assert (found.n_honoured, found.cost) == (0, 0.0)


@pytest.mark.parametrize("n_lonely", [0, 1, 3])
def test_students_who_may_share_with_nobody_change_no_estimate(n_lonely: int) -> None:
    """One student alone in a group made every estimate 0."""
    scores = np.full((40 + n_lonely, 40 + n_lonely), -np.inf)
    scores[:40, :40] = scores_of(np.random.default_rng(2), 40)
    wishes = np.array([(k, k + 20) for k in range(10)])
    found = estimate_wish_effects(scores, wishes, VALUES)
    alone = estimate_wish_effects(scores[:40, :40], wishes, VALUES)
    assert [e.n_honoured for e in found] == [e.n_honoured for e in alone]
    assert [e.cost for e in found] == pytest.approx([e.cost for e in alone])
    assert found[-1].n_honoured == 10


def test_a_student_whom_the_rules_leave_over_stays_alone() -> None:
    """One popular student may share with three who may share with nobody else."""
    scores = np.full((24, 24), -np.inf)
    scores[:20, :20] = scores_of(np.random.default_rng(4), 20)
    scores[20, 21:] = scores[21:, 20] = 0.0
    (found,) = estimate_wish_effects(scores, np.array([(0, 1), (20, 21)]), [1e6])
    assert found.n_honoured == 2


def test_senseless_arguments_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="below 0"):
        estimate_wish_effects(np.zeros((2, 2)), np.array([(0, 1)]), [-1.0])
    with pytest.raises(InvalidProblemError, match="himself or herself"):
        estimate_wish_effects(np.zeros((2, 2)), np.array([(1, 1)]), [1.0])
