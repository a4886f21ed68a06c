"""Frank-Wolfe for learning and inference, all structures at once or some at a time.

With the learning dual as objective it learns (Tang 2015, algorithm 1); with theta fixed it
infers. A step needs one oracle call per structure that moves. The duality gap of all
structures at one point, sum_m <s^m - tau^m, A_m theta + grad H>, is a certificate: L(tau) - gap is
a lower bound of the minimum. Gaps taken at different points are only an estimate; where few move at
a time, a full pass now and then turns it into a certificate.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.checkpoint import State
from engine.core.options import check_callables, check_flag, check_generator
from engine.core.status import Status
from engine.kernels.threads import one_blas_thread
from engine.objectives.objective import Objective
from engine.objectives.protocol import Structure, check_parts
from engine.solvers.block_orders import AllTogether, BlockOrder
from engine.solvers.control import Callbacks, Limits, ProblemStamp, Run
from engine.solvers.iterate import Direction, Iterate
from engine.solvers.result import LearningResult
from engine.solvers.step_rules import LineSearch, Mapper, StepRule

CERTIFY_EVERY = 10  # passes of the block version between two certificates

PARTS = (
    "observed",
    "start",
    "oracle.compute_extreme_point",
    "entropy.value",
    "entropy.gradient",
    "entropy.along",
    "scores",
    "statistics",
)
"""Attributes that a structure must have."""


def ignore_step(iterate: Iterate, directions: Sequence[Direction]) -> None:
    """Do nothing after a step."""


@dataclass(slots=True)
class FrankWolfe:
    """Frank-Wolfe solver over structures, for learning and inference.

    Parameters
    ----------
    structures : sequence of Structure
    objective : Objective
        ``make_learning_dual`` to learn, ``FreeEnergy`` for the marginals at a fixed theta.
    order : BlockOrder, which structures a step moves; ``AllTogether`` is the batch version.
    step_rule : StepRule, default exact line search; ``OpenLoop`` for 2 / (t + 2).
    averaged : bool
        Return theta_bar_t = (1 - r) theta_bar_{t-1} + r theta_t, r = 2 / (t + 2) ("wavg").
    rng : Generator, for the order.
    limits : Limits
    callbacks : Callbacks
    on_step : callable, given the iterate and the directions after every step.
    mapper : ``map``, or a pool's to call oracles on several threads.
    keep : see ``Iterate``.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> from engine.objectives import make_learning_dual
    >>> result = FrankWolfe([pairs], make_learning_dual([pairs.observed], 1.0)).solve()
    >>> result.theta.round(3).tolist(), result.status.value
    ([0.0], 'converged')
    """

    structures: Sequence[Structure]
    objective: Objective
    order: BlockOrder = field(default_factory=AllTogether)
    step_rule: StepRule = field(default_factory=LineSearch)
    averaged: bool = False
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    limits: Limits = field(default_factory=Limits)
    callbacks: Callbacks = field(default_factory=Callbacks)
    on_step: Callable[[Iterate, Sequence[Direction]], None] = ignore_step
    mapper: Mapper = map
    keep: Callable[[FloatArray], FloatArray] | None = None
    iterate: Iterate = field(init=False)
    _average: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_flag("averaged", self.averaged)
        check_generator("rng", self.rng, optional=False)
        check_callables(on_step=self.on_step)
        if self.keep is not None:
            check_callables(keep=self.keep)

    def solve(self) -> LearningResult:
        """Step until the certified gap is small enough or a limit is hit.

        Afterwards ``iterate`` contains the points.

        Raises
        ------
        InvalidProblemError
            If a structure lacks an attribute; the message names it.
        """
        check_parts(self.structures, *PARTS)
        iterate = self.iterate = Iterate(self.structures, self.objective, self.mapper, self.keep)
        run = Run(self.limits, self.callbacks)
        with one_blas_thread():
            self._begin_or_resume(run)
            status = None
            while status is None:
                status = self._take_pass(run)
                if status is None and run.is_checkpoint_due():
                    run.save(self._stamp, self._state())
            theta = self._average if self.averaged else iterate.theta
            return make_result(iterate, run, theta, status)

    def _take_pass(self, run: Run) -> Status | None:
        """Take the steps of one pass; return the reason to stop before a step or after the pass."""
        iterate, count = self.iterate, len(self.structures)
        estimate, steps = 0.0, 0
        for chosen in self.order.one_pass(count, self.rng):
            iterate.iteration += 1
            steps += 1
            theta = iterate.theta
            directions = iterate.ask(chosen, theta)
            gap = sum(direction.gap for direction in directions)
            self._average = follow_average(self._average, theta, iterate.iteration)
            if len(chosen) == count:
                status = self._judge(run, iterate.value - gap)
                if status is not None:
                    return status
            if not all(np.isfinite(direction.statistics).all() for direction in directions):
                return Status.STALLED  # an inexact oracle found no vertex to step to
            estimate += gap
            iterate.move(chosen, directions, self.step_rule)
            self.on_step(iterate, directions)
        if len(chosen) == count:
            return None
        return self._judge(run, self._certify(iterate.iteration // steps, estimate))

    def _judge(self, run: Run, lower: float | None) -> Status | None:
        run.record(self.iterate.iteration, self.iterate.oracle_calls, self.iterate.value, lower)
        return run.verdict(self.iterate.iteration)

    def _certify(self, passes: int, estimate: float) -> float | None:
        """Return a lower bound from a full pass at one point, if the estimate is small enough.

        Every ``CERTIFY_EVERY`` passes the full pass is made whatever the estimate.
        """
        value = self.iterate.value
        wanted = self.limits.relative_gap * max(abs(value), 1.0)
        if estimate > wanted and passes % CERTIFY_EVERY and passes > 1:
            return None
        everyone = range(len(self.structures))
        return value - sum(d.gap for d in self.iterate.ask(everyone, self.iterate.theta))

    @property
    def _stamp(self) -> ProblemStamp:
        return ProblemStamp(type(self.order).__name__, len(self.structures), self.objective.key)

    def _begin_or_resume(self, run: Run) -> None:
        """Restore a checkpoint with the same stamp, else begin at the starting points."""
        saved = run.load(self._stamp)
        if saved is None:
            self.iterate.begin()
            self._average = np.zeros(len(self.iterate.theta))
            return
        self.iterate.restore(saved)
        self._average = saved["average"].copy()
        self.rng.bit_generator.state = json.loads(str(saved["rng"]))

    def _state(self) -> State:
        rng = np.array(json.dumps(self.rng.bit_generator.state))
        return self.iterate.save() | {"average": self._average, "rng": rng}


def follow_average(average: FloatArray, theta: FloatArray, iteration: int) -> FloatArray:
    """Return (1 - r) average + r theta with r = 2 / (t + 2), t counted from 0."""
    share = 2.0 / (iteration + 1.0)
    return (1.0 - share) * average + share * theta


def make_result(iterate: Iterate, run: Run, theta: FloatArray, status: Status) -> LearningResult:
    """Return the result of a run in the polytope; its oracles' bounds make its own certificates."""
    return LearningResult(
        theta=read_only(theta.copy()),
        objective=run.upper,
        lower_bound=run.lower,
        is_certified=True,
        iterations=iterate.iteration,
        oracle_calls=iterate.oracle_calls,
        seconds=run.seconds,
        status=status,
        trajectory=tuple(run.trajectory),
    )
