"""Groups completed greedily: what they are worth, and how near the best they come."""

import numpy as np
import pytest

from engine.core.arguments import IntArray
from engine.crf.room_rules import Preference, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.formulation import formulate
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.problem import RoomProblem

CAPACITIES = np.repeat([1, 2, 3, 4], [6, 14, 8, 2])


def problem_of(n: int, capacities: IntArray, previous: IntArray | None = None) -> RoomProblem:
    rng = np.random.default_rng(3)
    scores, r = rng.normal(size=(n, n)), len(capacities)
    hall = tuple(rng.choice(["A", "B"], size=r).tolist())
    rooms = Rooms(tuple(f"R{k}" for k in range(r)), capacities, {"hall": hall})
    rules = RoomRules(
        locks=((0, 1),) if n > 4 else (),
        requests=(Request(2, 3, weight=1.0),) if n > 4 else (),
        preferences=tuple(Preference(k, "hall", ("A",), 0.5) for k in range(0, n, 3)),
    )
    return formulate(scores + scores.T, {}, rooms, rules, previous, 0.5).problem


@pytest.mark.parametrize("has_previous", [False, True])
def test_groups_are_worth_what_is_said_and_no_more_than_the_best(has_previous: bool) -> None:
    previous = np.repeat(np.arange(len(CAPACITIES)), CAPACITIES)[:66]
    problem = problem_of(66, CAPACITIES, previous if has_previous else None)
    pricer, rng = Pricer(problem), np.random.default_rng(0)
    prices = Prices(
        1.5 + rng.normal(size=problem.n_atoms) / 4.0,
        rng.random(problem.n_kinds),
        rng.random(len(problem.row_kind)) / 4.0,
    )
    found = pricer.search(prices, is_exact=False, tolerance=1e-9)
    exact = pricer.search(prices, is_exact=True, tolerance=1e-9)
    groups = found.members, found.kind, found.row
    worth = problem.group_values(*groups) - prices.of_groups(*groups)
    assert found.reduced == pytest.approx(worth, abs=1e-9)
    people = np.where(found.members >= 0, problem.sizes[found.members], 0).sum(axis=1)
    assert (people <= problem.capacity[found.kind]).all()
    assert (found.row >= 0).any() if has_previous else (found.row < 0).all()
    assert len(np.unique(np.column_stack(groups), axis=0)) == len(found.kind)
    assert exact.is_whole
    assert found.estimate <= exact.bound + 1e-9
    # A heuristic: it misses some groups, but hardly the best.
    assert found.reduced.max() >= 0.9 * exact.reduced.max()
    assert found.estimate - prices.atoms.sum() >= 0.8 * (exact.bound - prices.atoms.sum())


def test_people_at_no_price_are_in_no_group() -> None:
    problem = problem_of(30, CAPACITIES)
    taken = np.arange(problem.n_atoms) % 2 == 0
    prices = Prices.zero(problem)
    gone = Prices(np.where(taken, np.inf, prices.atoms), prices.kinds, prices.rows)
    found = Pricer(problem).search(gone, is_exact=False, tolerance=1e-9)
    assert len(found.kind)
    assert not taken[found.members[found.members >= 0]].any()


def test_what_staying_gains_is_counted_by_room_and_student() -> None:
    scores = np.random.default_rng(3).normal(size=(4, 4))
    rooms = Rooms(("A", "B"), np.array([2, 2]))
    previous = np.array([0, 0, 1, 1])
    problem = formulate(scores + scores.T, {}, rooms, RoomRules(), previous, 0.5).problem
    members = np.array([[0, 1], [0, 1], [0, 2], [0, 1]])
    gains = problem.group_values(members, np.zeros(4, dtype=np.int64), np.array([-1, 0, 1, 1]))
    plain = problem.group_values(members, np.zeros(4, dtype=np.int64), np.full(4, -1))
    assert (gains - plain).tolist() == pytest.approx([0.0, 1.0, 0.5, 0.0])
