"""Random moves that may lose a little."""

import numpy as np
import pytest

import engine
from benchmarks.peers.room_problems import SHAPES, scores_of
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.annealing import Annealing
from engine.rooms.beds import Beds
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import formulate

CAPACITIES = np.array([8, 7, 6, 5, 8, 4, 3, 2, 1, 8, 8])


def place_first():
    """A first placement of a simulated year."""
    rooms = Rooms(tuple(f"R{k}" for k in range(len(CAPACITIES))), CAPACITIES)
    told = []
    return engine.place_in_rooms(
        scores_of(60),
        rooms,
        on_progress=lambda report: told.append(report.sentence),
        should_stop=lambda: "Swapping at random" in told,
    )


def test_a_first_placement_in_large_rooms_is_better(monkeypatch):
    """Exchanges that must gain end early in large rooms, and dives hardly improved on them."""
    annealed = place_first()
    assert np.bincount(annealed.room).tolist() == CAPACITIES.tolist()
    monkeypatch.setattr(Annealing, "run", lambda *given, **options: False)
    assert annealed.score > 1.03 * place_first().score


@pytest.mark.parametrize("must_fill", [False, True])
def test_beds_and_rules_are_kept_and_the_value_is_what_the_scores_say(must_fill: bool) -> None:
    case = SHAPES["year"](60)
    rules = case.rules if not must_fill else RoomRules(must_fill=True, locks=((0, 1), (2, 3)))
    problem = formulate(case.scores, case.attributes, case.rooms, rules).problem
    exchange, rng = Exchange(problem), np.random.default_rng(0)
    Beds(exchange).begin(rng)
    before, outside = exchange.value, exchange.n_outside
    seen = []

    def note() -> None:
        groups = exchange.groups()
        people = np.where(groups[0] >= 0, problem.sizes[groups[0]], 0).sum(axis=1)
        assert (people <= problem.capacity[groups[1]]).all()
        assert not must_fill or (people == problem.capacity[groups[1]]).all()
        seen.append(problem.group_values(*groups).sum() + exchange.value_outside)

    assert Annealing(problem).run(exchange, rng, lambda: False, on_step=note)
    assert exchange.value > before
    assert exchange.n_outside == outside
    assert exchange.is_allowed()
    assert exchange.value >= max(seen) - 1e-6
    assert problem.group_values(*exchange.groups()).sum() + exchange.value_outside == pytest.approx(
        exchange.value, abs=1e-9
    )


def test_the_same_seed_makes_the_same_moves() -> None:
    problem = formulate(scores_of(60), {}, SHAPES["quads"](60).rooms, RoomRules()).problem
    reached = []
    for seed in (0, 0, 1):
        exchange = Exchange(problem)
        exchange.place_greedily(np.random.default_rng(0))
        Annealing(problem).run(exchange, np.random.default_rng(seed), lambda: False)
        reached.append((exchange.room_of.tolist(), exchange.clock.work))
    assert reached[0] == reached[1]
    assert reached[0][0] != reached[2][0]
