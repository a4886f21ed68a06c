"""First prices of rooms: how near they come to the best bound, and what they do with nothing."""

import numpy as np
import pytest

from engine.core.arguments import IntArray
from engine.core.progress import never_stop
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.columns import Columns
from engine.rooms.descent import descend
from engine.rooms.formulation import formulate
from engine.rooms.placement import place_in_rooms
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.problem import RoomProblem


def problem_of(n: int, capacities: IntArray, previous: IntArray | None = None) -> RoomProblem:
    scores = np.random.default_rng(3).normal(size=(n, n))
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), capacities)
    return formulate(scores + scores.T, {}, rooms, RoomRules(), previous, 0.5).problem


def nothing(problem: RoomProblem) -> Prices:
    return Prices(
        np.zeros(problem.n_atoms), np.zeros(problem.n_kinds), np.zeros(len(problem.row_kind))
    )


def test_the_bound_of_descended_prices_is_near_the_best_and_below_no_placement() -> None:
    capacities = np.repeat([1, 2, 3, 4], [6, 14, 8, 2])
    problem = problem_of(66, capacities)
    pricer = Pricer(problem)
    prices = descend(problem, pricer, Columns(problem), nothing(problem), never_stop)
    bound = pricer.search(prices, is_exact=True, tolerance=1e-9).bound
    scores = problem.scores
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), capacities)
    best = place_in_rooms(scores, rooms, gap=1e-3)
    assert best.weight <= bound <= 1.1 * best.upper_bound


@pytest.mark.parametrize("score", [0.0, -1.0])
def test_where_no_group_is_worth_anything_prices_stay(score: float) -> None:
    scores = np.full((6, 6), score)
    problem = formulate(scores, {}, Rooms(("A", "B"), np.array([3, 3])), RoomRules()).problem
    prices = descend(problem, Pricer(problem), Columns(problem), nothing(problem), never_stop)
    assert not prices.atoms.any()


def test_what_staying_gains_is_counted_by_room_and_student() -> None:
    problem = problem_of(4, np.array([2, 2]), np.array([0, 0, 1, 1]))
    members = np.array([[0, 1], [0, 1], [0, 2], [0, 1]])
    gains = problem.group_values(members, np.zeros(4, dtype=np.int64), np.array([-1, 0, 1, 1]))
    plain = problem.group_values(members, np.zeros(4, dtype=np.int64), np.full(4, -1))
    assert (gains - plain).tolist() == pytest.approx([0.0, 1.0, 0.5, 0.0])
