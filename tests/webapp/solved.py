"""Solved placements that tests share: a problem of rooms is solved once in a process.

Most tests of housing look at what people do with a placement. The same small problem was solved for
each of them. A test that looks at the search itself has the mark ``solves`` and gets its own run.
"""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any

from engine.core.progress import Progress
from engine.rooms.placement import Placement, place_in_rooms

# Of a run, not of the problem. Which of the best placements a seed finds makes no difference here.
_OF_A_RUN = {"rng", "on_progress", "should_stop", "checkpoint"}
_kept: dict[str, tuple[Placement, list[Progress]]] = {}


def place_once(*problem: Any, **options: Any) -> Placement:
    """Place as `place_in_rooms` does; repeat an earlier answer and its reports if there is one."""
    given = sorted((name, value) for name, value in options.items() if name not in _OF_A_RUN)
    key = hashlib.sha256(pickle.dumps((problem, given))).hexdigest()
    report: Callable[[Progress], None] = options.get("on_progress", lambda progress: None)
    if key in _kept and not options["should_stop"]():
        placement, reports = _kept[key]
        for one in reports:
            report(one)
        return placement
    reports = []

    def note(progress: Progress) -> None:
        reports.append(progress)
        report(progress)

    placement = place_in_rooms(*problem, **{**options, "on_progress": note})
    if placement.is_repeatable:
        _kept[key] = placement, reports
    return placement
