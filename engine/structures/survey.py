"""Cohort with its observed pairs; the solve in theta keeps the scores factored.

The maximum over pseudomarginals comes from the methods of ``inference.matching.cascade``. All of
them bound log Z from above, so the lower bound of the optimum always holds. The upper bound L(tau)
needs a tau inside the matching polytope: one that is not proved to be inside is mixed with the
uniform one until it is.
"""

import warnings
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, lstsq
from scipy.linalg import solve as solve_linear
from scipy.sparse import csr_array

from engine.core.arguments import FloatArray, IntArray
from engine.core.options import check_callables, check_flag, check_number
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.crf.roster import as_rooms, roommate_shares
from engine.crf.survey import Survey
from engine.crf.survey_features import (
    SurveyFeatures,
    expected_pair_features,
    pair_features,
    question_features,
    upper_triangle,
)
from engine.entropies.matching import MatchingEntropy, complete_layout, make_matching_entropy
from engine.inference.matching.cascade import (
    Aim,
    BarrierPoint,
    MatchingProblem,
    Method,
    Potentials,
    Start,
    State,
    solve,
)
from engine.inference.matching.newton import newton_rates
from engine.inference.matching.newton_ascent import inverse_curvature
from engine.inference.matching.odd_sets import (
    EARLY_EXACT_MAX_NODES,
    EXACT_UP_TO,
)
from engine.kernels.answer_cells import add_cells
from engine.kernels.sparse_rows import add_outer_products
from engine.objectives.learning_dual import as_semidefinite
from engine.objectives.protocol import InnerSolution
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.protocol import Vertex
from engine.solvers.barrier import Proof

CURVATURE_PAIRS = 40_000  # sampled pairs in the Hessian estimate: a few per cent of error
DENSE_CURVATURE = 600  # features up to which the sample can estimate every pair of them
MIN_TOLERANCE = 1e-13
FAR = 1e-4  # nats per student: at this tolerance proofs may stay unfinished
EXACT_CURVATURE = 5e7  # (students times questions)^2 up to which the Hessian takes 0.1 s


CLOSE = 1e-10  # constraints closer than this, relative to their size, count as repeated


@dataclass(frozen=True, slots=True)
class FactoredScores:
    """Scores W = (Z S) Z^T, written in panels of rows."""

    left: FloatArray
    one_hot: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of students n."""
        return len(self.one_hot)

    def write_rows(self, first: int, last: int, out: FloatArray) -> None:
        """Write W[first:last]."""
        np.matmul(self.left[first:last], self.one_hot.T, out=out)

    def dense(self) -> FloatArray:
        """Return W (n, n), symmetric to the last bit."""
        values = np.empty((self.n_nodes, self.n_nodes))
        self.write_rows(0, self.n_nodes, values)
        return np.asarray((values + values.T) / 2.0)


@dataclass(frozen=True, slots=True)
class SurveyState:
    """Inner solution at ``theta`` (K,), with ``expected`` = tau Z, shape (n, columns of Z)."""

    theta: FloatArray
    expected: FloatArray
    solution: State


@dataclass(slots=True)
class SurveyStructure:
    """Cohort with its observed pairs: perfect matchings of a complete graph of the paired students.

    Points are symmetric, (n, n), in the order of the paired students; the start is 1 / (n - 1).

    Parameters
    ----------
    survey : Survey
    pairs : ndarray, shape (p, 2), students of the survey; or (n,), the room of each, -1 for none.
        Students without a roommate are left out. In rooms of more than two the observed point is
        1 / (c - 1) for every pair of c: within the degree constraints, not always a matching.
    features : SurveyFeatures
    rho : float, reweighting in [0, 1].
    should_stop : called before every sweep; ``maximise`` then raises ``StoppedError``.
    is_curvature_exact : bool
        Whether ``curvature`` is exact at any size, which makes the solve in theta Newton's method.

    Examples
    --------
    >>> from engine.datasets import simulate_university
    >>> drawn = simulate_university(6, 1, rng=np.random.default_rng(0))
    >>> year = drawn.cohorts[0]
    >>> SurveyStructure(year.survey, year.pairs, drawn.features, 1.0).n_students
    6
    """

    survey: Survey
    pairs: IntArray
    features: SurveyFeatures
    rho: float
    should_stop: StopCallback = never_stop
    is_curvature_exact: bool = False
    observed: FloatArray = field(init=False)
    labels: Vertex = field(init=False)
    entropy: MatchingEntropy = field(init=False)
    oracle: CompleteGraphMatcher = field(init=False)
    _paired: Survey = field(init=False)
    _one_hot: FloatArray = field(init=False)
    _codes: IntArray = field(init=False)
    _buffer: FloatArray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        check_number("rho", self.rho, at_least=0.0, at_most=1.0)
        check_callables(should_stop=self.should_stop)
        check_flag("is_curvature_exact", self.is_curvature_exact)
        room = as_rooms(self.pairs, self.survey.n_students, self.survey.ids)
        pairs, shares = roommate_shares(room)
        self.observed = self.features.pair_statistics(self.survey, pairs, shares)
        paired = np.flatnonzero(room >= 0)
        self._codes = self.features.codes(self.survey)[paired]
        self._one_hot = self.features.one_hot(self.survey)[paired]
        n = len(paired)
        i, j = np.searchsorted(paired, pairs).T
        self.labels = Vertex(np.tile(shares, 2), np.concatenate((i * n + j, j * n + i)), 0.5)
        self.entropy = make_matching_entropy(complete_layout(n), self.rho)
        self.oracle = CompleteGraphMatcher()
        self._paired = self.survey.take(paired)

    @property
    def codes(self) -> IntArray:
        """Columns of Z in which a student's row is 1, shape (n, Q)."""
        return self._codes

    @property
    def one_hot(self) -> FloatArray:
        """Z, shape (n, columns)."""
        return self._one_hot

    @property
    def n_students(self) -> int:
        """Number of students in pairs."""
        return len(self._one_hot)

    @property
    def start(self) -> FloatArray:
        """Point tau = 1 / (n - 1), shape (n, n), as a new array."""
        n = self.n_students
        start = np.full((n, n), 1.0 / max(n - 1, 1))
        np.fill_diagonal(start, 0.0)
        return start

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W = Z S Z^T, shape (n, n)."""
        return self.features.scores(self._paired, theta)

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of pseudomarginals (n, n), from Z^T tau Z, or of a matching, summed."""
        if isinstance(at, Vertex):
            rows, columns = np.divmod(at.support, self.n_students)
            pairs = np.stack([rows, columns], axis=1)[rows < columns]
            return self.features.pair_statistics(self._paired, pairs)
        return self.features.statistics(self._one_hot.T @ (at @ self._one_hot))

    def vertex_statistics(self, theta: FloatArray) -> FloatArray:
        """Return phi of a best matching; see ``engine.objectives.protocol.HasVertices``."""
        return self.statistics(self.oracle.compute_extreme_point(self.scores(theta)).vertex)

    def maximise(
        self, theta: FloatArray, state: SurveyState | None, accuracy: float
    ) -> InnerSolution:
        """Maximise by the cascade of methods; see ``engine.objectives.protocol.InnerProblem``."""
        n = self.n_students
        if self._buffer is None:
            self._buffer = np.empty((n, n))
        is_far = accuracy > FAR * n
        problem = MatchingProblem(
            self._scores(theta),
            self.rho,
            Aim.FREE_ENERGY,
            tolerance=max(accuracy / (4.0 * n * max(np.log(n), 1.0)), MIN_TOLERANCE),
            columns=self._one_hot,
            exact_up_to=EARLY_EXACT_MAX_NODES if is_far else EXACT_UP_TO,
            holds_new=not is_far,
            buffer=self._buffer,
            should_stop=self.should_stop,
        )
        start = None if state is None else Start(self._scores(state.theta), state.solution)
        found = solve(problem, start)
        statistics = self.features.statistics(self._one_hot.T @ found.tau)
        entropy = found.value - float(theta @ statistics)
        return InnerSolution(
            log_partition=found.upper_bound,
            statistics=statistics,
            entropy=entropy,
            sweeps=found.steps,
            is_feasible=found.proof.holds,
            state=SurveyState(theta, found.tau, found.continuation()),
            proved=self._mixture(found.proof, statistics, entropy),
            methods=found.methods,
        )

    def as_inner(
        self, tau: FloatArray, value: float, upper_bound: float, proof: Proof, theta: FloatArray
    ) -> InnerSolution:
        """Return pseudomarginals (n, n) with their bounds at theta as an inner solution."""
        statistics = self.features.statistics(self._one_hot.T @ (tau @ self._one_hot))
        entropy = value - float(theta @ statistics)
        return InnerSolution(
            log_partition=upper_bound,
            statistics=statistics,
            entropy=entropy,
            sweeps=1,
            is_feasible=proof.holds,
            proved=self._mixture(proof, statistics, entropy),
            methods=(Method.BARRIER,),
        )

    def _scores(self, theta: FloatArray) -> FactoredScores:
        return FactoredScores(self._one_hot @ self.features.block_matrix(theta), self._one_hot)

    def _mixture(
        self, proof: Proof, statistics: FloatArray, entropy: float
    ) -> tuple[FloatArray, float] | None:
        """Return phi and a lower bound of the entropy of tau mixed with the uniform point.

        H is concave: the mixture has at least the mixed entropy. None if tau needs no mixing.
        """
        n, share = self.n_students, proof.share_of_interior(self.n_students)
        if share == 0.0:
            return None
        totals = self._one_hot.sum(axis=0)
        gram = np.outer(totals, totals) - self._one_hot.T @ self._one_hot
        level = self.entropy.value(self.start)
        return (
            (1.0 - share) * statistics + share * self.features.statistics(gram / (n - 1)),
            (1.0 - share) * entropy + share * level,
        )

    def curvature(self, theta: FloatArray, state: SurveyState) -> FloatArray:
        """Estimate the Hessian of log Z, exactly if that is cheap or marginals are large.

        Small marginals give nearly F^T D F - M^T (I + tau)^-1 M, with F the features of all pairs,
        D = diag(tau) and M_i = sum_j tau_ij f_ij. F^T D F comes from sampled pairs; tau mixes
        students mostly through their answers, so (I + tau)^-1 is inverted within the span of the
        columns of Z.
        """
        work = (self.n_students * self.features.questionnaire.n_questions) ** 2
        solution = state.solution
        is_small = self.is_curvature_exact or work <= EXACT_CURVATURE
        if is_small or not isinstance(solution, Potentials):
            return as_semidefinite(self.information(theta, state))
        if self.features.n_features > DENSE_CURVATURE:
            return self._curvature_by_question(state.expected)
        n = self.n_students
        rng = np.random.default_rng(0)  # a fixed sample makes runs repeatable
        first = rng.integers(n, size=CURVATURE_PAIRS)
        second = (first + rng.integers(1, n, size=CURVATURE_PAIRS)) % n
        matrix, u = self.features.block_matrix(theta), solution.values
        scores = matrix[self._codes[first], self._codes[second]].sum(axis=1)
        weights = np.exp(np.minimum(scores - u[first] - u[second], 0.0))
        weights *= n / (2.0 * weights.sum())
        places, values = pair_features(self.features, self._codes[first], self._codes[second])
        total = np.zeros((self.features.n_features, self.features.n_features))
        add_outer_products(places, values, weights, total)
        means = expected_pair_features(self.features, self._codes, state.expected)
        return total - _absorbed(self._one_hot, state.expected, means)

    def information(self, theta: FloatArray, state: SurveyState) -> FloatArray:
        """Return the Hessian of log Z, (K, K), exact at a solution: O(n^2 Q^2 / 4 + n^3)."""
        rho, solution = np.full(self.n_students, self.rho), state.solution
        point = Start(self._scores(state.theta), solution).point()
        if isinstance(solution, BarrierPoint):  # its potentials are only close
            tau = solution.marginals
            rates = inverse_curvature(tau, 1.0 - tau, np.array(2.0 * self.rho - 1.0))
        else:
            rates = newton_rates(point, rho)
        return pair_information(self.features, self._codes, rates, point.sets)

    def _curvature_by_question(self, expected: FloatArray) -> FloatArray:
        """Estimate the Hessian without its entries between questions; no sampling.

        With many questions a sample of pairs is too small to estimate K^2 entries, while the block
        of one question follows exactly from the expected counts of its pairs of answers.
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
    """Return M^T (I + tau)^-1 M, shape (K, K), the curvature absorbed by the potentials."""
    counts = one_hot.T @ one_hot
    mixed = counts + one_hot.T @ expected
    along = one_hot.T @ means
    inner = np.linalg.pinv(counts, hermitian=True) - np.linalg.pinv(mixed, hermitian=True)
    total: FloatArray = means.T @ means - along.T @ inner @ along
    return total


def pair_information(
    features: SurveyFeatures, codes: IntArray, rates: FloatArray, sets: tuple[IntArray, ...] = ()
) -> FloatArray:
    """Return the Hessian of a year's log Z in theta, what its pairs say about the weights.

        H = F^T D F - M^T (A D A^T)^-1 M,       M = A D F

    F are the features of all pairs, D the rates at which marginals follow their scores, and the
    rows of A the students and the binding odd sets. F^T D F is computed from counts of the pairs of
    answers to every two questions, so that no pair's features are formed. The result, of shape
    (K, K), is positive semidefinite up to rounding.

    Parameters
    ----------
    features : SurveyFeatures
    codes : ndarray, shape (n, Q), columns of Z.
    rates : ndarray, shape (n, n), symmetric, d tau / d score; zero on the diagonal.
    sets : tuple of ndarray, students of the odd sets that hold with equality.

    Notes
    -----
    O(n^2 Q^2 / 4 + n^3) in time.
    """
    total = outer_products(features, codes, rates)
    means = np.concatenate(
        [
            row_statistics(features, codes, rates),
            *(set_statistics(features, codes, rates, nodes)[None] for nodes in sets),
        ]
    )
    system = _constraint_system(rates, sets)
    absorbed = means.T @ _solve(system, means)
    return np.asarray(total - (absorbed + absorbed.T) / 2.0)


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a symmetric system whose right sides are in its range, singular if pairs are certain.

    The diagonal is scaled to 1 and slightly raised, which changes only the part outside the range.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(system)), TOLERANCES.tiny))
    scaled = system * scale[:, None] * scale
    scaled[np.diag_indices(len(scaled))] += CLOSE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            found = solve_linear(scaled, right * scale[:, None], assume_a="sym", check_finite=False)
        except LinAlgError:
            found = lstsq(scaled, right * scale[:, None], cond=CLOSE)[0]
    return np.asarray(found * scale[:, None])


def _cell_numbers(features: SurveyFeatures) -> tuple[IntArray, IntArray]:
    """Return the number of every unordered pair of answers (Q, L + 1, L + 1), and each question's
    first number (Q + 1,).
    """
    sizes = np.diff(features.column_offsets)
    cells = np.zeros((len(sizes), sizes.max(), sizes.max()), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes * (sizes + 1) // 2)]).astype(np.int64)
    for q, size in enumerate(sizes):
        upper = upper_triangle(int(size))
        cells[q][upper] = starts[q] + np.arange(len(upper[0]))
        cells[q].T[upper] = cells[q][upper]
    return cells, starts


def outer_products(features: SurveyFeatures, codes: IntArray, rates: FloatArray) -> FloatArray:
    """Return F^T D F, shape (K, K).

    The pairs of answers to a question and each later one are counted by products of the rates of
    the students of one answer with the answers of the students.
    """
    cells, starts = _cell_numbers(features)
    offsets, bounds = features.column_offsets, features.feature_offsets
    own, one_hot = codes - offsets[:-1], np.zeros((len(codes), offsets[-1]))
    np.put_along_axis(one_hot, codes, 1.0, axis=1)
    maps = _cell_features(features, starts)
    out = np.empty((features.n_features, features.n_features))
    for q in range(len(starts) - 1):
        order = np.argsort(own[:, q], kind="stable")
        ends = np.searchsorted(own[order, q], np.arange(offsets[q + 1] - offsets[q] + 1))
        total = np.zeros((starts[q + 1] - starts[q], starts[-1]))
        for answer, (first, last) in enumerate(pairwise(ends)):
            nodes, others = order[first:last], order[:last]
            counts = rates[nodes][:, others].T @ one_hot[nodes, offsets[q] :]
            add_cells(counts, own[others], cells, offsets, q, answer, total)
        of_question = slice(int(bounds[q]), int(bounds[q + 1]))
        rows = maps[starts[q] : starts[q + 1], of_question].T @ total
        later = slice(of_question.start, None)
        out[later, of_question] = maps[starts[q] :, later].T @ rows[:, starts[q] :].T
        out[of_question, later] = out[later, of_question].T
    return out


def _cell_features(features: SurveyFeatures, starts: IntArray) -> csr_array:
    """Return the features of every unordered pair of answers, (cells, K), two entries per row."""
    columns, numbers = [], []
    for q in range(len(starts) - 1):
        base = features.column_offsets[q]
        low, high = upper_triangle(int(features.column_offsets[q + 1] - base))
        places, values = question_features(features, q, base + low, base + high)
        columns.append(places)
        numbers.append(values)
    rows = np.repeat(np.arange(starts[-1]), 2)
    entries = np.concatenate(numbers).ravel(), (rows, np.concatenate(columns).ravel())
    return csr_array(entries, shape=(int(starts[-1]), features.n_features))


def row_statistics(features: SurveyFeatures, codes: IntArray, rates: FloatArray) -> FloatArray:
    """Return sum_j D_ij f_ij for every student, shape (n, K)."""
    out = np.zeros((len(codes), features.n_features))
    rows = np.arange(len(codes))
    for q in range(codes.shape[1]):
        first, last = features.column_offsets[q : q + 2]
        hot = np.zeros((len(codes), last - first))
        hot[rows, codes[:, q] - first] = 1.0
        counts = rates @ hot
        for column in range(first, last):
            places, values = question_features(features, q, codes[:, q], np.full_like(rows, column))
            for k in range(2):
                out[rows, places[:, k]] += values[:, k] * counts[:, column - first]
    return out


def set_statistics(
    features: SurveyFeatures, codes: IntArray, rates: FloatArray, nodes: IntArray
) -> FloatArray:
    """Return the sum of D_ij f_ij over the pairs inside a set, shape (K,)."""
    inside = np.ascontiguousarray(rates[np.ix_(nodes, nodes)])
    return np.asarray(row_statistics(features, codes[nodes], inside).sum(axis=0) / 2.0)


def _constraint_system(rates: FloatArray, sets: tuple[IntArray, ...]) -> FloatArray:
    """Return A D A^T, shape (n + m, n + m)."""
    n, size = len(rates), len(rates) + len(sets)
    system = np.zeros((size, size))
    system[:n, :n] = rates
    system[np.arange(n), np.arange(n)] = rates.sum(axis=1)
    for k, nodes in enumerate(sets):
        inside = rates[np.ix_(nodes, nodes)]
        system[n + k, nodes] = system[nodes, n + k] = inside.sum(axis=1)
        for m, other in enumerate(sets):
            both = np.intersect1d(nodes, other)
            system[n + k, n + m] = rates[np.ix_(both, both)].sum() / 2.0
    return system
