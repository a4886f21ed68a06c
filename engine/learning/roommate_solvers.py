"""Which solver learns, by name; all share the objective, the entropy and the certificate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.checkpoint import Checkpoint, SavedState, State
from engine.core.status import Status
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures
from engine.learning.survey_problem import SurveyProblem
from engine.objectives.matching_block import MatchingBlock, make_survey_block
from engine.solvers.control import Limits, Watch, solver_of
from engine.solvers.frank_wolfe import BlockCoordinateFrankWolfe, FrankWolfe
from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from engine.solvers.pairwise_frank_wolfe import PairwiseFrankWolfe
from engine.solvers.result import LearningResult
from engine.solvers.theta_ascent import ThetaAscent

AT_ROUNDING = 1e-9
"""Relative gap below which a certified solution that stalled is as good as it can be."""

_CALLERS_WISH = (Status.CANCELLED, Status.TIME_LIMIT)
SOLVERS = ("auto", "frank-wolfe", "block-coordinate", "theta", "pairwise", "fully-corrective")


def solve_roommates(
    cohorts: Sequence[tuple[Survey, IntArray]],
    features: SurveyFeatures,
    *,
    ridge: float,
    rho: float,
    solver: str,
    limits: Limits,
    watch: Watch,
    rng: np.random.Generator,
) -> LearningResult:
    """Learn theta with the named solver; ``auto`` is `_solve_in_theta_first`."""

    def solve_in_theta(watch: Watch) -> LearningResult:
        problems = [SurveyProblem(survey, pairs, features, rho) for survey, pairs in cohorts]
        return ThetaAscent(problems, ridge, limits, watch).solve()

    def walk_by_blocks(watch: Watch) -> LearningResult:
        return BlockCoordinateFrankWolfe(blocks(), ridge, rng, limits=limits, watch=watch).solve()

    def blocks() -> list[MatchingBlock]:
        return [make_survey_block(survey, pairs, features, rho) for survey, pairs in cohorts]

    if solver == "theta":
        return solve_in_theta(watch)
    if solver == "block-coordinate":
        return walk_by_blocks(watch)
    if solver == "frank-wolfe":
        return FrankWolfe(blocks(), ridge, limits=limits, watch=watch).solve()
    if solver == "pairwise":
        return PairwiseFrankWolfe(blocks(), ridge, limits=limits, watch=watch).solve()
    if solver == "fully-corrective":
        return FullyCorrectiveFrankWolfe(blocks(), ridge, limits=limits, watch=watch).solve()
    return _solve_in_theta_first(solve_in_theta, walk_by_blocks, watch)


def _solve_in_theta_first(
    solve_in_theta: Callable[[Watch], LearningResult],
    walk_by_blocks: Callable[[Watch], LearningResult],
    watch: Watch,
) -> LearningResult:
    """Solve in theta, which measured faster at every size (``benchmarks/bench_training.py``).

    Where that stalls before the wanted gap, because a marginal left the range of its inner solver
    or an odd-set inequality could not be proved, go on with block-coordinate Frank-Wolfe, whose
    oracle knows the whole matching polytope, and return the better of the two certified solutions.
    """
    saved = None if watch.checkpoint is None else watch.checkpoint.load()
    if saved is not None and solver_of(saved) == BlockCoordinateFrankWolfe.__name__:
        in_theta = _solution_beside(saved)
    else:
        in_theta = solve_in_theta(watch)
        if _is_final(in_theta):
            return in_theta
        watch = replace(watch, seconds_before=in_theta.seconds)
        in_theta = in_theta if in_theta.is_certified else None
    if watch.checkpoint is not None and in_theta is not None:
        watch = replace(watch, checkpoint=_Beside(watch.checkpoint, in_theta))
    walked = walk_by_blocks(watch)
    if in_theta is None or walked.relative_gap <= in_theta.relative_gap:
        return walked
    return replace(in_theta, seconds=walked.seconds, status=walked.status)


def _is_final(in_theta: LearningResult) -> bool:
    """Whether nothing is to be gained, or wanted, beyond the solution in theta."""
    solved = in_theta.status is Status.CONVERGED or in_theta.relative_gap <= AT_ROUNDING
    return (in_theta.is_certified and solved) or in_theta.status in _CALLERS_WISH


@dataclass(frozen=True, slots=True)
class _Beside:
    """A checkpoint of the walk that keeps the certified solution in theta beside it."""

    place: Checkpoint
    in_theta: LearningResult

    def load(self) -> SavedState | None:
        """Return the saved state."""
        return self.place.load()

    def save(self, state: State) -> None:
        """Save the walk's state with the solution."""
        known = self.in_theta
        effort = (known.objective, known.lower_bound, known.iterations, known.oracle_calls)
        solution: State = {"in_theta": known.theta, "in_theta_figures": np.array(effort)}
        self.place.save(state | solution)


def _solution_beside(saved: SavedState) -> LearningResult | None:
    """The solution in theta that a walk's checkpoint keeps, if there was a certified one."""
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
        seconds=0.0,  # those of the walk go on from it
        status=Status.STALLED,
        trajectory=(),
    )
