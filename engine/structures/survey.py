"""Cohort with its observed pairs; the solve in theta keeps the scores factored.

While every marginal is below 1/2, the maximum over pseudomarginals comes from one potential per
student (``inference.matching.potentials``); otherwise from Newton's method and multipliers of odd
sets (``inference.matching.polytope``). Both bound log Z from above, so the lower bound of the
optimum always holds. The upper bound L(tau) needs a tau inside the matching polytope: one that is
not proved to be inside is mixed with the uniform one until it is.
"""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.options import check_callables, check_flag, check_number
from engine.core.progress import StopCallback, never_stop
from engine.crf.pair_features import expected_pair_features, pair_features, question_features
from engine.crf.roster import as_rooms, roommate_shares
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures
from engine.entropies.matching import MatchingEntropy, complete_layout, make_matching_entropy
from engine.inference.matching.newton import newton_rates
from engine.inference.matching.newton_path import as_semidefinite, inverse_curvature
from engine.inference.matching.newton_point import ActiveSetState, NewtonPoint, uniform_point
from engine.inference.matching.odd_sets import (
    EARLY_EXACT_MAX_NODES,
    EXACT_UP_TO,
    OddSetProof,
    examine_cheaply,
    examine_odd_sets,
)
from engine.inference.matching.polytope import solve_inside_polytope, solve_over_polytope
from engine.inference.matching.polytope_bound import ROUNDING
from engine.inference.matching.potentials import PotentialSolution, solve_potentials
from engine.kernels.sparse_rows import add_outer_products
from engine.objectives.protocol import InnerSolution
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.protocol import Vertex
from engine.structures.survey_curvature import pair_information

CURVATURE_PAIRS = 40_000  # sampled pairs in the Hessian estimate: a few per cent of error
DENSE_CURVATURE = 600  # features up to which the sample can estimate every pair of them
MIN_TOLERANCE = 1e-13
FAR = 1e-4  # nats per student: at this tolerance proofs may stay unfinished
EXACT_CURVATURE = 5e7  # (students times questions)^2 up to which the Hessian takes 0.1 s


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


@dataclass(frozen=True, slots=True)
class Potentials:
    """Solution that one potential for each student determines: ``values`` (n,), nats."""

    values: FloatArray


@dataclass(frozen=True, slots=True)
class BarrierPoint:
    """Solution of the barrier method, near an ``active`` set that is no start for continuation.

    ``marginals`` (n, n) lie inside the matching polytope.
    """

    active: ActiveSetState
    marginals: FloatArray


@dataclass(frozen=True, slots=True)
class SurveyState:
    """Inner solution at ``theta`` (K,), with ``expected`` = tau Z, shape (n, columns of Z)."""

    theta: FloatArray
    expected: FloatArray
    solution: Potentials | ActiveSetState | BarrierPoint


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
        """Maximise by potentials; see ``engine.objectives.protocol.InnerProblem``."""
        n = self.n_students
        if self._buffer is None:
            self._buffer = np.empty((n, n))
        is_far = accuracy > FAR * n
        looked_at = EARLY_EXACT_MAX_NODES if is_far else EXACT_UP_TO
        known = None if state is None else state.solution
        if known is None or isinstance(known, Potentials):
            tolerance = max(accuracy / (4.0 * n * max(np.log(n), 1.0)), MIN_TOLERANCE)
            start = None if known is None else known.values
            solution = solve_potentials(
                self._scores(theta),
                np.full(n, self.rho),
                start,
                tolerance,
                self._buffer,
                should_stop=self.should_stop,
            )
            if solution.is_on_branch:
                answer, is_outside = self._summarise(theta, solution, looked_at)
                if not is_outside:
                    return answer
                state = answer.state
        return self._solve_by_newton(theta, state, looked_at, holds_new=not is_far)

    def _scores(self, theta: FloatArray) -> FactoredScores:
        return FactoredScores(self._one_hot @ self.features.block_matrix(theta), self._one_hot)

    def _dense_scores(self, theta: FloatArray) -> FloatArray:
        """Return W (n, n), symmetric to the last bit."""
        values = np.empty((self.n_students, self.n_students))
        self._scores(theta).write_rows(0, self.n_students, values)
        return np.asarray((values + values.T) / 2.0)

    def _summarise(
        self, theta: FloatArray, solution: PotentialSolution, exact_up_to: int
    ) -> tuple[InnerSolution, bool]:
        """Compute the statistics, the entropy and the proof of the odd sets from the marginals.

        If nothing else proves them, all odd cuts are checked for at most ``exact_up_to`` students.
        Also return whether an odd set is violated.
        """
        expected = np.empty_like(self._one_hot)

        def take(first: int, last: int, panel: FloatArray) -> None:
            np.matmul(panel, self._one_hot, out=expected[first:last])

        logs, squares, top = solution.summarise(take)
        statistics = self.features.statistics(self._one_hot.T @ expected)
        u, sums = solution.potentials, solution.row_sums
        slack = 2.0 * float(np.abs(u - self.rho) @ np.abs(1.0 - sums))
        value = logs + float(u @ sums)
        slack += ROUNDING * (3.0 * float(np.abs(u) @ sums) + 2.0 * abs(logs))
        proof = examine_cheaply(len(u), squares, top)
        if not proof.holds:
            proof = examine_odd_sets(
                solution.marginals(), exact_up_to=exact_up_to, should_stop=self.should_stop
            )
        entropy = value - float(theta @ statistics) - slack
        answer = InnerSolution(
            log_partition=value + slack,
            statistics=statistics,
            entropy=entropy,
            sweeps=solution.sweeps,
            is_feasible=proof.holds,
            state=SurveyState(theta, expected, Potentials(u)),
            proved=self._mixture(proof, statistics, entropy),
        )
        return answer, bool(proof.violated)

    def _solve_by_newton(
        self, theta: FloatArray, state: SurveyState | None, exact_up_to: int, *, holds_new: bool
    ) -> InnerSolution:
        """Solve by Newton's method if a marginal exceeds 1/2 or an odd set binds."""
        rho, values = np.full(self.n_students, self.rho), self._dense_scores(theta)
        if state is not None and isinstance(state.solution, BarrierPoint):
            # the continuation from there had stalled
            solution = solve_inside_polytope(
                values,
                rho,
                state.solution.active.sets,
                exact_up_to=exact_up_to,
                should_stop=self.should_stop,
            )
        else:
            solution = solve_over_polytope(
                self._start_of_path(rho, state),
                values,
                rho,
                exact_up_to=exact_up_to,
                holds_new=holds_new,
                should_stop=self.should_stop,
            )
        expected = solution.tau @ self._one_hot
        statistics = self.features.statistics(self._one_hot.T @ expected)
        entropy = solution.value - float(theta @ statistics)
        active = solution.point.state()
        following = BarrierPoint(active, solution.tau) if solution.is_from_inside else active
        return InnerSolution(
            log_partition=solution.upper_bound,
            statistics=statistics,
            entropy=entropy,
            sweeps=solution.steps,
            is_feasible=solution.proof.holds,
            state=SurveyState(theta, expected, following),
            proved=self._mixture(solution.proof, statistics, entropy),
        )

    def _start_of_path(self, rho: FloatArray, state: SurveyState | None) -> NewtonPoint:
        """Return the saved solution of a state; without one, that of equal scores."""
        if state is None:
            return uniform_point(self.n_students, rho)
        scores, solution = self._dense_scores(state.theta), state.solution
        if isinstance(solution, Potentials):
            return NewtonPoint(scores, solution.values)
        active = solution.active if isinstance(solution, BarrierPoint) else solution
        return active.at(scores)

    def _mixture(
        self, proof: OddSetProof, statistics: FloatArray, entropy: float
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
        rho = np.full(self.n_students, self.rho)
        point, solution = self._start_of_path(rho, state), state.solution
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
