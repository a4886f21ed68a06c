"""Evaluation of a roommate model on real pairs: ranking, best pairs and probabilities."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables
from engine.core.progress import StopCallback, never_stop
from engine.crf.roster import as_rooms
from engine.crf.survey import Survey
from engine.inference.matching.cascade import compute_group_marginals
from engine.kernels.threads import one_blas_thread
from engine.learning.roommates.model import RoommateModel
from engine.metrics.calibration import ReliabilityBin, reliability_bins
from engine.metrics.roc import RocCurve, compute_roc
from engine.oracles.perfect_matching import CompleteGraphMatcher


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures of a roommate model evaluated on the pairs of a year.

    Parameters
    ----------
    roc, baseline_roc : RocCurve
        Real roommates against all other pairs of paired students; the baseline scores -1 per step
        of distance and question (the paper's constant baseline).
    hamming_error : float, share of students with a wrong roommate in the best set of pairs.
    hamming_chance : float, the same for uniformly drawn pairs.
    reliability, raw_reliability : tuples of ReliabilityBin, with and without calibration
        The two are equal if the model was not calibrated.
    n_pairs : int
    """

    roc: RocCurve
    baseline_roc: RocCurve
    hamming_error: float
    hamming_chance: float
    reliability: tuple[ReliabilityBin, ...]
    raw_reliability: tuple[ReliabilityBin, ...]
    n_pairs: int

    @property
    def auc(self) -> float:
        """Probability that a real pair scores above another pair."""
        return self.roc.auc

    @property
    def baseline_auc(self) -> float:
        """Probability that a real pair is closer in plain distance than another pair."""
        return self.baseline_roc.auc


def evaluate_roommates(
    model: RoommateModel,
    survey: Survey,
    pairs: IntArray,
    *,
    should_stop: StopCallback = never_stop,
) -> Evaluation:
    """Evaluate a model on the pairs of a year that it was not learned from.

    Parameters
    ----------
    model : RoommateModel
    survey : Survey, n students, with the questions of the model.
    pairs : ndarray, shape (p, 2), or rooms (n,) as in ``train_roommates``
        Students without a roommate are left out.
    should_stop : callable returning bool, optional
        Called before every sweep for the marginals, which are most of the work.

    Returns
    -------
    Evaluation
        ``auc`` of the model's scores and ``baseline_auc`` of plain distance, with their curves and
        the reliability of probabilities.

    Raises
    ------
    InvalidProblemError
        If the survey has other questions, a pair is wrong, or there are fewer than two pairs.
    StoppedError
        If ``should_stop`` returned True.

    Examples
    --------
    >>> from engine import simulate_university, train_roommates
    >>> first, second = simulate_university(30, 2, rng=np.random.default_rng(0)).cohorts
    >>> model = train_roommates([(first.survey, first.pairs)]).model
    >>> 0.0 <= evaluate_roommates(model, second.survey, second.pairs).auc <= 1.0
    True
    """
    check_callables(should_stop=should_stop)
    model.check_survey(survey)
    room = as_rooms(pairs, survey.n_students, survey.ids)
    residents = np.flatnonzero(room >= 0)
    if len(residents) < 4:
        raise InvalidProblemError(
            f"Evaluation needs at least two pairs, received {len(residents) // 2}."
        )
    with one_blas_thread():
        return _evaluate(model, survey.take(residents), room[residents], should_stop)


def _evaluate(
    model: RoommateModel, small: Survey, room: IntArray, should_stop: StopCallback
) -> Evaluation:
    """Evaluate a model on students who all have roommates."""
    scores = model.features.scores(small, model.theta)
    baseline = model.features.scores(small, model.features.constant_baseline())
    best = CompleteGraphMatcher().solve(scores)
    n = len(room)
    factor = 1.0 if model.calibration is None else model.calibration
    raw = calibrated = _reliability(scores, model.rho, room, should_stop)
    if factor != 1.0:
        calibrated = _reliability(factor * scores, model.rho, room, should_stop)
    return Evaluation(
        roc=_roc(scores, room),
        baseline_roc=_roc(baseline, room),
        hamming_error=float((room[best.partner] != room).mean()),
        hamming_chance=1.0 - float((np.bincount(room)[room] - 1.0).mean()) / (n - 1),
        reliability=calibrated,
        raw_reliability=raw,
        n_pairs=n // 2,
    )


def _roc(scores: FloatArray, room: IntArray) -> RocCurve:
    rows, columns = np.triu_indices(len(scores), 1)
    is_pair = room[rows] == room[columns]
    values = scores[rows, columns]
    return compute_roc(values[is_pair], values[~is_pair])


def _reliability(
    scores: FloatArray, rho: float, room: IntArray, should_stop: StopCallback
) -> tuple[ReliabilityBin, ...]:
    none = np.empty((0, 2), dtype=np.int64)
    tau = compute_group_marginals(scores, rho, none, should_stop=should_stop).tau
    rows, columns = np.triu_indices(len(scores), 1)
    others = np.bincount(room)[room] - 1.0
    outcomes = (room[rows] == room[columns]) / others[rows]
    return reliability_bins(tau[rows, columns], outcomes)
