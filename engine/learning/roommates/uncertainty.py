"""Uncertainty of learned weights: standard errors, estimates by year, and drift over the years.

Weights are estimated again with a ridge (lambda) of at most 1: an interval must be valid whatever
the true weights are, and a strong ridge shifts weights by more than chance does. The covariance is

    (H + lambda I)^-1,      H = sum over years of the exact Hessian of log Z at the estimate

Pairs give information only about the interaction of a question: adding a number per answer to both
students' scores changes no matching's probability. So a question's effect is the slope of its
scores on the distance between answers, with a free number per answer, weighted as in past years.

References
----------
Wald 1943 (tests from the information matrix); DerSimonian and Laird 1986, without the random part
(years weighted by their precision).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import chdtrc, ndtri  # scipy.stats would take as long as Django to load

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.checkpoint import Checkpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.options import check_callables, check_number, check_seconds
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.crf.questionnaire import Question
from engine.crf.roster import Cohort, as_rooms
from engine.crf.survey import Survey
from engine.crf.survey_features import (
    SurveyFeatures,
    centre_twice,
    distance_table,
    make_survey_features,
)
from engine.datasets.roster_sampler import sample_roster
from engine.kernels.threads import one_blas_thread
from engine.learning.roommates.defaults import RHO
from engine.learning.roommates.kept_estimates import KeptEstimates, estimate_key
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure

WEAK_RIDGE = 1.0  # as a prior, a weight of one nat, a factor e on the odds, is not unusual
GAP = 1e-5  # nats of the likelihood: within 0.005 of a standard error in any direction
NEWTON = 0.1  # a step that leaves more of the gradient has the exact curvature computed again
CONFIDENCE = 0.95
WIDTH = float(ndtri(0.5 + CONFIDENCE / 2.0))  # standard errors on either side


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of one question on a pair's score, with its standard error and p-value.

    Parameters
    ----------
    question : Question
    effect : float, nats per step apart (nominal and binary questions: if different).
    standard_error : float, nats; inf if all answers of the past years are alike.
    p_value : float
        Probability that interactions this large, over all pairs of answers, appear by chance if
        the question matters to nobody.
    """

    question: Question
    effect: float
    standard_error: float
    p_value: float

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval of the effect, nats."""
        half = WIDTH * self.standard_error
        return self.effect - half, self.effect + half


@dataclass(frozen=True, slots=True, eq=False)
class WeightEstimate:
    """Estimated weights with their covariance.

    Parameters
    ----------
    theta : ndarray, shape (K,), nats, read-only.
    covariance : ndarray, shape (K, K), of theta, with the weak ridge as a prior; read-only.
    features : SurveyFeatures, the meaning of theta.
    ridge, rho : float, settings of the estimate.
    gap : float, nats, certified bound on the distance of the penalised likelihood to its maximum.
    n_pairs : int, number of pairs learned from.
    """

    theta: FloatArray
    covariance: FloatArray
    features: SurveyFeatures
    ridge: float
    rho: float
    gap: float
    n_pairs: int

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of every weight, shape (K,); sums of weights may have far smaller ones."""
        return np.sqrt(np.diag(self.covariance))

    def effects(self) -> tuple[Effect, ...]:
        """Return every question's effect, in the order of the questionnaire."""
        rows = []
        for index, question in enumerate(self.features.questionnaire.questions):
            contrast = effect_contrast(self.features, index)
            if not contrast.any():
                rows.append(Effect(question, 0.0, np.inf, 1.0))
                continue
            variance = float(contrast @ self.covariance @ contrast)
            effect, error = float(contrast @ self.theta), float(np.sqrt(variance))
            rows.append(Effect(question, effect, error, self._p_value(index)))
        return tuple(rows)

    def _p_value(self, index: int) -> float:
        """Return the p-value of the test that all interactions of a question are zero."""
        contrasts = _interactions(self.features, index)
        spread = contrasts @ self.covariance @ contrasts.T
        values, vectors = np.linalg.eigh(spread)
        kept = values > 1e-9 * values[-1]
        along = (vectors.T @ (contrasts @ self.theta))[kept] / np.sqrt(values[kept])
        return float(chdtrc(int(kept.sum()), along @ along))


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of one question's effect over the years.

    Parameters
    ----------
    question : Question
    per_year, standard_error : float, nats a year: the weighted least-squares slope.
    p_value : float
        Probability that years with the same effect differ this much by chance, in a trend or
        otherwise.
    """

    question: Question
    per_year: float
    standard_error: float
    p_value: float

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval of the slope, nats a year."""
        half = WIDTH * self.standard_error
        return self.per_year - half, self.per_year + half


@dataclass(frozen=True, slots=True, eq=False)
class WeightsByYear:
    """Separate estimates of every year, in order, and the drift of every question.

    ``years`` are the estimates, in the same layout of theta; ``drift`` has one entry per question;
    ``at`` are the times of the years.
    """

    years: tuple[WeightEstimate, ...]
    drift: tuple[Drift, ...]
    at: tuple[float, ...]


def estimate_weights(
    cohorts: Sequence[Cohort],
    *,
    features: SurveyFeatures | None = None,
    rho: float = RHO,
    ridge: float = WEAK_RIDGE,
    max_seconds: float | None = None,
    should_stop: StopCallback = never_stop,
    kept: KeptEstimates | None = None,
) -> WeightEstimate:
    """Estimate weights with their covariance from years with pairs.

    Parameters
    ----------
    cohorts : sequence of (Survey, pairs (p, 2) or rooms (n,)), as ``train_roommates`` takes them.
    features : SurveyFeatures, the layout of theta; by default that of these cohorts.
    rho : float in [0, 1]
    ridge : float, lambda > 0 of the estimate.
    max_seconds : float, optional; at the limit the estimate so far is used, with its gap.
    should_stop : callback
    kept : KeptEstimates, optional
        Finished estimates, from which this one is taken, and the state of one in progress.

    Returns
    -------
    WeightEstimate
        With the effect of every question and its standard error.

    Raises
    ------
    InvalidProblemError
        If there is no cohort, or one has other questions or fewer than two pairs.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    In rooms of more than two, roommates of one room are not independent of each other, which the
    covariance ignores: ``refit_effects`` draws whole rooms.
    Time as for learning, and O(n^2 Q^2 / 4 + n^3) for the Hessian.

    Examples
    --------
    >>> from engine import simulate_university
    >>> year = simulate_university(30, 1, rng=np.random.default_rng(0)).cohorts[0]
    >>> estimate = estimate_weights([(year.survey, year.pairs)])
    >>> len(estimate.effects()), estimate.n_pairs
    (14, 15)
    """
    check_number("rho", rho, at_least=0.0, at_most=1.0)
    check_number("ridge", ridge, above=0.0)
    check_seconds("max_seconds", max_seconds)
    check_callables(should_stop=should_stop)
    if not cohorts:
        raise InvalidProblemError("Intervals need at least one past cohort, received none.")
    features = features or make_survey_features([survey for survey, _ in cohorts])
    structures, residents = [], 0
    for number, (survey, observed) in enumerate(cohorts, start=1):
        features.questionnaire.check_same_as(survey.questionnaire, f"Cohort {number}")
        structure = SurveyStructure(survey, observed, features, rho, is_curvature_exact=True)
        if structure.n_students < 4:
            raise InvalidProblemError(f"Cohort {number} needs at least 2 pairs to learn from.")
        structures.append(structure)
        residents += structure.n_students

    def solve(checkpoint: Checkpoint | None) -> LearningResult:
        limits = Limits(0.0, gap=GAP, max_seconds=max_seconds)
        callbacks = Callbacks(should_stop=should_stop, checkpoint=checkpoint)
        return ThetaAscent(structures, ridge, limits, callbacks, refresh_ratio=NEWTON).solve()

    with one_blas_thread():
        if kept is None:
            result = solve(None)
        else:
            result = kept.estimate(estimate_key(cohorts, features, rho, ridge, max_seconds), solve)
        information = ridge * np.eye(len(result.theta))
        for structure in structures:
            if should_stop():
                raise StoppedError("Cancelled.")
            solution = structure.maximise(result.theta, None, GAP / (10.0 * len(structures)))
            information += structure.information(result.theta, solution.state)
        factor = cho_factor((information + information.T) / 2.0)
        covariance = cho_solve(factor, np.eye(len(result.theta)))
    gap = max(result.objective - result.lower_bound, 0.0)
    return WeightEstimate(
        result.theta, read_only(covariance), features, ridge, rho, gap, residents // 2
    )


def estimate_by_year(
    cohorts: Sequence[Cohort],
    *,
    at: Sequence[float] | None = None,
    rho: float = RHO,
    max_seconds: float | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    kept: KeptEstimates | None = None,
) -> WeightsByYear:
    """Estimate the weights of every year separately, and each question's drift over the years.

    Parameters
    ----------
    cohorts : sequence of (Survey, pairs or rooms), at least two, of the same questions.
    at : sequence of float, the years' times; by default 0, 1, 2 ...
    rho : float in [0, 1]
    max_seconds : float, optional, of all years together.
    on_progress, should_stop : callbacks
    kept : KeptEstimates, optional; see ``estimate_weights``.

    Raises
    ------
    InvalidProblemError
        If there are fewer than two years, or all have the same time.
    StoppedError
        If ``should_stop`` returned True.
    """
    times = np.arange(len(cohorts), dtype=np.float64) if at is None else np.array(at, dtype=float)
    if len(cohorts) < 2 or len(times) != len(cohorts) or np.ptp(times) == 0.0:
        raise InvalidProblemError("A drift needs at least two years of different times.")
    features = make_survey_features([survey for survey, _ in cohorts])
    share = None if max_seconds is None else max_seconds / len(cohorts)
    years = []
    for number, cohort in enumerate(cohorts):
        on_progress(Progress(f"Year {number + 1} by itself", fraction=number / len(cohorts)))
        years.append(
            estimate_weights(
                [cohort],
                features=features,
                rho=rho,
                max_seconds=share,
                should_stop=should_stop,
                kept=kept,
            )
        )
    effects = [year.effects() for year in years]
    drift = tuple(_drift([row[q] for row in effects], times) for q in range(len(effects[0])))
    return WeightsByYear(tuple(years), drift, tuple(float(t) for t in times))


def refit_effects(
    estimate: WeightEstimate,
    cohorts: Sequence[Cohort],
    refits: int,
    *,
    rng: np.random.Generator,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    kept: KeptEstimates | None = None,
) -> FloatArray:
    """Return effects estimated from years sampled from an estimate, shape (refits, Q).

    Each refit samples rooms of the same sizes for the same students under the estimated weights;
    the standard deviation over refits is a standard error that relies neither on the curvature nor
    on the approximation of log Z (parametric bootstrap, Efron and Tibshirani 1993).

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.
    """
    draw = [_sampler(estimate, survey, observed, rng) for survey, observed in cohorts]
    surveys = [survey for survey, _ in cohorts]
    found = []
    for number in range(refits):
        on_progress(Progress(f"Refit {number + 1} of {refits}", fraction=number / refits))
        again = [(survey, sample()) for survey, sample in zip(surveys, draw, strict=True)]
        refitted = estimate_weights(
            again,
            features=estimate.features,
            rho=estimate.rho,
            ridge=estimate.ridge,
            should_stop=should_stop,
            kept=kept,
        )
        found.append([row.effect for row in refitted.effects()])
    return np.array(found).reshape(refits, estimate.features.questionnaire.n_questions)


def effect_contrast(features: SurveyFeatures, index: int) -> FloatArray:
    """Return c such that c . theta is the effect of a question, shape (K,); zeros if undefined."""
    question = features.questionnaire.questions[index]
    share = np.asarray(features.frequencies[index])
    mass = np.outer(share, share)
    distance = centre_twice(distance_table(question), share)
    spread = float((mass * distance * distance).sum())
    contrast = np.zeros(features.n_features)
    if spread > 1e-12:
        own = slice(*(int(x) for x in features.feature_offsets[index : index + 2]))
        contrast[own] = _read_off(features, index, mass * distance / spread)
    return contrast


def _interactions(features: SurveyFeatures, index: int) -> FloatArray:
    """Return contrasts of theta that are all zero if no pair of answers matters, shape (r, K)."""
    share = np.asarray(features.frequencies[index])
    given = np.flatnonzero(share > 0.0)
    first, second = np.triu_indices(len(share))
    rows = []
    for u, v in zip(first, second, strict=True):
        if u in given and v in given:
            table = np.zeros((len(share), len(share)))
            table[u, v] = table[v, u] = np.sqrt(share[u] * share[v])
            row = np.zeros(features.n_features)
            own = slice(*(int(x) for x in features.feature_offsets[index : index + 2]))
            row[own] = _read_off(features, index, _centre_out(table, share))
            rows.append(row)
    return np.array(rows)


def _centre_out(table: FloatArray, share: FloatArray) -> FloatArray:
    """Return T' with <T', S> = <T, S centred twice>."""
    rows = table.sum(axis=1)
    return np.asarray(
        table - np.outer(rows, share) - np.outer(share, rows) + rows.sum() * np.outer(share, share)
    )


def _read_off(features: SurveyFeatures, index: int, table: FloatArray) -> FloatArray:
    """Return the weights of a question's features in <T, S_q>, T symmetric (L, L)."""
    question = features.questionnaire.questions[index]
    upper = np.triu_indices(question.n_levels)
    pairs = np.where(upper[0] == upper[1], table[upper], 2.0 * table[upper])
    blanks = np.zeros(2 * features.has_blanks[index])
    return np.concatenate([[(table * distance_table(question)).sum()], pairs, blanks])


def _drift(effects: Sequence[Effect], at: FloatArray) -> Drift:
    """Return the drift of a question over the years, weighted by their precision."""
    values = np.array([row.effect for row in effects])
    errors = np.array([row.standard_error for row in effects])
    known = np.isfinite(errors) & (errors > 0.0)
    question = effects[0].question
    if known.sum() < 2 or np.ptp(at[known]) == 0.0:
        return Drift(question, 0.0, np.inf, 1.0)
    weight, values, at = errors[known] ** -2.0, values[known], at[known]
    mean, middle = np.average(values, weights=weight), np.average(at, weights=weight)
    spread = float(weight @ (at - middle) ** 2)
    slope = float(weight @ ((at - middle) * values)) / spread
    apart = float(weight @ (values - mean) ** 2)
    return Drift(question, slope, spread**-0.5, float(chdtrc(len(values) - 1, apart)))


def _sampler(
    estimate: WeightEstimate, survey: Survey, observed: IntArray, rng: np.random.Generator
) -> Callable[[], IntArray]:
    """Return a function that draws the rooms of a year under the estimated weights."""
    room = as_rooms(observed, survey.n_students, survey.ids)
    who = np.flatnonzero(room >= 0)
    scores = estimate.features.scores(survey.take(who), estimate.theta)
    sizes = np.bincount(room[who])
    capacities = sizes[sizes > 0].astype(np.int64)

    def draw() -> IntArray:
        again = np.full(survey.n_students, -1, dtype=np.int64)
        again[who] = sample_roster(scores, capacities, rng=rng).room
        return again

    return draw
