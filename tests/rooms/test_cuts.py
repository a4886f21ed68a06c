"""Cuts: which are broken, who pays for them, and that bounds with them stand above placements."""

from itertools import combinations

import numpy as np
import pytest

from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms import search as search_module
from engine.rooms.clock import SearchClock
from engine.rooms.columns import Columns, pad
from engine.rooms.cuts import NONE, charges, violated_cuts
from engine.rooms.formulation import formulate
from engine.rooms.master import Master
from engine.rooms.placement import place_in_rooms
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.search import Search
from engine.rooms.tightening import price_with_cuts


def test_a_ring_of_halves_is_cut_off_and_who_holds_two_or_three_pays_once() -> None:
    members = pad(np.array([[0, 1, 3], [1, 2, 4], [0, 2, 5], [0, 1, 2], [2, 5, 6]]))
    shares = np.array([0.5, 0.5, 0.5, 0.0, 0.5])
    cuts = violated_cuts(members, shares, 7)
    assert cuts.tolist() == [[0, 1, 2]]
    assert charges(cuts, np.array([0.7]), members, 7).tolist() == [0.7, 0.7, 0.7, 0.7, 0.0]
    whole = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    assert len(violated_cuts(members, whole, 7)) == 0


@pytest.mark.parametrize("seed", range(3))
def test_bounds_at_any_prices_of_atoms_rooms_and_cuts_stand_above_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, capacities = 7, np.array([[1, 3, 3], [2, 2, 4], [3, 4, 4]][seed % 3])
    scores = rng.normal(size=(n, n))
    scores = scores + scores.T
    rooms = Rooms(("A", "B", "C"), capacities)
    previous = rng.integers(3, size=n) if seed else None
    formulation = formulate(scores, {}, rooms, RoomRules(), previous, 0.5)
    problem = formulation.problem
    best = place_in_rooms(
        scores, rooms, previous=previous, move_cost=0.5, gap=1e-9, max_seconds=None
    )
    cuts = np.array(list(combinations(range(n), 3)))[rng.permutation(35)[:8]]
    for _ in range(10):
        prices = Prices(
            rng.normal(size=n), rng.random(problem.n_kinds), rng.random(len(problem.row_kind))
        )
        asked = rng.random(len(cuts))
        found = price_with_cuts(problem, Pricer(problem), prices, cuts, asked)
        assert found is not None
        assert found.bound + formulation.offset >= best.weight - 1e-9


def test_cuts_lower_the_bound_of_rings_to_the_best_placement() -> None:
    # Friends in rings of three, in doubles: the relaxation takes each pair by half.
    scores = np.kron(np.eye(4), np.ones((3, 3)) - np.eye(3))
    rooms = Rooms(tuple("ABCDEF"), np.full(6, 2))
    problem = formulate(scores, {}, rooms, RoomRules()).problem
    columns = Columns(problem)
    pairs = np.array(list(combinations(range(12), 2)))
    columns.add(pairs, np.zeros(len(pairs), dtype=np.int64), np.full(len(pairs), -1))
    bounds = []
    cuts = NONE
    for _ in range(2):
        master = Master(problem, columns, SearchClock(None), cuts=cuts)
        master.add_new_columns()
        assert master.solve(at_corner=True)
        found = price_with_cuts(
            problem, Pricer(problem), master.prices(), cuts, master.cut_prices()
        )
        assert found is not None
        bounds.append(found.bound)
        cuts = np.arange(12).reshape(4, 3)
    assert bounds == pytest.approx([6.0, 4.0], abs=1e-6)


def test_a_dive_is_kept_though_poor_groups_are_forgotten_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above 200 students it was thrown away where it had met many groups."""
    monkeypatch.setattr(search_module, "SMALL", 0)
    monkeypatch.setattr(search_module, "MOST_COLUMNS", 0)
    monkeypatch.setattr(Search, "_polish", lambda _: "generate")
    scores = np.random.default_rng(2).normal(size=(60, 60))
    rooms = Rooms(tuple(f"R{k}" for k in range(20)), np.full(20, 3))
    problem = formulate(scores + scores.T, {}, rooms, RoomRules()).problem
    told: list[tuple[str, float]] = []
    search = Search(
        problem,
        gap=1e-3,
        rng=np.random.default_rng(0),
        clock=SearchClock(None, lambda: bool(told) and told[-1][0] == "Making a whole placement"),
        report=lambda sentence, value, _: told.append((sentence, value)),
    )
    search.run()
    assert told[-1][1] > told[0][1]
    assert search.best.gap < 0.02
