"""Which solver learns, by name; all share the objective, the entropy and the certificate."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.core.arguments import IntArray
from engine.core.status import Status
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures
from engine.learning.survey_problem import SurveyProblem
from engine.objectives.matching_block import make_survey_block
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
    """Learn theta with the named solver.

    ``auto`` solves in theta, which measured faster at every size and accuracy (see
    ``benchmarks/bench_training.py``). Where that stalls before the wanted gap, because a marginal
    left the range of its inner solver or an odd-set inequality could not be proved, it goes on with
    block-coordinate Frank-Wolfe, whose oracle knows the whole matching polytope, and returns the
    better of the two certified solutions.
    """
    in_theta = None
    if solver == "theta" or (solver == "auto" and not _was_walking(watch)):
        problems = [SurveyProblem(survey, pairs, features, rho) for survey, pairs in cohorts]
        in_theta = ThetaAscent(problems, ridge, limits, watch).solve()
        if solver == "theta" or _is_final(in_theta):
            return in_theta
        watch = replace(watch, seconds_before=in_theta.seconds)
    blocks = [make_survey_block(survey, pairs, features, rho) for survey, pairs in cohorts]
    if solver == "frank-wolfe":
        return FrankWolfe(blocks, ridge, limits=limits, watch=watch).solve()
    if solver == "pairwise":
        return PairwiseFrankWolfe(blocks, ridge, limits=limits, watch=watch).solve()
    if solver == "fully-corrective":
        return FullyCorrectiveFrankWolfe(blocks, ridge, limits=limits, watch=watch).solve()
    walked = BlockCoordinateFrankWolfe(blocks, ridge, rng, limits=limits, watch=watch).solve()
    if in_theta is None or not in_theta.is_certified:
        return walked
    if walked.relative_gap <= in_theta.relative_gap:
        return walked
    return replace(in_theta, seconds=walked.seconds, status=walked.status)


def _is_final(in_theta: LearningResult) -> bool:
    """Whether nothing is to be gained, or wanted, beyond the solution in theta."""
    solved = in_theta.status is Status.CONVERGED or in_theta.relative_gap <= AT_ROUNDING
    return (in_theta.is_certified and solved) or in_theta.status in _CALLERS_WISH


def _was_walking(watch: Watch) -> bool:
    """Whether the checkpoint was left by the Frank-Wolfe that follows the solve in theta."""
    saved = None if watch.checkpoint is None else watch.checkpoint.load()
    return saved is not None and solver_of(saved) == BlockCoordinateFrankWolfe.__name__
