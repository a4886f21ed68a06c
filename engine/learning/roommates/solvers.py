"""Choice of the solver by name; all solvers share the objective, entropy and certificate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.checkpoint import Checkpoint, SavedState, State
from engine.core.status import Status
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures
from engine.objectives.learning_dual import make_learning_dual
from engine.solvers.block_orders import AllTogether, BlockOrder, ShuffledOrder
from engine.solvers.control import Callbacks, Limits, solver_of
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from engine.solvers.result import LearningResult
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure
from engine.structures.survey_barrier import SurveyPolytope

AS_CLOSE_AS_PROOFS = 1e-7
"""Relative gap below which a certified solution that stalled cannot be improved.

Odd-set constraints are proved to 1e-9 and the point is mixed with the uniform point by that much,
which can cost a value of 100 times a sharp year's likelihood. Frank-Wolfe would never end.
"""

MOST_STUDENTS_INSIDE = 2_000
"""Maximum number of students of all years for the barrier method: a step takes some 10 s."""

_CALLERS_WISH = (Status.CANCELLED, Status.TIME_LIMIT)
SOLVERS = ("auto", "frank-wolfe", "block-coordinate", "theta", "fully-corrective")


def solve_roommates(
    cohorts: Sequence[tuple[Survey, IntArray]],
    features: SurveyFeatures,
    *,
    ridge: float,
    rho: float,
    solver: str,
    limits: Limits,
    callbacks: Callbacks,
    rng: np.random.Generator,
) -> LearningResult:
    """Learn theta with the named solver; ``auto`` is `_solve_in_theta_first`.

    Raises
    ------
    MemoryError
        At once, if there is no memory for the scores and marginals of the largest year.
    """
    largest = max(survey.n_students for survey, _ in cohorts)
    np.empty((2, largest, largest))
    structures = [SurveyStructure(survey, pairs, features, rho) for survey, pairs in cohorts]
    dual = make_learning_dual([structure.observed for structure in structures], ridge)

    def solve_in_theta(callbacks: Callbacks) -> LearningResult:
        inside = (
            partial(SurveyPolytope, structures, ridge) if may_learn_inside(structures) else None
        )
        ascent = ThetaAscent(structures, ridge, limits, callbacks, make_polytope=inside)
        return replace(ascent.solve(), solver="theta")

    def step_in_polytopes(order: BlockOrder, callbacks: Callbacks, name: str) -> LearningResult:
        steps = FrankWolfe(structures, dual, order, rng=rng, limits=limits, callbacks=callbacks)
        return replace(steps.solve(), solver=name)

    def solve_by_blocks(callbacks: Callbacks) -> LearningResult:
        return step_in_polytopes(ShuffledOrder(), callbacks, "block-coordinate")

    if solver == "theta":
        return solve_in_theta(callbacks)
    if solver == "block-coordinate":
        return solve_by_blocks(callbacks)
    if solver == "frank-wolfe":
        return step_in_polytopes(AllTogether(), callbacks, "frank-wolfe")
    if solver == "fully-corrective":
        corrected = FullyCorrectiveFrankWolfe(structures, ridge, limits, callbacks).solve()
        return replace(corrected, solver=solver)
    return _solve_in_theta_first(solve_in_theta, solve_by_blocks, callbacks)


def may_learn_inside(years: Sequence[SurveyStructure]) -> bool:
    """Return True if the barrier method is the fastest where kinks cut steps short.

    With more weights than students nearly every pair is certain at the optimum, which the ridge
    alone keeps finite.
    """
    n_students = sum(year.n_students for year in years)
    return n_students < years[0].features.n_features and n_students <= MOST_STUDENTS_INSIDE


def _solve_in_theta_first(
    solve_in_theta: Callable[[Callbacks], LearningResult],
    solve_by_blocks: Callable[[Callbacks], LearningResult],
    callbacks: Callbacks,
) -> LearningResult:
    """Solve in theta, which measured faster at every size (``benchmarks/goals/training.py``).

    If that stalls before the target gap, because a marginal left the range of its inner solver or
    an odd-set inequality could not be proved, continue with block-coordinate Frank-Wolfe, whose
    oracle covers the whole matching polytope, and return the better of the certified solutions.
    """
    saved = None if callbacks.checkpoint is None else callbacks.checkpoint.load()
    if saved is not None and solver_of(saved) == ShuffledOrder.__name__:
        in_theta = _solution_beside(saved)
    else:
        in_theta = solve_in_theta(callbacks)
        if _is_final(in_theta):
            return in_theta
        callbacks = replace(callbacks, seconds_before=in_theta.seconds)
        in_theta = in_theta if in_theta.is_certified else None
    if callbacks.checkpoint is not None and in_theta is not None:
        callbacks = replace(callbacks, checkpoint=_Beside(callbacks.checkpoint, in_theta))
    by_blocks = solve_by_blocks(callbacks)
    if in_theta is None or by_blocks.relative_gap <= in_theta.relative_gap:
        return by_blocks
    return replace(in_theta, seconds=by_blocks.seconds, status=by_blocks.status)


def _is_final(in_theta: LearningResult) -> bool:
    """Return True if the solution in theta is final: good enough, cancelled or out of time."""
    solved = in_theta.status is Status.CONVERGED or in_theta.relative_gap <= AS_CLOSE_AS_PROOFS
    return (in_theta.is_certified and solved) or in_theta.status in _CALLERS_WISH


@dataclass(frozen=True, slots=True)
class _Beside:
    """Checkpoint of Frank-Wolfe that also stores the certified solution in theta."""

    place: Checkpoint
    in_theta: LearningResult

    def load(self) -> SavedState | None:
        """Return the saved state."""
        return self.place.load()

    def save(self, state: State) -> None:
        """Save the state of Frank-Wolfe with the solution in theta."""
        known = self.in_theta
        effort = (known.objective, known.lower_bound, known.iterations, known.oracle_calls)
        solution: State = {"in_theta": known.theta, "in_theta_figures": np.array(effort)}
        self.place.save(state | solution)


def _solution_beside(saved: SavedState) -> LearningResult | None:
    """Return the certified solution in theta stored in a checkpoint, or None."""
    if "in_theta" not in saved:
        return None
    objective, lower, iterations, calls = (float(x) for x in saved["in_theta_figures"])
    return LearningResult(
        theta=read_only(saved["in_theta"]),
        objective=objective,
        lower_bound=lower,
        is_certified=True,
        iterations=int(iterations),
        oracle_calls=int(calls),
        seconds=0.0,  # the seconds of Frank-Wolfe include these
        status=Status.STALLED,
        trajectory=(),
        solver="theta",
    )
