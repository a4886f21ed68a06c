"""Rooms of two only: a perfect matching, solved and proved by the matching oracle."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InfeasibleError
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.rooms.problem import RoomProblem

DIGITS = 9  # of preferences that are compared


def is_matching(problem: RoomProblem) -> bool:
    """Return True if everybody lives in full doubles that no rule or wish distinguishes."""
    open_ = problem.count > 0
    views = np.unique(problem.view[open_])
    liked = _likes(problem, views)
    return bool(
        problem.n_atoms > 0
        and (problem.capacity[open_] == 2).all()
        and (problem.normal[open_] == 2).all()
        and (problem.sizes == 1).all()
        and 2 * problem.count.sum() == problem.n_atoms
        and problem.allowed[views].all()
        and (liked == liked[:1]).all()
        and not len(problem.stay_atom)
    )


def solve_matching(problem: RoomProblem) -> tuple[IntArray, float] | None:
    """Return the room of each atom, numbered kind by kind, and the bound; None without matching."""
    scores = problem.scores + problem.bonus if len(problem.bonus) else problem.scores
    try:
        matching = CompleteGraphMatcher().solve(scores)
    except InfeasibleError:
        return None
    room_of = np.empty(problem.n_atoms, dtype=np.int64)
    room_of[matching.pairs] = np.arange(len(matching.pairs))[:, np.newaxis]
    views = problem.view[problem.count > 0]
    own = problem.own_bonus.sum() + _likes(problem, views[:1]).sum()
    own -= problem.rank_price * 2.0 * (problem.rank[views] @ problem.count[problem.count > 0])
    return room_of, matching.upper_bound + float(own)


def _likes(problem: RoomProblem, views: IntArray) -> FloatArray:
    """Return preferences without the price of ranks, which is the same for all full rooms."""
    ranks = problem.rank_price * problem.rank[views, np.newaxis]
    return np.asarray(np.round(problem.preference[views] + ranks, DIGITS))
