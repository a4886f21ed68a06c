"""Uncertainty about each student: the share of possible roommates who are about equally likely."""

import numpy as np
from numpy.typing import NDArray

from engine.rooms.explanation import doubt_of_scores
from webapp.housing.problem import PlacementProblem


def uncertainty_shares(problem: PlacementProblem) -> dict[int, float | None]:
    """Return each student's uncertainty by key: likely roommates over allowed roommates.

    Near 0, a few stand out; near 1, all are as good. None if the rules allow at most one. It does
    not depend on rooms: moving a student does not change it.
    """
    scores = problem.scores.model.scores(problem.survey)
    allowed = _allowed(problem)
    n_allowed = allowed.sum(axis=1)
    asked = np.flatnonzero(n_allowed > 1)
    shares: dict[int, float | None] = dict.fromkeys(s.pk for s in problem.students)
    if not len(asked):
        return shares
    table = np.where(allowed, scores, -np.inf)[np.ix_(asked, asked)]
    doubts = doubt_of_scores(table, np.zeros(len(asked), dtype=np.int64))
    for k, doubt in zip(asked.tolist(), doubts.tolist(), strict=True):
        if np.isfinite(doubt):
            shares[problem.students[k].pk] = min(1.0, doubt / float(n_allowed[k]))
    return shares


def _allowed(problem: PlacementProblem) -> NDArray[np.bool_]:
    """Return which pairs may live together by the rules about pairs, shape (n, n)."""
    n = problem.survey.n_students
    allowed = ~np.eye(n, dtype=bool)
    for column in problem.rules.same:
        values = np.array(problem.survey.attributes[column])
        allowed &= values[:, np.newaxis] == values
    for a, b in problem.apart:
        allowed[a, b] = allowed[b, a] = False
    return allowed
