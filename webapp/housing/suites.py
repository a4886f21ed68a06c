"""Suites in a computation: whom each suite is for before it, and the arrangement after it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine import Designation
from engine.core.arguments import read_only
from engine.rooms.placement import Placement as FoundPlacement
from engine.rooms.placement import mean_scores
from engine.rooms.suite_classes import classes_of_suites
from engine.rooms.suites import apart_in_suites, arrange_in_suites
from webapp.housing.models import Room, SuiteKey
from webapp.housing.problem import PlacementProblem
from webapp.housing.rules import PlacementRules

CLASS = "!suite"  # column of the classes of suites and of students
FOR_SUITE = "who may live in the suite"


@dataclass(slots=True)
class SuiteProblem:
    """A placement problem with suites.

    Parameters
    ----------
    problem : PlacementProblem, in which each suite is for one class of students if that is a rule.
    suite_of : ndarray, shape (rooms,), int64, the suite of each room, -1 for none.
    rules : PlacementRules
    """

    problem: PlacementProblem
    suite_of: NDArray[np.int64]
    rules: PlacementRules

    @property
    def has_suites(self) -> bool:
        """Return True if two open rooms share a suite."""
        return bool(len(self.suite_of)) and int(self.suite_of.max()) >= 0


def with_suites(
    problem: PlacementProblem,
    rules: PlacementRules,
    present: NDArray[np.int64] | None = None,
    *,
    keeps_present: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> SuiteProblem:
    """Return the problem with its suites; it is unchanged if no two open rooms share a suite.

    ``present`` gives the room of each student now, -1 for none; with ``keeps_present`` suites with
    residents keep their class.
    """
    suite_of = _suites_of(problem)
    found = SuiteProblem(problem, suite_of, rules)
    if not (found.has_suites and rules.suite_same and rules.same):
        return found
    attributes = problem.survey.attributes
    values = list(zip(*(attributes[name] for name in rules.same), strict=True))
    known = {value: k for k, value in enumerate(dict.fromkeys(values))}
    if len(known) < 2:
        return found
    class_of = np.array([known[value] for value in values], dtype=np.int64)
    chosen = classes_of_suites(
        attributes,
        problem.rooms,
        problem.rules,
        suite_of,
        class_of,
        present,
        keeps_present=keeps_present,
        should_stop=should_stop,
    )
    words = [f"{k + 1} " + " ".join(value).replace("|", "/") for k, value in enumerate(known)]
    cells = tuple(
        words[chosen[suite]] if suite >= 0 and chosen[suite] >= 0 else ""
        for suite in suite_of.tolist()
    )
    rooms = replace(problem.rooms, attributes={**problem.rooms.attributes, FOR_SUITE: cells})
    own = tuple(words[k] for k in class_of.tolist())
    survey = replace(problem.survey, attributes={**attributes, CLASS: own})
    designations = (*problem.rules.designations, Designation(FOR_SUITE, CLASS))
    found.problem = replace(
        problem,
        rooms=rooms,
        survey=survey,
        rules=replace(problem.rules, designations=designations),
    )
    return found


def _suites_of(problem: PlacementProblem) -> NDArray[np.int64]:
    """Return the suite of each room by number, -1 for rooms that share none with another here."""
    rows = Room.objects.filter(buildings=problem.scores.placement.buildings_id).exclude(suite="")
    here = set(problem.room_keys)
    key_of = {room.pk: room.suite_key for room in rows.order_by("position") if room.pk in here}
    counts = Counter(key_of.values())
    shared = [key for key, count in counts.items() if count > 1]
    number: dict[SuiteKey | None, int] = {key: k for k, key in enumerate(shared)}
    found = [number.get(key_of.get(room), -1) for room in problem.room_keys]
    return np.array(found, dtype=np.int64)


def arranged(
    suites: SuiteProblem,
    found: FoundPlacement,
    *,
    previous: NDArray[np.int64] | None = None,
    move_cost: float = 0.0,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[FoundPlacement, dict[str, float | int]]:
    """Return a placement that is arranged for its suites, and figures about them.

    Without suites, the placement is returned as it is, with no figures. The proof of a placement is
    about rooms: the suite terms are no part of its value and its bound.
    """
    if not suites.has_suites:
        return found, {}
    problem, rules = suites.problem, suites.rules
    attributes = problem.survey.attributes
    columns = [attributes[name] for name in rules.same] if rules.suite_same else []
    scores = problem.scores.model.scores(problem.survey)
    apart = apart_in_suites(len(problem.students), found.rules.forbids, columns)
    moved = arrange_in_suites(
        scores,
        attributes,
        problem.rooms,
        found.rules,
        found.room,
        suites.suite_of,
        apart,
        weight=rules.suite,
        previous=previous,
        move_cost=move_cost,
        should_stop=should_stop,
    )
    room = moved.room
    student_scores = mean_scores(scores, room)
    score = float(np.nansum(student_scores) / 2.0)
    weight = found.weight + moved.gain
    honoured = [
        bool(room[one.student] >= 0 and room[one.student] == room[one.wants])
        for one in problem.rules.requests
    ]
    n_moved = 0
    if previous is not None:
        n_moved = int(((previous >= 0) & (room != previous)).sum())
    arranged_placement = replace(
        found,
        room=read_only(room),
        score=score,
        extras=weight - score,
        upper_bound=max(found.upper_bound, weight),
        n_moved=n_moved,
        student_scores=read_only(student_scores),
        honoured=read_only(np.array(honoured, dtype=bool)),
    )
    n_suites = int(suites.suite_of.max()) + 1
    return arranged_placement, {
        "n_suites": n_suites,
        "suite_score": moved.suite_score,
        "suite_weight": rules.suite,
        "n_left_by_suites": len(moved.left_out),
    }
