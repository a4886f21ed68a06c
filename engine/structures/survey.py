"""One cohort with its observed pairs; the solve in theta keeps the scores factored.

The maximum over pseudomarginals comes from one potential per student while every marginal is below
1/2, from messages beyond. Both bound log Z from above over the degree constraints, which hold the
matching polytope, so the lower bound of the optimum always stands. The upper bound L(tau) needs
tau inside the polytope: its odd-set inequalities are proved for every answer by the largest
marginal, by the second eigenvalue, or, in small cohorts, by the smallest odd cut; what cannot be
proved is reported as not feasible, and the learner turns to Frank-Wolfe, whose oracle knows all.
"""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.checkpoint import State
from engine.crf.survey import Survey, check_pairs, partners_of
from engine.crf.survey_features import SurveyFeatures, distance_table
from engine.entropies.matching import MatchingEntropy, complete_layout, make_matching_entropy
from engine.inference.matching_messages import bound_value, solve_messages
from engine.inference.matching_potentials import PotentialSolution, solve_potentials
from engine.inference.odd_sets import (
    EXACT_UP_TO,
    bound_second_eigenvalue,
    is_in_matching_polytope,
    odd_sets_hold,
    spectral_bound_holds,
)
from engine.kernels.sparse_rows import add_outer_products
from engine.objectives.protocol import InnerSolution
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.protocol import Vertex, make_indicator

CURVATURE_PAIRS = 40_000  # sampled pairs in the Hessian estimate: a few per cent of error
DENSE_CURVATURE = 600  # features up to which the sample says enough about every two of them
MIN_TOLERANCE = 1e-13
MESSAGE_SHARE = 0.01  # a change of the marginals costs more than itself in the bound


@dataclass(frozen=True, slots=True)
class FactoredScores:
    """W = (Z S) Z^T, written a panel of rows at a time."""

    left: FloatArray
    one_hot: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of students n."""
        return len(self.one_hot)

    def write_rows(self, first: int, last: int, out: FloatArray) -> None:
        """Write W[first:last]."""
        np.matmul(self.left[first:last], self.one_hot.T, out=out)


@dataclass(slots=True)
class SurveyStructure:
    """A cohort with its observed pairs: perfect matchings of a complete graph of those in pairs.

    Points are symmetric, (n, n), in the order of the paired students; the start is 1 / (n - 1).

    Parameters
    ----------
    survey : Survey
    pairs : ndarray, shape (p, 2), students of the survey; those in no pair are left out.
    features : SurveyFeatures
    rho : float, reweighting in [0, 1].
    """

    survey: Survey
    pairs: IntArray
    features: SurveyFeatures
    rho: float
    observed: FloatArray = field(init=False)
    labels: Vertex = field(init=False)
    entropy: MatchingEntropy = field(init=False)
    oracle: CompleteGraphMatcher = field(init=False)
    _paired: Survey = field(init=False)
    _one_hot: FloatArray = field(init=False)
    _codes: IntArray = field(init=False)
    _buffer: FloatArray | None = None

    def __post_init__(self) -> None:
        pairs = check_pairs(self.pairs, self.survey.n_students, self.survey.ids)
        self.observed = self.features.pair_statistics(self.survey, pairs)
        paired = np.sort(pairs.ravel())
        self._codes = self.features.codes(self.survey)[paired]
        self._one_hot = self.features.one_hot(self.survey)[paired]
        n = len(paired)
        partner = np.searchsorted(paired, partners_of(pairs, self.survey.n_students)[paired])
        self.labels = make_indicator(np.arange(n, dtype=np.int64) * n + partner, 0.5)
        self.entropy = make_matching_entropy(complete_layout(n), self.rho)
        self.oracle = CompleteGraphMatcher()
        self._paired = self.survey.take(paired)

    @property
    def n_students(self) -> int:
        """Number of students in pairs."""
        return len(self._one_hot)

    @property
    def start(self) -> FloatArray:
        """tau = 1 / (n - 1), shape (n, n), a new array."""
        n = self.n_students
        start = np.full((n, n), 1.0 / max(n - 1, 1))
        np.fill_diagonal(start, 0.0)
        return start

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W = Z S Z^T, shape (n, n)."""
        return self.features.scores(self._paired, theta)

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of pseudomarginals (n, n) or of a matching: read off Z^T tau Z, or summed."""
        if isinstance(at, Vertex):
            rows, columns = np.divmod(at.support, self.n_students)
            pairs = np.stack([rows, columns], axis=1)[rows < columns]
            return self.features.pair_statistics(self._paired, pairs)
        return self.features.statistics(self._one_hot.T @ (at @ self._one_hot))

    def maximise(self, theta: FloatArray, state: State | None, accuracy: float) -> InnerSolution:
        """Solve by potentials; see ``engine.objectives.protocol.InnerProblem``."""
        n = self.n_students
        if self._buffer is None:
            self._buffer = np.empty((n, n))
        matrix = self.features.block_matrix(theta)
        scores = FactoredScores(self._one_hot @ matrix, self._one_hot)
        rho = np.full(n, self.rho)
        if state is None or "messages" not in state:
            tolerance = max(accuracy / (4.0 * n * max(np.log(n), 1.0)), MIN_TOLERANCE)
            start = None if state is None else state["potentials"]
            solution = solve_potentials(scores, rho, start, tolerance, self._buffer)
            if solution.is_on_branch:
                return self._summarise(theta, solution)
        tolerance = max(MESSAGE_SHARE * accuracy / n, MIN_TOLERANCE)
        return self._solve_by_messages(theta, scores, rho, state, tolerance)

    def _summarise(self, theta: FloatArray, solution: PotentialSolution) -> InnerSolution:
        """Write the marginals out once: statistics, entropy, and the test of the odd sets."""
        expected = np.empty_like(self._one_hot)

        def take(first: int, last: int, panel: FloatArray) -> None:
            np.matmul(panel, self._one_hot, out=expected[first:last])

        logs, squares, top = solution.summarise(take)
        inner = self._one_hot.T @ expected
        statistics = self.features.statistics(inner)
        u, sums = solution.potentials, solution.row_sums
        slack = 2.0 * float(np.abs(u - self.rho) @ np.abs(1.0 - sums))
        value = logs + float(u @ sums)
        is_feasible = odd_sets_hold(len(u), squares, top)
        if not is_feasible:
            gram = self._one_hot.T @ self._one_hot
            second = bound_second_eigenvalue(gram, inner, expected, squares)
            is_feasible = spectral_bound_holds(len(u), second, top)
        if not is_feasible and len(u) <= EXACT_UP_TO:
            is_feasible = is_in_matching_polytope(solution.marginals())
        return InnerSolution(
            log_partition=value + slack,
            statistics=statistics,
            entropy=value - float(theta @ statistics) - slack,
            sweeps=solution.sweeps,
            is_feasible=is_feasible,
            state={"potentials": u, "expected": expected},
        )

    def _solve_by_messages(
        self,
        theta: FloatArray,
        scores: FactoredScores,
        rho: FloatArray,
        state: State | None,
        tolerance: float,
    ) -> InnerSolution:
        """Solve where a marginal exceeds 1/2."""
        n = scores.n_nodes
        values = np.empty((n, n))
        scores.write_rows(0, n, values)
        old = None if state is None else state.get("messages")
        solution = solve_messages(values, rho, old, tolerance)
        value, upper_bound = bound_value(values, rho, solution)
        expected = solution.tau @ self._one_hot
        statistics = self.features.statistics(self._one_hot.T @ expected)
        free = 1.0 - solution.tau
        return InnerSolution(
            log_partition=upper_bound,
            statistics=statistics,
            entropy=value - float(theta @ statistics),
            sweeps=solution.sweeps,
            is_feasible=is_in_matching_polytope(solution.tau),
            state={
                "potentials": _potentials_of(values, solution.tau, free, self.rho),
                "messages": solution.messages,
                "expected": expected,
            },
        )

    def curvature(self, theta: FloatArray, state: State) -> FloatArray:
        """Estimate the Hessian of log Z at small marginals, where it is nearly

            F^T D F - M^T (I + tau)^-1 M,       F features of all pairs, D = diag(tau)

        with M_i = sum_j tau_ij f_ij. F^T D F comes from sampled pairs; tau mixes students mostly
        through their answers, so (I + tau)^-1 is inverted within the span of the columns of Z.
        """
        if self.features.n_features > DENSE_CURVATURE:
            return self._curvature_by_question(state["expected"])
        n = self.n_students
        rng = np.random.default_rng(0)  # a fixed sample: the steps of a run can be repeated
        first = rng.integers(n, size=CURVATURE_PAIRS)
        second = (first + rng.integers(1, n, size=CURVATURE_PAIRS)) % n
        matrix, u = self.features.block_matrix(theta), state["potentials"]
        scores = matrix[self._codes[first], self._codes[second]].sum(axis=1)
        weights = np.exp(np.minimum(scores - u[first] - u[second], 0.0))
        weights *= n / (2.0 * weights.sum())
        places, values = pair_features(self.features, self._codes[first], self._codes[second])
        total = np.zeros((self.features.n_features, self.features.n_features))
        add_outer_products(places, values, weights, total)
        means = expected_pair_features(self.features, self._codes, state["expected"])
        return total - _absorbed(self._one_hot, state["expected"], means)

    def _curvature_by_question(self, expected: FloatArray) -> FloatArray:
        """Estimate the Hessian without its entries between questions; no sampling.

        With many questions a sample of pairs has too little to say about K^2 entries, while the
        block of one question follows exactly from the expected counts of its pairs of answers.
        """
        features = self.features
        out = np.zeros((features.n_features, features.n_features))
        for q in range(features.questionnaire.n_questions):
            columns = slice(*(int(x) for x in features.column_offsets[q : q + 2]))
            own = slice(*(int(x) for x in features.feature_offsets[q : q + 2]))
            counts = self._one_hot[:, columns].T @ expected[:, columns] / 2.0
            low, high = np.divmod(np.arange(counts.size), len(counts))
            first, second = low + columns.start, high + columns.start
            places, values = question_features(features, q, first, second)
            block = np.zeros((own.stop - own.start, own.stop - own.start))
            add_outer_products(places - own.start, values, counts.ravel(), block)
            means = expected_pair_features(features, self._codes, expected, q)[:, own]
            out[own, own] = block - _absorbed(
                self._one_hot[:, columns], expected[:, columns], means
            )
        return out


def _absorbed(one_hot: FloatArray, expected: FloatArray, means: FloatArray) -> FloatArray:
    """Return M^T (I + tau)^-1 M, shape (K, K), what the potentials take up of the curvature."""
    counts = one_hot.T @ one_hot
    mixed = counts + one_hot.T @ expected
    along = one_hot.T @ means
    inner = np.linalg.pinv(counts, hermitian=True) - np.linalg.pinv(mixed, hermitian=True)
    total: FloatArray = means.T @ means - along.T @ inner @ along
    return total


def _potentials_of(scores: FloatArray, tau: FloatArray, free: FloatArray, rho: float) -> FloatArray:
    """Return u with exp(W - u_i - u_j) near tau (1 - tau)^c, as the curvature estimate needs it."""
    n = len(tau)
    x = np.log(np.maximum(tau, 1e-300)) + (2.0 * rho - 1.0) * np.log(np.maximum(free, 1e-16))
    sums = np.where(np.eye(n, dtype=bool), 0.0, scores - x).sum(axis=1)
    return np.asarray((sums - sums.sum() / (2.0 * (n - 1))) / max(n - 2, 1))


def expected_pair_features(
    features: SurveyFeatures, codes: IntArray, expected: FloatArray, only: int | None = None
) -> FloatArray:
    """Return M, shape (n, K): the features that each student's pair has in expectation.

    ``codes`` (n, Q); ``expected`` (n, D) = tau Z, the expected answers of the partner; ``only``
    fills in one question.
    """
    out = np.zeros((len(codes), features.n_features))
    rows = np.arange(len(codes))
    for q in range(features.questionnaire.n_questions) if only is None else (only,):
        start, stop = features.column_offsets[q : q + 2]
        for column in range(start, stop):
            other = np.full_like(codes, column)
            places, values = question_features(features, q, codes[:, q], other[:, q])
            for k in range(2):
                out[rows, places[:, k]] += values[:, k] * expected[:, column]
    return out


def pair_features(
    features: SurveyFeatures, first: IntArray, second: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the features of some pairs from their columns of Z: places and values, (p, 2 Q)."""
    parts = [
        question_features(features, q, first[:, q], second[:, q])
        for q in range(features.questionnaire.n_questions)
    ]
    places = np.concatenate([part[0] for part in parts], axis=1)
    return places, np.concatenate([part[1] for part in parts], axis=1)


def question_features(
    features: SurveyFeatures, question: int, first: IntArray, second: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the two features of some pairs that one question gives, (p, 2).

    The distance, and the indicator of the two answers. ``first``, ``second`` (p,): columns of Z.
    """
    asked = features.questionnaire.questions[question]
    levels, base = asked.n_levels, int(features.feature_offsets[question])
    a = first - features.column_offsets[question]
    b = second - features.column_offsets[question]
    low, high = np.minimum(a, b), np.maximum(a, b)
    table = np.zeros((levels + 1, levels + 1))
    table[:levels, :levels] = distance_table(asked)
    indicator = base + 1 + low * levels - low * (low - 1) // 2 + high - low
    places = np.stack([np.full_like(indicator, base), indicator], axis=1)
    values = np.stack([table[low, high], np.ones(len(low))], axis=1)
    blank = high == levels
    if features.has_blanks[question]:
        end = int(features.feature_offsets[question + 1])
        places[blank, 1] = np.where(low[blank] == levels, end - 1, end - 2)
    else:
        places[blank, 1] = base
        values[blank, 1] = 0.0
    return places, values
