"""Uncertainty, veto, parity and drift of a placement, as plain JSON values for its page."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import InvalidProblemError, Status
from engine.learning.roommates.model import RoommateModel
from engine.learning.roommates.uncertainty import estimate_by_year
from engine.rooms.chain import SharedRooms, share_probabilities
from engine.rooms.parity import placement_parity
from engine.rooms.placement import Placement
from engine.rooms.veto import VetoCurve, veto_curve
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import (
    cohort_pairs,
    cohort_rooms,
    cohort_survey,
    common_questionnaire,
    questionnaire_of,
)
from webapp.housing.problem import PlacementProblem
from webapp.housing.uncertainty import uncertainty_shares
from webapp.matching.models import LearnedModel

STANDARD_ERROR = 0.02  # of a probability, from the simulation
RARE = 2 * STANDARD_ERROR  # the simulation does not separate probabilities below it
DOUBT_SECONDS = 25.0
DRIFT_SECONDS = 60.0
MOST_GROUPS = 12  # of a column; with more, its values identify people rather than groups
KEPT_PAIRS = 3000
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
Scores = NDArray[np.float64]


def uncertainty_figures(
    problem: PlacementProblem, scores: Scores, rng: np.random.Generator, stop: Callable[[], bool]
) -> dict[str, Any]:
    """Return how likely each pair of roommates shares a room in placements drawn at random."""
    room = problem.previous
    roommates = np.array(problem.roommates(), dtype=np.int64).reshape(-1, 2)
    if not len(roommates):
        return {"pairs": []}
    # People who follow others in a bed keep their rooms, whatever is drawn.
    is_fixed = room[roommates[:, 0]] != room[roommates[:, 1]]
    drawn = roommates[~is_fixed]
    found = _drawn(problem, scores, drawn, rng, stop) if len(drawn) else None
    number = [student.number for student in problem.students]
    probabilities, errors = np.ones(len(roommates)), np.zeros(len(roommates))
    if found is not None:
        roommates = np.concatenate([found.pairs, roommates[is_fixed]])
        probabilities[: len(drawn)] = found.probabilities
        errors[: len(drawn)] = found.standard_errors
    order = np.argsort(probabilities, kind="stable")
    order = order[probabilities[order] >= RARE][:KEPT_PAIRS]
    rows = [
        [
            number[roommates[k, 0]],
            number[roommates[k, 1]],
            problem.room_keys[room[roommates[k, 0]]],
            float(probabilities[k]),
            _known(errors[k]),
        ]
        for k in order
    ]
    bins = np.histogram(np.clip(probabilities, 0.0, 1.0), bins=10, range=(0.0, 1.0))[0]
    return {
        "pairs": rows,
        "n_pairs": len(roommates),
        "n_rare": int((probabilities < RARE).sum()),
        "median": float(np.median(probabilities)),
        "bins": bins.tolist(),
        "has_mixed": found is None or bool(found.has_mixed),
    }


def _drawn(
    problem: PlacementProblem,
    scores: Scores,
    pairs: NDArray[np.int64],
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> SharedRooms:
    """Return how often pairs of positions share a room in placements drawn at random."""
    return share_probabilities(
        scores,
        problem.rooms,
        problem.previous,
        problem.rules,
        attributes=problem.survey.attributes,
        pairs=pairs,
        standard_error=STANDARD_ERROR,
        max_seconds=DOUBT_SECONDS,
        rng=rng,
        should_stop=stop,
    )


def pair_scores(problem: PlacementProblem, scores: Scores) -> list[list[Any]]:
    """Return [[number, number, room key, score], ...] of roommates, lowest score first."""
    number = [student.number for student in problem.students]
    rows = [
        [number[a], number[b], problem.room_keys[problem.previous[a]], float(scores[a, b])]
        for a, b in problem.roommates()
    ]
    return sorted(rows, key=lambda row: row[3])


def held_out_years(model: LearnedModel) -> list[Cohort]:
    """Return the cohorts with past roommates that a model was not trained on, newest first.

    A model of real years is compared with real years only.
    """
    learned = set(model.cohorts.values_list("pk", flat=True))
    years = Cohort.objects.filter(organisation=model.organisation_id, n_pairs__gt=0)
    found = years.exclude(pk__in=learned).order_by("-created_at")
    return [year for year in found if year.is_simulated == model.is_simulated][:3]


def veto_figures(
    model: LearnedModel, weights: RoommateModel, years: Sequence[Cohort]
) -> dict[str, Any]:
    """Return the veto curve over held-out years; {} if there are none."""
    observed, names = [], []
    for year in years:
        try:
            survey = cohort_survey(year, questionnaire_of(model.questions))
        except InvalidProblemError:
            continue  # its questions differ
        observed.append((weights.scores(survey), _past_of(year)))
        names.append(year.name)
    if not observed:
        return {}
    curve = veto_curve(observed)
    return {
        "years": names,
        "thresholds": curve.thresholds.tolist(),
        "false_alarms": curve.false_alarms.tolist(),
        "vetoed": curve.vetoed.tolist(),
        "n_pairs": curve.n_pairs,
    }


def read_curve(figures: dict[str, Any]) -> VetoCurve:
    """Return the curve from the output of :func:`veto_figures`."""
    return VetoCurve(
        thresholds=np.array(figures["thresholds"]),
        false_alarms=np.array(figures["false_alarms"]),
        vetoed=np.array(figures["vetoed"]),
        n_pairs=figures["n_pairs"],
    )


def _past_of(cohort: Cohort) -> NDArray[np.int64]:
    rooms = cohort_rooms(cohort)
    return rooms if (rooms >= 0).any() else cohort_pairs(cohort)


def parity_figures(
    problem: PlacementProblem, scores: Scores, columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the results of groups of every rule column; a student alone has no score."""
    room = problem.previous
    placement = _placement(problem, scores)
    shares = uncertainty_shares(problem)
    own = [shares[student.pk] for student in problem.students]
    uncertainty = np.array([np.nan if share is None else share for share in own])
    uncertainty[room < 0] = np.nan
    found = []
    for column in columns:
        groups = [student.attributes.get(column, "") for student in problem.students]
        if not 2 <= len(set(groups)) <= MOST_GROUPS:
            continue
        rows = placement_parity(placement, groups, problem.rules, doubt=uncertainty)
        found += [
            {
                "column": column,
                # Checks of earlier versions hold "doubt", a number of roommates.
                "measure": "uncertainty" if row.measure == "doubt" else row.measure,
                "group": row.group,
                "count": row.count,
                "mean": _known(row.mean),
                "low": _known(row.interval[0]),
                "high": _known(row.interval[1]),
                "difference": _known(row.difference),
                "is_outside": row.is_outside,
            }
            for row in rows
        ]
    return found


def _placement(problem: PlacementProblem, scores: Scores) -> Placement:
    """Return the current rooms as the engine reads them; only rooms and scores are used."""
    room = problem.previous
    roommates = problem.roommates()
    pairs = np.array(roommates, dtype=np.int64).reshape(-1, 2)
    sums, counts = np.zeros(len(room)), np.zeros(len(room))
    for one, other in ((0, 1), (1, 0)):
        np.add.at(sums, pairs[:, one], scores[pairs[:, one], pairs[:, other]])
        np.add.at(counts, pairs[:, one], 1)
    own = np.divide(sums, counts, out=np.full(len(room), np.nan), where=counts > 0)
    shared = {frozenset(pair) for pair in roommates}
    together = [frozenset((wish.student, wish.wants)) in shared for wish in problem.rules.requests]
    return Placement(
        room=room,
        score=0.0,
        extras=0.0,
        upper_bound=0.0,
        status=Status.CONVERGED,
        n_moved=0,
        student_scores=own,
        honoured=np.array(together, dtype=bool),
        conflicts=(),
        seconds=0.0,
    )


def drift_figures(
    model: LearnedModel, stop: Callable[[], bool], progress: Callable[..., None]
) -> dict[str, Any]:
    """Return every year's own effects and their drift; {} for fewer than two years.

    Years are those of the model, ordered by the year in their names if all have one, else by
    import.
    """
    cohorts = list(model.cohorts.filter(n_pairs__gt=0).order_by("created_at"))
    if model.is_set_by_hand or len(cohorts) < 2:
        return {}
    said = [_YEAR.findall(cohort.name) for cohort in cohorts]
    at = [float(found[-1]) if found else math.nan for found in said]
    is_dated = not any(map(math.isnan, at)) and len(set(at)) == len(at)
    times = at if is_dated else [float(k) for k in range(len(cohorts))]
    order = sorted(range(len(cohorts)), key=lambda k: times[k])
    questionnaire = common_questionnaire(cohorts)
    years = [(cohort_survey(cohorts[k], questionnaire), _past_of(cohorts[k])) for k in order]
    found = estimate_by_year(
        years,
        at=[times[k] for k in order],
        max_seconds=DRIFT_SECONDS,
        on_progress=progress,
        should_stop=stop,
    )
    effects = [estimate.effects() for estimate in found.years]
    rows = [
        {
            "question": drift.question.name,
            "years": [
                [_known(row[q].effect), _known(row[q].interval[0]), _known(row[q].interval[1])]
                for row in effects
            ],
            "per_year": _known(drift.per_year),
            "low": _known(drift.interval[0]),
            "high": _known(drift.interval[1]),
            "p": _known(drift.p_value),
        }
        for q, drift in enumerate(found.drift)
    ]
    return {
        "names": [cohorts[k].name for k in order],
        "is_dated": is_dated,
        "rows": sorted(rows, key=lambda row: row["p"] if row["p"] is not None else 1.0),
    }


def _known(value: float) -> float | None:
    """Return a number that JSON can hold, or None for one that it cannot."""
    return float(value) if math.isfinite(value) else None
