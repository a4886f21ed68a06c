"""Stages of the search: what one leaves to the next."""

import numpy as np
import pytest

from engine.core.arguments import IntArray
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms import search as search_module
from engine.rooms.clock import SearchClock
from engine.rooms.formulation import formulate
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.problem import Groups, RoomProblem
from engine.rooms.search import Report, Search


def problem_of(n: int, capacities: IntArray, seed: int) -> RoomProblem:
    scores = np.random.default_rng(seed).normal(size=(n, n))
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), capacities)
    return formulate(scores + scores.T, {}, rooms, RoomRules()).problem


def search_of(
    problem: RoomProblem,
    clock: SearchClock,
    report: Report = lambda sentence, value, bound: None,
    gap: float = 1e-3,
) -> Search:
    return Search(problem, gap=gap, rng=np.random.default_rng(0), clock=clock, report=report)


def test_a_dive_is_kept_though_poor_groups_are_forgotten_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above 200 students it was thrown away where it had met many groups."""
    monkeypatch.setattr(search_module, "SMALL", 0)
    monkeypatch.setattr(search_module, "MOST_COLUMNS", 0)
    monkeypatch.setattr(Search, "_polish", lambda _: "generate")
    told: list[tuple[str, float]] = []
    search = search_of(
        problem_of(60, np.full(20, 3), 2),
        SearchClock(None, lambda: bool(told) and told[-1][0] == "Making a whole placement"),
        lambda sentence, value, _: told.append((sentence, value)),
    )
    search.run()
    assert told[-1][1] > told[0][1]
    assert search.best.gap < 0.02


def test_groups_of_better_placements_are_listed_by_what_the_prices_prove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a programme that ended early they were listed by its bound, and some were missing."""
    problem = problem_of(8, np.array([3, 3, 2]), 0)
    search = search_of(problem, SearchClock(None), gap=1e-9)
    search._seat_everybody()
    search._price(Prices.zero(problem), 1e-9, is_exact=True)
    proved = search.best.bound
    search.best.bound = (proved + search.best.value) / 2.0  # as such a programme leaves it
    listed: list[float] = []

    def note(self: Pricer, prices: Prices, shortfall: float) -> Groups | None:
        listed.append(shortfall)
        return None

    monkeypatch.setattr(Pricer, "all_within", note)
    search._close()
    assert listed == pytest.approx([proved - search.best.value])
