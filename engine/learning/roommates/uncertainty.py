"""How sure learned weights are: standard errors, the years apart, and their drift.

Weights are estimated anew with a pull towards zero (lambda) of 1 at most: an interval is to hold
whatever the truth is, and a strong pull shifts weights by more than chance does. The covariance is

    (H + lambda I)^-1,      H = sum over years of the exact Hessian of log Z at the estimate

What pairs say about a question is its interaction: adding a number per answer to both students'
scores changes no matching's probability. So a question's effect is the slope of its scores on the
distance between answers beside a free number per answer, pairs as common as in the past years.

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
from engine.core.errors import InvalidProblemError, StoppedError
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
from engine.solvers.control import Callbacks, Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure

WEAK_RIDGE = 1.0  # a weight of one nat, e times the odds, is nothing unusual before any data
GAP = 0.01  # nats of the likelihood: within .15 of a standard error in any direction
CONFIDENCE = 0.95
WIDTH = float(ndtri(0.5 + CONFIDENCE / 2.0))  # standard errors on either side


@dataclass(frozen=True, slots=True)
class Effect:
    """What one question does to a pair, and how sure that is.

    Parameters
    ----------
    question : Question
    effect : float, nats per step apart (nominal and binary questions: if different).
    standard_error : float, nats; inf where the past years cannot tell, all answers being alike.
    p_value : float
        How often years in which the question matters to nobody would show as much of it, in any
        of its pairs of answers.
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
    """Weights with their covariance.

    Parameters
    ----------
    theta : ndarray, shape (K,), nats, read-only.
    covariance : ndarray, shape (K, K), of theta, the weak pull read as prior knowledge; read-only.
    features : SurveyFeatures, the meaning of theta.
    ridge, rho : float, what theta was estimated with.
    gap : float, nats, certified: what the penalised likelihood lacks of its best at most.
    n_pairs : int, roommates learned from.
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
        """Of every weight, shape (K,); sums of weights may be far better known."""
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
        """Test that all interactions of a question are zero."""
        contrasts = _interactions(self.features, index)
        spread = contrasts @ self.covariance @ contrasts.T
        values, vectors = np.linalg.eigh(spread)
        kept = values > 1e-9 * values[-1]
        along = (vectors.T @ (contrasts @ self.theta))[kept] / np.sqrt(values[kept])
        return float(chdtrc(int(kept.sum()), along @ along))


@dataclass(frozen=True, slots=True)
class Drift:
    """How one question's effect moves over the years.

    Parameters
    ----------
    question : Question
    per_year, standard_error : float, nats a year: the weighted least-squares slope.
    p_value : float
        How often years of one and the same effect would differ as much among themselves by chance,
        in a trend or otherwise.
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
    """Every year's own estimate, in order, and what they say of a drift.

    ``years`` estimates in the same layout of theta; ``drift`` one per question; ``at`` the times of
    the years.
    """

    years: tuple[WeightEstimate, ...]
    drift: tuple[Drift, ...]
    at: tuple[float, ...]


def estimate_weights(
    cohorts: Sequence[Cohort],
    *,
    features: SurveyFeatures | None = None,
    rho: float = 1.0,
    ridge: float = WEAK_RIDGE,
    max_seconds: float | None = None,
    should_stop: StopCallback = never_stop,
) -> WeightEstimate:
    """Estimate weights with their covariance from years with pairs.

    Parameters
    ----------
    cohorts : sequence of (Survey, pairs (p, 2) or rooms (n,)), as ``train_roommates`` takes them.
    features : SurveyFeatures, the layout wanted; by default that of these cohorts.
    rho : float in [0, 1]
    ridge : float, lambda > 0 of the estimate.
    max_seconds : float, optional; the estimate has the gap that it has by then.
    should_stop : callback

    Raises
    ------
    InvalidProblemError
        If there is no cohort, or one has other questions or fewer than two pairs.
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    In rooms of more than two, roommates of one room are not independent of each other, which the
    covariance does not see: ``refit_effects`` draws whole rooms.
    Time as for learning, and O(n^2 Q^2 / 4 + n^3) for the Hessian.
    """
    if not cohorts:
        raise InvalidProblemError("Intervals need at least one past cohort, received none.")
    features = features or make_survey_features([survey for survey, _ in cohorts])
    structures, residents = [], 0
    for number, (survey, observed) in enumerate(cohorts, start=1):
        features.questionnaire.check_same_as(survey.questionnaire, f"Cohort {number}")
        structure = SurveyStructure(survey, observed, features, rho)
        if structure.n_students < 4:
            raise InvalidProblemError(f"Cohort {number} needs at least 2 pairs to learn from.")
        structures.append(structure)
        residents += structure.n_students
    limits = Limits(0.0, gap=GAP, max_seconds=max_seconds)
    with one_blas_thread():
        result = ThetaAscent(structures, ridge, limits, Callbacks(should_stop=should_stop)).solve()
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
    rho: float = 1.0,
    max_seconds: float | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
) -> WeightsByYear:
    """Estimate every year by itself, and each question's drift over them.

    Parameters
    ----------
    cohorts : sequence of (Survey, pairs or rooms), at least two, of the same questions.
    at : sequence of float, the years' times; by default 0, 1, 2 ...
    rho : float in [0, 1]
    max_seconds : float, optional, of all years together.
    on_progress, should_stop : callbacks

    Raises
    ------
    InvalidProblemError
        If there are fewer than two years, or all of one time.
    StoppedError
        If ``should_stop`` answered True.
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
                [cohort], features=features, rho=rho, max_seconds=share, should_stop=should_stop
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
) -> FloatArray:
    """Return the effects estimated from years drawn anew from an estimate, shape (refits, Q).

    The same students choose again under the estimated weights, into rooms of the same sizes; the
    standard deviation over refits is a standard error that trusts neither the curvature nor the
    approximation of log Z (parametric bootstrap, Efron and Tibshirani 1993).

    Raises
    ------
    StoppedError
        If ``should_stop`` answered True.
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
        )
        found.append([row.effect for row in refitted.effects()])
    return np.array(found).reshape(refits, estimate.features.questionnaire.n_questions)


def effect_contrast(features: SurveyFeatures, index: int) -> FloatArray:
    """Return c with c . theta the effect of a question, shape (K,); zeros where it has none."""
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
    """Return contrasts that are all zero when no pair of answers matters, shape (r, K)."""
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
    """Weigh the years by their precision."""
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
