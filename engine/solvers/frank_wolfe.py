"""Frank-Wolfe on the learning dual: all blocks at once, or one at a time (Tang 2015, algorithm 1).

A step needs one oracle call per block that moves. The duality gap of a full pass at one point,
sum_m <s^m - tau^m, A_m theta + grad H>, is a certificate: L(tau) - gap is a lower bound of the
optimum, and of l_rho at theta(tau). Gaps of single blocks taken at different points are only an
estimate; the block version spends a full pass now and then to turn it into a certificate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.status import Status
from engine.kernels.threads import one_blas_thread
from engine.objectives.protocol import ExtremeDirection, LearningBlock
from engine.solvers.block_orders import BlockOrder, ShuffledOrder
from engine.solvers.control import Limits, Origin, Run, Watch
from engine.solvers.result import LearningResult
from engine.solvers.step_rules import LineSearch, StepRule
from engine.solvers.walk import Walk

CERTIFY_EVERY = 10  # passes of the block version between two certificates


@dataclass(slots=True)
class FrankWolfe:
    """Batch Frank-Wolfe.

    Parameters
    ----------
    blocks : sequence of LearningBlock
    ridge : float, lambda > 0.
    step_rule : StepRule, default exact line search; ``OpenLoop`` for 2 / (t + 2).
    averaged : bool
        Return theta_bar_t = (1 - r) theta_bar_{t-1} + r theta_t, r = 2 / (t + 2) ("wavg").
    limits : Limits
    watch : Watch
    """

    blocks: Sequence[LearningBlock]
    ridge: float
    step_rule: StepRule = field(default_factory=LineSearch)
    averaged: bool = False
    limits: Limits = field(default_factory=Limits)
    watch: Watch = field(default_factory=Watch)

    def solve(self) -> LearningResult:
        """Walk until the certified gap is small enough or a limit is hit.

        Raises
        ------
        InvalidProblemError
            If there is no block or ridge is not above 0.
        """
        with one_blas_thread():
            walk = Walk(self.blocks, self.ridge)
            run = Run(self.limits, self.watch)
            average = start_or_resume(walk, run, _origin(self, walk))
            while True:
                walk.iteration += 1
                theta = walk.theta
                asked = [walk.ask(m, theta) for m in range(len(self.blocks))]
                gap = sum(direction.gap for direction in asked)
                value = walk.value
                run.record(walk.iteration, walk.oracle_calls, value, value - gap)
                average = follow_average(average, theta, walk.iteration)
                status = run.verdict(walk.iteration)
                if status is not None:
                    chosen = average if self.averaged else theta
                    return make_result(walk, run, chosen, status)
                self._step(walk, asked)
                save_if_due(walk, run, _origin(self, walk), average)

    def _step(self, walk: Walk, asked: Sequence[ExtremeDirection]) -> None:
        everyone = range(len(self.blocks))
        segments = [self.blocks[m].segment(walk.points[m], asked[m].vertex) for m in everyone]
        changes = [asked[m].statistics - walk.statistics[m] for m in everyone]
        line = walk.line(everyone, segments, changes)
        step = self.step_rule.choose(walk.iteration, len(self.blocks), line)
        for m in everyone:
            walk.move(m, segments[m], changes[m], step)


@dataclass(slots=True)
class BlockCoordinateFrankWolfe:
    """One block per step; see ``FrankWolfe`` for the parameters.

    Parameters
    ----------
    order : BlockOrder, which block is next.
    rng : Generator, for the order.
    """

    blocks: Sequence[LearningBlock]
    ridge: float
    rng: np.random.Generator
    step_rule: StepRule = field(default_factory=LineSearch)
    order: BlockOrder = field(default_factory=ShuffledOrder)
    averaged: bool = False
    limits: Limits = field(default_factory=Limits)
    watch: Watch = field(default_factory=Watch)

    def solve(self) -> LearningResult:
        """Walk until the certified gap is small enough or a limit is hit."""
        with one_blas_thread():
            return self._solve()

    def _solve(self) -> LearningResult:
        walk = Walk(self.blocks, self.ridge)
        run = Run(self.limits, self.watch)
        average = start_or_resume(walk, run, _origin(self, walk), self.rng)
        count = len(self.blocks)
        while True:
            estimate = 0.0
            for m in self.order.one_pass(count, self.rng):
                walk.iteration += 1
                theta = walk.theta
                direction = walk.ask(m, theta)
                estimate += direction.gap
                average = follow_average(average, theta, walk.iteration)
                self._step(walk, m, direction)
            lower = self._certify(walk, run, estimate)
            run.record(walk.iteration, walk.oracle_calls, walk.value, lower)
            status = run.verdict(walk.iteration)
            if status is not None:
                return make_result(walk, run, average if self.averaged else walk.theta, status)
            save_if_due(walk, run, _origin(self, walk), average, self.rng)

    def _step(self, walk: Walk, m: int, direction: ExtremeDirection) -> None:
        segment = self.blocks[m].segment(walk.points[m], direction.vertex)
        change = direction.statistics - walk.statistics[m]
        line = walk.line([m], [segment], [change])
        walk.move(m, segment, change, self.step_rule.choose(walk.iteration, len(self.blocks), line))

    def _certify(self, walk: Walk, run: Run, estimate: float) -> float | None:
        """Spend a full pass at one point when the estimate is promising or it is time to."""
        count = len(self.blocks)
        passes = walk.iteration // count
        wanted = self.limits.relative_gap * max(abs(walk.value), 1.0)
        if estimate > wanted and passes % CERTIFY_EVERY and passes > 1:
            return None
        theta = walk.theta
        return walk.value - sum(walk.ask(m, theta).gap for m in range(count))


def start_or_resume(
    walk: Walk, run: Run, origin: Origin, rng: np.random.Generator | None = None
) -> FloatArray:
    """Restore a checkpoint of the same origin, else begin; return theta's average so far."""
    saved = run.load(origin)
    if saved is None:
        walk.begin()
        return np.zeros(len(walk.dual.observed))
    walk.restore(saved, rng)
    return saved["average"].copy()


def save_if_due(
    walk: Walk,
    run: Run,
    origin: Origin,
    average: FloatArray,
    rng: np.random.Generator | None = None,
) -> None:
    """Leave a checkpoint when one is wanted and the last one is old."""
    if run.is_checkpoint_due():
        run.save(origin, walk.save(rng) | {"average": average})


def _origin(solver: FrankWolfe | BlockCoordinateFrankWolfe, walk: Walk) -> Origin:
    return Origin(type(solver).__name__, len(walk.blocks), walk.dual.observed, solver.ridge)


def follow_average(average: FloatArray, theta: FloatArray, iteration: int) -> FloatArray:
    """Return (1 - r) average + r theta with r = 2 / (t + 2), t counted from 0."""
    share = 2.0 / (iteration + 1.0)
    return (1.0 - share) * average + share * theta


def make_result(walk: Walk, run: Run, theta: FloatArray, status: Status) -> LearningResult:
    """Wrap up a run in the polytope; its bounds are certificates because its oracles' are."""
    return LearningResult(
        theta=read_only(theta.copy()),
        objective=run.upper,
        lower_bound=run.lower,
        is_certified=True,
        iterations=walk.iteration,
        oracle_calls=walk.oracle_calls,
        seconds=run.seconds,
        status=status,
        trajectory=tuple(run.trajectory),
    )
