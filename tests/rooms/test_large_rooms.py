"""Rooms of five and more: what exact searches cost, and what is done where they prove nothing."""

import time

import numpy as np
import pytest

from benchmarks.peers.room_problems import scores_of
from engine.core.gap import relative_gap
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms import polish, search
from engine.rooms.annealing import Annealing
from engine.rooms.clock import SearchClock
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import formulate
from engine.rooms.master import Master
from engine.rooms.prices import Prices
from engine.rooms.pricing import Pricer
from engine.rooms.search import Search

CAPACITIES = np.array([8, 7, 6, 5, 8, 4, 3, 2, 1, 8, 8])


def problem_of(capacities=CAPACITIES):
    """Students of a simulated year, as many as beds, and no rules."""
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), capacities)
    scores = scores_of(int(capacities.sum()))
    return formulate(scores, {}, rooms, RoomRules()).problem


def placement_of(problem):
    exchange = Exchange(problem)
    exchange.place_greedily(np.random.default_rng(0))
    return exchange


@pytest.fixture(scope="module")
def large():
    return problem_of(np.repeat(CAPACITIES, 3))


def test_an_exact_search_that_proves_nothing_gives_up_soon(large):
    """At prices far from the best it went on for twelve seconds, a million sets of every size."""
    pricer, free = Pricer(large), Prices.zero(large)
    for _ in range(2):  # the first call compiles
        started = time.process_time()
        found = pricer.search(free, is_exact=True, tolerance=1e-9, most_work=30_000_000)
        spent = time.process_time() - started
    assert not found.is_whole
    assert spent < 1.0
    assert found.bound >= placement_of(large).value


def test_a_list_that_grows_too_long_is_given_up_at_once(large):
    """Groups were still searched for, up to the last pair, when no more could be listed."""
    pricer = Pricer(large, room_for=100)
    for _ in range(2):
        started = time.process_time()
        assert pricer.all_within(Prices.zero(large), 1.0) is None
        spent = time.process_time() - started
    assert spent < 0.5


def test_where_exact_searches_give_up_groups_of_everybody_bring_prices_nearer(monkeypatch):
    """Exact searches went on at one master after another, each too far from the best to prove."""
    whole, price = [], Search._price

    def note(self, *given, is_exact):
        found = price(self, *given, is_exact=is_exact)
        if is_exact:
            whole.append(found.is_whole)
        return found

    monkeypatch.setattr(Search, "_price", note)
    monkeypatch.setattr(Annealing, "run", lambda *given, **options: False)
    run = Search(
        problem_of(),
        gap=1e-3,
        rng=np.random.default_rng(0),
        clock=SearchClock(60.0, lambda: False),
        report=lambda *given: None,
    )
    run._course.most_work, run._course.target = 300_000, 5e-3
    run._seat_everybody()
    run._improve_by_exchange()
    run._set_first_prices()
    while run._generate() == "generate":
        pass
    assert run._course.is_optimal
    assert not all(whole)
    master = Master(run.problem, run.columns, run.clock)
    master.add_new_columns()
    assert master.solve(at_corner=True)
    assert relative_gap(run.best.bound, master.value) <= 5e-3


def test_filling_rooms_again_leaves_others_as_they_are():
    """With fewer than 120 people every try emptied all rooms and solved the same programme."""
    problem = problem_of()
    exchange = placement_of(problem)
    columns = search.Columns(problem)
    columns.add(*exchange.groups())
    prices = Prices.shared_worth(problem, exchange.groups())
    filling = polish.Polish(exchange, columns, prices, polish.PolishSize.of(problem))
    drawn = [filling._draw_rooms(np.random.default_rng(seed)) for seed in range(5)]
    assert max(map(len, drawn)) < len(CAPACITIES)
    assert len({tuple(rooms) for rooms in drawn}) > 1
