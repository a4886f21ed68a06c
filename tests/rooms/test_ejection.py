"""Chains of displacements: whoever can be placed is placed, before any improvement."""

import numpy as np
import pytest

from engine.core.progress import never_stop
from engine.crf.room_rules import Need, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.ejection import place_by_chains
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import formulate


def exchange_of(
    capacities: list[int], rules: RoomRules, n: int, **columns: tuple[str, ...]
) -> Exchange:
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), np.array(capacities), columns)
    return Exchange(formulate(np.zeros((n, n)), {}, rooms, rules).problem)


def test_a_chain_through_several_rooms_frees_the_only_bed_that_fits() -> None:
    # Person 0 needs A, 1 may live in A or B, 2 in B or C, 3 anywhere; only D is free.
    rules = RoomRules(
        needs=(
            Need(0, "one", "yes"),
            Need(1, "two", "yes"),
            Need(2, "three", "yes"),
        )
    )
    exchange = exchange_of(
        [1, 1, 1, 1],
        rules,
        4,
        one=("yes", "no", "no", "no"),
        two=("yes", "yes", "no", "no"),
        three=("no", "yes", "yes", "no"),
    )
    full = np.full(4, exchange.outside)
    rooms = {k: int(np.flatnonzero(exchange.kind_of_room == t)[0]) for t, k in enumerate("ABCD")}
    full[1], full[2], full[3] = rooms["A"], rooms["B"], rooms["C"]
    exchange.start(full)
    place_by_chains(exchange, np.random.default_rng(0), never_stop)
    assert (exchange.room_of != exchange.outside).all()
    assert exchange.is_allowed()


@pytest.mark.parametrize("seed", range(5))
def test_two_who_are_locked_get_a_room_that_singles_leave_for_them(seed: int) -> None:
    exchange = exchange_of([2, 2, 2], RoomRules(locks=((0, 1),)), 6)
    atoms = np.array([exchange.outside, 0, 0, 1, 2])  # one free bed in each of two rooms
    exchange.start(atoms)
    place_by_chains(exchange, np.random.default_rng(seed), never_stop)
    assert (exchange.room_of != exchange.outside).all()
    assert exchange.is_allowed()


def test_whom_no_chain_can_place_stays_outside_and_nothing_else_changes() -> None:
    exchange = exchange_of([2, 1], RoomRules(forbids=((0, 1), (0, 2), (1, 2))), 3)
    start = np.array([0, 1, exchange.outside])
    exchange.start(start)
    place_by_chains(exchange, np.random.default_rng(0), never_stop)
    assert (exchange.room_of == exchange.outside).sum() == 1
    assert exchange.is_allowed()
