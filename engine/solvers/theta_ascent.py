"""Quasi-Newton maximisation of l_rho(theta) over warm-started inner maximisations.

    gradient of l_rho = sum_m phi(Y^m) - phi(tau^m(theta)) - lambda theta

L-BFGS (Nocedal and Wright 2006, algorithm 7.4) in the metric of a Hessian estimate that the inner
problems offer: with a fair estimate a handful of evaluations suffices. Every evaluation yields both
bounds, so the certificate costs nothing. Steps are safeguarded by Armijo's rule on the lower bound.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import StoppedError
from engine.core.options import check_callables, check_number, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES
from engine.kernels.threads import one_blas_thread
from engine.objectives.learning_dual import Bounds, LearningDual, make_learning_dual
from engine.objectives.protocol import (
    HasVertices,
    InnerProblem,
    InnerSolution,
    Interruptible,
    WarmStart,
)
from engine.solvers.barrier import BarrierSolution, WeightedPolytope, solve_by_barrier
from engine.solvers.control import Callbacks, Limits, ProblemStamp, Run
from engine.solvers.result import LearningResult
from engine.solvers.simplex_ascent import ascend_faces

MAX_BUNDLE_POINTS = 120
"""Maximum number of points kept; points of smallest weight are dropped first."""

MAX_BUNDLE_SOLVES = 200
"""Maximum number of faces a minimisation; a start from the last weights usually needs few."""

BUNDLE_ACCURACY = 1e-9
"""Error that a minimisation may leave, as a share of the largest entropy."""


INNER_SHARE = 0.02  # part of the target gap that inexact inner solutions may use up
ROUNDING = 1e-12  # differences below this share of the objective are rounding errors
FURTHEST = 2.0  # largest promised rise of a step, in sizes of the likelihood
LONG = 0.5  # times that size: a step that promises more is first checked at the best vertices
KINKED = 1.0  # relative gap below which a rejected step counts as a sign of kinks
CLOSED = 1e-7  # relative gap below which only rounding prevents a rise
MANY_FEATURES = 400  # number from which the curvature takes longer than inner solves
FUTILE = 15  # evaluations in a row that closed the gap by less than a twentieth
BARRIER = ("barrier",)  # name of the method in results
SHORTEN = (0.1, 0.5)  # a rejected step shrinks to where the slope vanishes, within these shares


@dataclass(slots=True)
class DualBundle:
    """Visited points of one learning problem, whose best combination tightens the upper bound.

    H_rho is concave and phi linear, so for weights w on the simplex and visited points tau_t

        L(sum_t w_t tau_t) <= 1/(2 lambda) ||observed - sum_t w_t phi(tau_t)||^2
                              - sum_t w_t H(tau_t)

    and the right-hand side, which needs the statistics and entropies only, is an upper bound of the
    optimum for every w. Minimising over w is a quadratic programme with one variable for each point
    kept. Far from the optimum the residual of the latest point dominates L, and residuals of
    successive points cancel, so that this bound can be closer by orders of magnitude.

    Parameters
    ----------
    observed : ndarray, shape (K,), sum_m phi(Y^m)
    ridge : float, lambda > 0

    References
    ----------
    Teo, Vishwanathan, Smola and Le 2010 (bundle methods for regularised risk), seen from the dual.
    """

    observed: FloatArray
    ridge: float
    _residuals: list[FloatArray] = field(default_factory=list)
    _gram: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    _entropies: FloatArray = field(default_factory=lambda: np.zeros(0))
    _weights: FloatArray = field(default_factory=lambda: np.zeros(0))

    def add(self, statistics: FloatArray, entropy: float) -> float:
        """Add phi(tau) and H(tau) of one feasible tau; return the upper bound (nats)."""
        residual = self.observed - statistics
        products = np.array([r @ residual for r in self._residuals] + [residual @ residual])
        n = len(products)
        gram = np.empty((n, n))
        gram[:-1, :-1] = self._gram
        gram[-1], gram[:, -1] = products, products
        self._residuals.append(residual)
        self._gram = gram
        self._entropies = np.append(self._entropies, entropy)
        self._weights = np.append(self._weights, 1.0 if n == 1 else 0.0)
        if n > MAX_BUNDLE_POINTS:
            self._drop(int(np.argmin(self._weights[:-1])))
        return self._minimise()

    @property
    def parameters(self) -> FloatArray:
        """Return theta of the best combination, shape (K,)."""
        return np.asarray(self._weights @ np.array(self._residuals)) / self.ridge

    def _drop(self, index: int) -> None:
        kept = np.arange(len(self._residuals)) != index
        del self._residuals[index]
        self._gram = self._gram[np.ix_(kept, kept)]
        self._entropies = self._entropies[kept]
        self._weights = self._weights[kept]
        self._weights /= self._weights.sum()

    def _minimise(self) -> float:
        """Find the best weights, starting from the last ones; return the bound."""
        quadratic, weights, entropies = self._gram / self.ridge, self._weights, self._entropies
        tolerance = BUNDLE_ACCURACY * float(np.abs(entropies).max())
        alone = np.zeros(len(weights), dtype=np.int64)
        ascend_faces(quadratic, entropies, alone, 1, weights, tolerance, MAX_BUNDLE_SOLVES)
        return float(0.5 * weights @ quadratic @ weights - entropies @ weights)


PolytopeMaker = Callable[[float, StopCallback], WeightedPolytope]
Factor = tuple[FloatArray, bool]  # of the Hessian estimate, as scipy.linalg.cho_factor returns it


@dataclass(slots=True)
class DualEvaluation:
    """Both bounds and the gradient of l_rho at one theta, with their inner solutions."""

    theta: FloatArray
    inner: list[InnerSolution]
    bounds: Bounds
    gradient: FloatArray

    @property
    def slack(self) -> float:
        """Largest amount by which inexact inner solutions lowered the lower bound (nats)."""
        parts = [s.log_partition - float(self.theta @ s.statistics) - s.entropy for s in self.inner]
        return max(sum(parts), 0.0)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that computed the inner solutions, each once."""
        return tuple(dict.fromkeys(name for s in self.inner for name in s.methods))


@dataclass(slots=True)
class Ascent:
    """Present point, best theta, and memory of L-BFGS.

    Parameters
    ----------
    now : DualEvaluation
    best_theta, best_lower : the theta of the largest lower bound so far, and that bound (nats).
    metric : factor of the Hessian estimate.
    history : list of (step, fall of the gradient), the pairs of L-BFGS.
    iteration : int
    certified : bool, whether the best upper bound was proved.
    best_methods : tuple of str, methods of the inner solutions at the best theta.
    """

    now: DualEvaluation
    best_theta: FloatArray
    best_lower: float
    metric: Factor
    history: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    iteration: int = 0
    certified: bool = True
    best_methods: tuple[str, ...] = ()

    def note_best(self, tried: DualEvaluation) -> None:
        """Keep theta if its lower bound is at least the best one."""
        if tried.bounds.lower >= self.best_lower:
            self.best_theta, self.best_lower = tried.theta, tried.bounds.lower
            self.best_methods = tried.methods


def sum_statistics(inner: Sequence[InnerSolution]) -> FloatArray:
    """Return sum_m phi(tau^m), shape (K,)."""
    return np.asarray(np.sum([solution.statistics for solution in inner], axis=0))


@dataclass(slots=True)
class ThetaAscent:
    """Quasi-Newton solver of the learning problem in theta.

    Parameters
    ----------
    problems : sequence of InnerProblem, one per observation.
    ridge : float, lambda > 0.
    limits : Limits
    callbacks : Callbacks
    memory : int, pairs of steps and gradient changes that L-BFGS keeps.
    refresh_ratio : float
        Estimate the Hessian again, and drop the pairs, after a step that left more than this
        share of the gradient's norm; infinity if the estimate is poor and the pairs are not.
    inner_rise : float
        Part of the rise promised by a step that inexact inner solutions may use up.
    make_polytope : function of the target gap and of should_stop, optional
        Polytope of all problems, on which the barrier method closes in where kinks cut steps short.

    References
    ----------
    Sion's theorem gives both bounds (Tang 2015, equations 4 to 6).

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> result = ThetaAscent([pairs], 1.0).solve()
    >>> result.theta.round(3).tolist(), result.relative_gap <= 1e-4
    ([0.0], True)
    """

    problems: Sequence[InnerProblem]
    ridge: float
    limits: Limits = field(default_factory=Limits)
    callbacks: Callbacks = field(default_factory=Callbacks)
    memory: int = 12
    refresh_ratio: float = 0.5
    inner_rise: float = 0.02
    make_polytope: PolytopeMaker | None = None
    _sweeps: int = field(init=False)
    _bundle: DualBundle = field(init=False)
    _is_kinked: bool = field(init=False, default=False)  # a step was rejected near the optimum
    _kinks_pay: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_number("ridge", self.ridge, above=0.0)
        check_whole("memory", self.memory, at_least=1)
        check_number("refresh_ratio", self.refresh_ratio, at_least=0.0, or_infinite=True)
        check_number("inner_rise", self.inner_rise, at_least=0.0)
        if self.make_polytope is not None:
            check_callables(make_polytope=self.make_polytope)

    def solve(self, start: FloatArray | None = None) -> LearningResult:
        """Return parameters whose gap is at most the target, or the best found within the limits.

        Raises
        ------
        InvalidProblemError
            If there is no problem or ridge is not above 0.
        """
        dual = make_learning_dual([p.observed for p in self.problems], self.ridge)
        self._bundle = DualBundle(dual.observed, self.ridge)
        self._sweeps = 0
        self._is_kinked, self._kinks_pay = False, True
        run = Run(self.limits, self.callbacks)
        with one_blas_thread():
            ascent = self._begin_or_resume(dual, run, start)
            ascent.certified = self._record(run, ascent.now, ascent.iteration, ascent.certified)
            with self._interruptible(run.is_over):
                return self._iterate(dual, run, ascent)

    @contextmanager
    def _interruptible(self, should_stop: StopCallback) -> Iterator[None]:
        """Let interruptible problems stop within a step, which may take longer than a limit.

        The first evaluation is never interrupted, because without it there is nothing to return.
        """
        problems = [problem for problem in self.problems if isinstance(problem, Interruptible)]
        for problem in problems:
            problem.should_stop = should_stop
        try:
            yield
        finally:
            for problem in problems:
                problem.should_stop = never_stop

    def _begin_or_resume(self, dual: LearningDual, run: Run, start: FloatArray | None) -> Ascent:
        """Evaluate the start, or the best theta of a checkpoint of the same stamp."""
        cold: list[WarmStart | None] = [None] * len(self.problems)
        saved = run.load(self._stamp(dual))
        if saved is None:
            theta = np.zeros(len(dual.observed)) if start is None else np.array(start, dtype=float)
            now = self._evaluate(dual, run, theta, cold)
            return Ascent(
                now,
                theta,
                now.bounds.lower,
                self._metric(now),
                certified=now.bounds.is_certified,
                best_methods=now.methods,
            )
        self._sweeps = int(saved["sweeps"])
        run.upper, run.lower = (float(x) for x in saved["run_bounds"])
        theta, allowed = saved["theta"], float(saved["slack"])
        now = self._evaluate(dual, run, theta, cold, allowed)
        if now.slack > allowed:
            # The first solve of a problem may be less accurate than requested; the next step
            # would take the error for a change of the gradient.
            states: list[WarmStart | None] = [solution.state for solution in now.inner]
            now = self._evaluate(dual, run, theta, states, allowed)
        return Ascent(
            now,
            theta,
            now.bounds.lower,
            self._metric(now),
            iteration=int(saved["iteration"]),
            certified=bool(saved["certified"]),
            best_methods=now.methods,
        )

    def _iterate(self, dual: LearningDual, run: Run, ascent: Ascent) -> LearningResult:
        while True:
            status = run.verdict(ascent.iteration)
            if status is not None:
                return self._finish(run, ascent, status)
            now = ascent.now
            try:
                following = self._step(dual, run, now, ascent.metric, ascent.history)
            except StoppedError:
                status = run.verdict(ascent.iteration)
                return self._finish(run, ascent, status or Status.CANCELLED)
            if following is None:
                is_near = CLOSED < run.relative_gap <= KINKED
                if self._kinks_pay and (is_near or self._is_kinked):
                    self._close_in(dual, run, ascent)
                    if self._kinks_pay or run.verdict(ascent.iteration) is not None:
                        continue
                return self._finish(run, ascent, Status.STALLED)
            change = _norm(following.gradient) / max(_norm(now.gradient), TOLERANCES.tiny)
            ascent.history.append((following.theta - now.theta, now.gradient - following.gradient))
            del ascent.history[: -self.memory]
            if ascent.iteration == 0 or change > self.refresh_ratio:
                ascent.metric, ascent.history = self._metric(following), []
            ascent.now, ascent.iteration = following, ascent.iteration + 1
            ascent.note_best(following)
            ascent.certified = self._record(run, following, ascent.iteration, ascent.certified)
            if self._is_kinked:
                self._close_in(dual, run, ascent)
            if run.is_checkpoint_due():
                self._save(dual, run, ascent)

    def _close_in(self, dual: LearningDual, run: Run, ascent: Ascent) -> None:
        """Move to theta of the best combination of visited points, as long as the gap closes.

        If nearly every pair is certain and lambda is small, l_rho is a parabola cut off by kinks: a
        Newton step overshoots, and the shortened step gains a tenth. The visited points contain the
        kinks. Curvature, which takes longest with thousands of features, is not needed. With few
        features Newton steps turn at kinks by themselves, until none rises: an even cycle at
        rho = 1 has such a kink, where its Bethe optimum jumps from one matching to the other.
        """
        self._is_kinked, futile = False, 0
        if self._solve_inside(run, ascent):
            self._kinks_pay = False
            return
        first = gap = run.upper - run.lower
        while futile < FUTILE and run.verdict(ascent.iteration) is None:
            theta = (self._bundle.parameters + ascent.now.theta) / 2.0
            try:
                tried = self._evaluate(dual, run, theta, [s.state for s in ascent.now.inner])
            except StoppedError:
                return
            ascent.iteration += 1
            ascent.certified = self._record(run, tried, ascent.iteration, ascent.certified)
            if tried.bounds.lower > ascent.now.bounds.lower:
                ascent.now = tried
            ascent.note_best(tried)
            before, gap = gap, run.upper - run.lower
            futile = futile + 1 if gap > 0.95 * before else 0
        if run.verdict(ascent.iteration) is None:
            ascent.metric, ascent.history = self._metric(ascent.now), []
            self._kinks_pay = gap <= 0.5 * first

    def _solve_inside(self, run: Run, ascent: Ascent) -> bool:
        """Close in by the barrier method; return False if the problems have no polytope for it."""
        if self.make_polytope is None:
            return False
        polytope = self.make_polytope(self.limits.relative_gap, run.is_over)

        def note(found: BarrierSolution) -> None:
            if not ascent.certified:
                ascent.certified, run.upper = True, -found.value
            self._sweeps += 1
            ascent.iteration += 1
            run.record(ascent.iteration, self._sweeps, -found.value, -found.upper_bound)
            if -found.upper_bound >= ascent.best_lower:
                ascent.best_theta, ascent.best_lower = found.state.theta, -found.upper_bound
                ascent.best_methods = BARRIER

        with suppress(StoppedError):
            solve_by_barrier(polytope, should_stop=run.is_over, on_solution=note)
        return True

    def _record(self, run: Run, now: DualEvaluation, iteration: int, certified: bool) -> bool:
        """Record the bounds; a proved upper bound is never replaced by an unproved one."""
        upper = now.bounds.upper
        if certified and not now.bounds.is_certified:
            upper = run.upper
        elif now.bounds.is_certified and not certified:
            run.upper = upper
        run.record(iteration, self._sweeps, upper, now.bounds.lower)
        return certified or now.bounds.is_certified

    def _evaluate(
        self,
        dual: LearningDual,
        run: Run,
        theta: FloatArray,
        states: Sequence[WarmStart | None],
        allowed: float = 0.0,
    ) -> DualEvaluation:
        """Solve every problem; ``allowed`` nats, or a share of the gap, may be left unfinished."""
        size = abs(run.lower) if np.isfinite(run.lower) else 1.0
        wanted = INNER_SHARE * self.limits.relative_gap * size
        accuracy = max(wanted, allowed) / len(self.problems)
        inner = [
            problem.maximise(theta, state, accuracy)
            for problem, state in zip(self.problems, states, strict=True)
        ]
        self._sweeps += sum(solution.sweeps for solution in inner)
        statistics = sum_statistics(inner)
        gradient = dual.primal_gradient(theta, statistics)
        bounds = dual.evaluate(theta, inner)
        if bounds.is_certified:
            points = [solution.certified_point for solution in inner]
            combined = self._bundle.add(
                np.asarray(np.sum([phi for phi, _ in points], axis=0)),
                sum(entropy for _, entropy in points),
            )
            bounds = replace(bounds, upper=min(bounds.upper, combined))
        return DualEvaluation(theta, inner, bounds, gradient)

    def _metric(self, now: DualEvaluation) -> Factor:
        """Factor lambda I + the estimated curvature of sum_m log Z^m."""
        matrix = self.ridge * np.eye(len(now.theta))
        for problem, solution in zip(self.problems, now.inner, strict=True):
            matrix += problem.curvature(now.theta, solution.state)
        return _factor((matrix + matrix.T) / 2)

    def _step(
        self,
        dual: LearningDual,
        run: Run,
        now: DualEvaluation,
        metric: Factor,
        history: list[tuple[FloatArray, FloatArray]],
    ) -> DualEvaluation | None:
        """Return the next evaluation; None if rounding allows no rise or the barrier is due."""
        direction = _two_loop(now.gradient, metric, history)
        slope = float(direction @ now.gradient)
        if slope <= 0.0:
            history.clear()
            direction = cho_solve(metric, now.gradient)
            slope = float(direction @ now.gradient)
        states = [solution.state for solution in now.inner]
        # A likelihood cannot rise by more than its own size: a larger promise shows a bad metric.
        step = min(1.0, FURTHEST * max(abs(now.bounds.lower), 1.0) / max(slope, TOLERANCES.tiny))
        may_close_in = self._kinks_pay and self.make_polytope is not None
        for _ in range(30):
            theta = now.theta + step * direction
            if step * slope > LONG * max(abs(now.bounds.lower), 1.0):
                beyond = self._gradient_beyond(dual, theta, now.bounds.lower)
                self._is_kinked = may_close_in and (step < 1.0 or beyond is not None)
                if self._is_kinked:
                    return None
                if beyond is not None:
                    history.clear()
                    step *= _shortened(slope, slope - float(direction @ beyond))
                    continue
            allowed = self.inner_rise * step * slope
            following = self._evaluate(dual, run, theta, states, allowed)
            rise = following.bounds.lower - now.bounds.lower
            noise = now.slack + following.slack + 0.1 * ROUNDING * abs(now.bounds.lower)
            if rise >= TOLERANCES.armijo * step * slope - noise:
                if following.bounds.gap < now.bounds.gap or rise > 0.0:
                    return following
                if noise <= ROUNDING * abs(now.bounds.lower):
                    return None
            elif np.isfinite(self.refresh_ratio):
                history.clear()
            fall = slope - float(direction @ following.gradient)
            step *= _shortened(slope, fall)
            is_near = run.relative_gap <= KINKED or self.make_polytope is not None
            self._is_kinked = len(theta) >= MANY_FEATURES and is_near and self._kinks_pay
        return None

    def _gradient_beyond(
        self, dual: LearningDual, theta: FloatArray, lower: float
    ) -> FloatArray | None:
        """Return a gradient where the best vertices alone show that l_rho is below ``lower``.

        At a theta far too large the solve with entropy takes longest and is of no use.
        """
        vertices = [p.vertex_statistics(theta) for p in self.problems if isinstance(p, HasVertices)]
        if len(vertices) < len(self.problems):
            return None
        statistics = np.asarray(np.sum(vertices, axis=0))
        most = float(theta @ (dual.observed - statistics)) - 0.5 * self.ridge * float(theta @ theta)
        return None if most >= lower else dual.primal_gradient(theta, statistics)

    def _stamp(self, dual: LearningDual) -> ProblemStamp:
        return ProblemStamp("thetan ascent", len(self.problems), dual.key)

    def _save(self, dual: LearningDual, run: Run, ascent: Ascent) -> None:
        """Save theta and the bounds; curvature and bundle are quickly recomputed."""
        numbers = {
            "theta": ascent.best_theta,
            "slack": ascent.now.slack,
            "iteration": ascent.iteration,
            "sweeps": self._sweeps,
            "certified": ascent.certified,
            "run_bounds": [run.upper, run.lower],
        }
        run.save(self._stamp(dual), {name: np.array(value) for name, value in numbers.items()})

    def _finish(self, run: Run, ascent: Ascent, status: Status) -> LearningResult:
        return LearningResult(
            theta=read_only(ascent.best_theta.copy()),
            objective=run.upper,
            lower_bound=run.lower,
            is_certified=ascent.certified,
            iterations=ascent.iteration,
            oracle_calls=self._sweeps,
            seconds=run.seconds,
            status=status,
            trajectory=tuple(run.trajectory),
            inner_methods=ascent.best_methods,
        )


def _factor(matrix: FloatArray) -> Factor:
    """Return a Cholesky factor; enlarge the diagonal if the estimate is not positive definite."""
    boost = 0.0
    while True:
        try:
            factor, lower = cho_factor(matrix + boost * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            boost = max(10.0 * boost, 1e-3 * float(np.abs(np.diag(matrix)).max()), 1e-12)
        else:
            return factor, lower


def _shortened(slope: float, fall: float) -> float:
    """Return the factor that shortens a rejected step to where the slope vanishes, if it does."""
    return float(np.clip(slope / fall if fall > 0.0 else 1.0, *SHORTEN))


def _norm(vector: FloatArray) -> float:
    return float(np.sqrt(vector @ vector))


def _two_loop(
    gradient: FloatArray,
    metric: Factor,
    history: list[tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """Apply the L-BFGS inverse Hessian of -l_rho to the gradient of l_rho.

    The last pair scales the metric (Nocedal and Wright 2006, equation 7.20): an estimate that is
    too small would make every first trial step too long.
    """
    pairs = [(s, y, 1.0 / float(s @ y)) for s, y in history if float(s @ y) > 0.0]
    q = gradient.copy()
    shares = []
    for s, y, inverse in reversed(pairs):
        share = inverse * float(s @ q)
        shares.append(share)
        q -= share * y
    q = np.asarray(cho_solve(metric, q))
    if pairs:
        _, y, inverse = pairs[-1]
        q /= inverse * float(y @ cho_solve(metric, y))
    for (s, y, inverse), share in zip(pairs, reversed(shares), strict=True):
        q += (share - inverse * float(y @ q)) * s
    return q
