"""Rounding: groups that fit together are taken, the most used first, and nobody twice."""

import numpy as np
import pytest

from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.best import Best
from engine.rooms.columns import Columns
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import formulate
from engine.rooms.prices import Prices
from engine.rooms.problem import RoomProblem
from engine.rooms.rounding import first_fit


def problem_of(scores: np.ndarray, capacities: list[int], rules: RoomRules) -> RoomProblem:
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), np.array(capacities))
    return formulate(scores, {}, rooms, rules).problem


@pytest.mark.parametrize("seed", range(5))
def test_groups_share_nobody_and_find_rooms_of_their_kinds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(12, 12))
    problem = problem_of(scores + scores.T, [2, 2, 3, 3], RoomRules())
    columns = Columns(problem)
    for kind in range(problem.n_kinds):
        for _ in range(40):
            group = rng.choice(12, size=problem.capacity[kind], replace=False)
            columns.add(group[np.newaxis], np.array([kind]), np.array([-1]))
    prices = Prices.zero(problem)
    shares = np.where(np.arange(len(columns)) % 7 == seed, 0.5, 0.0)
    chosen = first_fit(problem, columns, prices, shares)
    members = columns.members[chosen]
    people = members[members >= 0]
    assert len(np.unique(people)) == len(people)
    assert np.all(np.bincount(columns.kind[chosen], minlength=problem.n_kinds) <= problem.count)
    reduced = columns.reduced_values(prices)
    assert reduced[chosen[0]] == reduced[shares > 0.0].max()
    # Whatever was left out shares somebody, or the last room of its kind, with what was taken.
    is_taken = np.isin(columns.members, people) & (columns.members >= 0)
    is_full = np.bincount(columns.kind[chosen], minlength=problem.n_kinds) == problem.count
    assert np.all(is_taken.any(axis=1) | is_full[columns.kind])


def test_a_placement_is_worth_its_groups_after_any_swaps() -> None:
    """Where two may not live together, sums of swaps drifted by 3e-9, above the proved bound."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 40))
    forbids = tuple((k, k + 1) for k in range(0, 38, 2))
    problem = problem_of(scores + scores.T, [4] * 10, RoomRules(forbids=forbids))
    exchange = Exchange(problem)
    best = Best.of(exchange, 0.0)
    exchange.place_greedily(rng)
    while exchange.swap(rng) > 0.0:
        pass
    assert best.take(exchange)
    fresh = problem.group_values(*exchange.groups()).sum()
    assert best.value == pytest.approx(fresh, abs=1e-11)
