"""Whether rules leave somebody without a bed when who may share with whom is looked at too."""

from dataclasses import replace

import numpy as np

from engine.core.progress import StopCallback
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.clock import SearchClock
from engine.rooms.formulation import Attributes, formulate
from engine.rooms.search import Search

SECONDS = 2.0  # for one set of rules
CLOSE = 1e-6


def leaves_somebody_out(
    n: int, attributes: Attributes, rooms: Rooms, rules: RoomRules, should_stop: StopCallback
) -> bool:
    """Return whether it is proved that no placement gives everybody a bed.

    Nobody scores anything, wishes add nothing, and each person who is left out costs one: the bound
    of the search says how many there are at least. False also where a few seconds were not enough.
    """
    musts = tuple(request for request in rules.requests if request.is_must)
    hard = replace(rules, requests=musts, preferences=(), alike=())
    problem = formulate(np.zeros((n, n)), attributes, rooms, hard).problem
    search = Search(
        problem,
        penalty=1.0,
        gap=CLOSE,
        rng=np.random.default_rng(0),
        clock=SearchClock(SECONDS, should_stop),
        report=lambda sentence, value, bound: None,
    )
    search.run()
    return search.best.bound < -CLOSE
