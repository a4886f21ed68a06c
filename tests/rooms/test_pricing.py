"""Exact pricing: what prices prove."""

import numpy as np
import pytest

from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.formulation import formulate
from engine.rooms.placement import place_in_rooms
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer


@pytest.mark.parametrize("seed", range(3))
def test_bounds_at_any_prices_of_atoms_and_rooms_stand_above_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, capacities = 7, np.array([[1, 3, 3], [2, 2, 4], [3, 4, 4]][seed])
    scores = rng.normal(size=(n, n))
    scores = scores + scores.T
    rooms = Rooms(("A", "B", "C"), capacities)
    previous = rng.integers(3, size=n) if seed else None
    formulation = formulate(scores, {}, rooms, RoomRules(), previous, 0.5)
    problem = formulation.problem
    best = place_in_rooms(
        scores, rooms, previous=previous, move_cost=0.5, gap=1e-9, max_seconds=None
    )
    for _ in range(10):
        prices = Prices(
            rng.normal(size=n), rng.random(problem.n_kinds), rng.random(len(problem.row_kind))
        )
        found = Pricer(problem).search(prices, is_exact=True, tolerance=1e-9)
        assert found.bound + formulation.offset >= best.weight - 1e-9
        worth = problem.group_values(found.members, found.kind, found.row)
        worth -= found.feasible.of_groups(found.members, found.kind, found.row)
        assert (worth <= 1e-9).all()
