"""Calibration of pair probabilities on held-out pairs.

Probabilities are marginals of the joint matching at scores a W. The factor a is Platt's: the slope
of a logistic regression of "were they roommates" on the model's log-odds, over held-out folds.
Because the scores are multiplied, and not each probability changed, the probabilities remain
marginals of one joint distribution and still sum to one over a student's partners.
"""

from collections.abc import Sequence

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InfeasibleError, StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.crf.roster import Cohort, as_rooms, split_rooms
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures
from engine.inference.matching.cascade import compute_group_marginals
from engine.kernels.work_time import wall_seconds
from engine.learning.roommates.solvers import solve_roommates
from engine.metrics.calibration import fit_platt_slope
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult

FOLDS = 3  # largest number of further, coarser solves
FOLD_GAP = 1e-3
FOLD_SECONDS = 60.0
LARGEST_GAP = 3 * FOLD_GAP  # largest certified gap of a usable fold that ended early
MIN_PAIRS = 30  # below this the slope is noise
SLOPE_RANGE = (0.05, 3.0)


def fit_calibration(
    cohorts: Sequence[Cohort],
    features: SurveyFeatures,
    ridge: float,
    rho: float,
    *,
    max_seconds: float = np.inf,
    should_stop: StopCallback = never_stop,
) -> float | None:
    """Return the calibration factor on the scores, or None if it cannot be estimated.

    With two or more years, whole years are held out; with one year, each half of its pairs (a
    complete set of pairs of its students) is held out in turn. The result is None if there are too
    few pairs, if the run was stopped, or if a fold was not solved in its share of the seconds.

    Folds use the full ridge on fewer pairs. Scaling the ridge by their share was no better: over 14
    cases of 400 and 1,000 students with strong preferences |log factor - log best| was 0.18 with
    both; over 30 cases with weak preferences it was 0.51 with the full ridge and 0.57 scaled.
    """
    residents = sum(int((as_rooms(x, s.n_students) >= 0).sum()) for s, x in cohorts)
    if residents < 2 * MIN_PAIRS:
        return None
    ends = wall_seconds() + max_seconds
    odds: list[tuple[FloatArray, FloatArray]] = []
    folds = _folds(cohorts)
    for number, (training, held_out) in enumerate(folds):
        seconds = min((ends - wall_seconds()) / (len(folds) - number), FOLD_SECONDS)
        if seconds <= 0.0 or should_stop():
            return None
        result = solve_roommates(
            training,
            features,
            ridge=ridge,
            rho=rho,
            solver="auto",
            limits=Limits(FOLD_GAP, max_seconds=seconds),
            callbacks=Callbacks(should_stop=should_stop),
            rng=np.random.default_rng(0),
        )
        if not _is_solved(result):
            return None
        try:
            for survey, pairs in held_out:
                odds.append(
                    held_out_log_odds(
                        survey, pairs, features, result.theta, rho, should_stop=should_stop
                    )
                )
        except (InfeasibleError, StoppedError):
            return None
    slope = fit_platt_slope(*(np.concatenate(part) for part in zip(*odds, strict=True)))
    return float(np.clip(slope, *SLOPE_RANGE))


def _is_solved(result: LearningResult) -> bool:
    """Return True if the weights are near enough to their optimum to be used for calibration."""
    if result.status is Status.CANCELLED:
        return False
    is_near = result.is_certified and result.relative_gap <= LARGEST_GAP
    return result.status is Status.CONVERGED or is_near


def held_out_log_odds(
    survey: Survey,
    pairs: IntArray,
    features: SurveyFeatures,
    theta: FloatArray,
    rho: float,
    *,
    should_stop: StopCallback = never_stop,
) -> tuple[FloatArray, FloatArray]:
    """Return log-odds relative to a uniform draw, and outcomes (1: shared a room), of all pairs."""
    room = as_rooms(pairs, survey.n_students)
    paired = np.flatnonzero(room >= 0)
    small, room = survey.take(paired), room[paired]
    none = np.empty((0, 2), dtype=np.int64)
    scores = features.scores(small, theta)
    tau = compute_group_marginals(scores, rho, none, should_stop=should_stop).tau
    rows, columns = np.triu_indices(len(paired), 1)
    probability = np.clip(tau[rows, columns], 1e-300, 1 - 1e-12)
    odds = np.log(probability) - np.log1p(-probability)
    even = -np.log(max(len(paired) - 2, 1))
    return odds - even, (room[rows] == room[columns]).astype(np.float64)


def _folds(cohorts: Sequence[Cohort]) -> list[tuple[list[Cohort], list[Cohort]]]:
    if len(cohorts) == 1:
        survey, pairs = cohorts[0]
        room = as_rooms(pairs, survey.n_students)
        parts = split_rooms(room, 2, np.random.default_rng(0))
        halves = [(survey, as_rooms(part, survey.n_students)) for part in parts]
        return [([halves[0]], [halves[1]]), ([halves[1]], [halves[0]])]
    count = min(FOLDS, len(cohorts))
    return [
        (
            [c for k, c in enumerate(cohorts) if k % count != fold],
            [c for k, c in enumerate(cohorts) if k % count == fold],
        )
        for fold in range(count)
    ]
