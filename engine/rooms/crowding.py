"""Proof that rules leave somebody without a bed, given also the pairs who may not share."""

from dataclasses import replace

import numpy as np

from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.clock import SearchClock
from engine.rooms.formulation import Attributes, formulate
from engine.rooms.search import CLOSE, search_beds

SECONDS = 2.0  # counted seconds, for one set of rules


def leaves_somebody_out(
    n: int, attributes: Attributes, rooms: Rooms, rules: RoomRules, clock: SearchClock
) -> bool:
    """Return True if it is proved that no placement gives everybody a bed.

    Scores and wishes are zero, and each person left out has a cost: the search's bound gives the
    least number of people left out. Returns False also if the budget was not enough.
    """
    musts = tuple(request for request in rules.requests if request.is_must)
    hard = replace(rules, requests=musts, preferences=(), alike=(), order=())
    problem = formulate(np.zeros((n, n)), attributes, rooms, hard).problem
    found = search_beds(problem, None, np.random.default_rng(0), clock.child(SECONDS))
    return found.best.bound < -CLOSE
