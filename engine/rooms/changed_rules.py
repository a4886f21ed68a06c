"""Effect on a placement of a lock, a forbidden pair or a move."""

from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.options import check_callables, check_number, check_seconds
from engine.core.progress import StopCallback, never_stop
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.chain import SharedRooms, share_probabilities
from engine.rooms.formulation import Attributes
from engine.rooms.placement import Placement, mean_scores, place_in_rooms

SMALL_PRICE = 0.01  # nats per move: of equal placements, prefer the one with fewer moves


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """Placement after a change, compared with the one before.

    Parameters
    ----------
    placement : Placement, the best one under the changed rules at the given price of a move.
    score_change : float, nats, its learned score minus that of the placement before.
    moved : tuple of students who had a room and now have another, or none.
    shared : SharedRooms or None, how likely the roommates of the moved students share a room.
    """

    placement: Placement
    score_change: float
    moved: tuple[int, ...]
    shared: SharedRooms | None


def what_if(
    scores: FloatArray,
    rooms: Rooms,
    room: IntArray,
    rules: RoomRules | None = None,
    *,
    lock: tuple[tuple[int, ...], ...] = (),
    forbid: tuple[tuple[int, int], ...] = (),
    move: tuple[tuple[int, int], ...] = (),
    attributes: Attributes | None = None,
    ids: tuple[str, ...] | None = None,
    move_cost: float = SMALL_PRICE,
    probability_seconds: float = 0.0,
    max_seconds: float = 10.0,
    should_stop: StopCallback = never_stop,
) -> WhatIf:
    """Place again under more rules; people stay where they are unless a move gains its price.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats.
    rooms : Rooms
    room : ndarray, shape (n,), the current placement.
    rules : RoomRules, default none.
    lock, forbid : groups to keep together and pairs to keep apart, in addition to the rules.
    move : (student, room) pairs: the room where each student must live.
    attributes, ids : as for `place_in_rooms`.
    move_cost : float, nats, cost of each student who leaves a room.
    probability_seconds : float, time for probabilities; 0 for none.
    max_seconds : float, processor seconds of the search.
    should_stop : callable returning bool, optional

    Returns
    -------
    WhatIf
        The placement after the change, and its cost.

    Raises
    ------
    InfeasibleError
        If the change clashes with the rules, naming the smallest clash.

    Examples
    --------
    >>> import numpy as np
    >>> from engine import Rooms
    >>> from engine.rooms.changed_rules import what_if
    >>> scores = np.array([[0, 3, 1, 0], [3, 0, 0, 1], [1, 0, 0, 3], [0, 1, 3, 0.0]])
    >>> found = what_if(scores, Rooms(("A", "B"), [2, 2]), np.array([0, 0, 1, 1]), forbid=((0, 1),))
    >>> len(found.moved), found.score_change
    (2, -4.0)
    """
    check_number("move_cost", move_cost, at_least=0.0)
    check_seconds("probability_seconds", probability_seconds, optional=False)
    check_seconds("max_seconds", max_seconds, optional=False)
    check_callables(should_stop=should_stop)
    rules = rules or RoomRules()
    changed = replace(
        rules,
        locks=(*rules.locks, *lock),
        forbids=(*rules.forbids, *forbid),
        assigned=(*(x for x in rules.assigned if x[0] not in {s for s, _ in move}), *move),
    )
    before = np.asarray(room, dtype=np.int64)
    placement = place_in_rooms(
        scores,
        rooms,
        changed,
        attributes=attributes,
        ids=ids,
        previous=before,
        move_cost=move_cost,
        max_seconds=max_seconds,
        should_stop=should_stop,
    )
    moved = np.flatnonzero((before >= 0) & (placement.room != before))
    old_score = float(np.nansum(mean_scores(np.asarray(scores), before)) / 2.0)
    shared = None
    if probability_seconds > 0.0 and len(moved):
        pairs = [(int(s), int(k)) for s in moved for k in placement.roommates(int(s))]
        shared = share_probabilities(
            scores,
            rooms,
            placement.room,
            changed,
            attributes=attributes,
            pairs=np.array(sorted({(min(p), max(p)) for p in pairs})).reshape(-1, 2),
            max_seconds=probability_seconds,
            should_stop=should_stop,
        )
    return WhatIf(placement, placement.score - old_score, tuple(moved.tolist()), shared)
