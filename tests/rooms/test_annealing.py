"""Swaps at random that may lose a little."""

import numpy as np

import engine
from benchmarks.room_problems import scores_of
from engine.crf.rooms import Rooms
from engine.rooms import search

CAPACITIES = np.array([8, 7, 6, 5, 8, 4, 3, 2, 1, 8, 8])


def place_first():
    """A first placement of a simulated year."""
    rooms = Rooms(tuple(f"R{k}" for k in range(len(CAPACITIES))), CAPACITIES)
    told = []
    return engine.place_in_rooms(
        scores_of(60),
        rooms,
        on_progress=lambda report: told.append(report.sentence),
        should_stop=lambda: "Looking for a first placement" in told,
    )


def test_a_first_placement_in_large_rooms_is_better(monkeypatch):
    """Exchanges that must gain end early in large rooms, and dives hardly improved on them."""
    annealed = place_first()
    assert np.bincount(annealed.room).tolist() == CAPACITIES.tolist()
    monkeypatch.setattr(search, "anneal", lambda *given: False)
    assert annealed.score > 1.03 * place_first().score
