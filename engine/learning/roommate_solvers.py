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
from engine.solvers.control import Limits, Watch
from engine.solvers.frank_wolfe import BlockCoordinateFrankWolfe, FrankWolfe
from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from engine.solvers.pairwise_frank_wolfe import PairwiseFrankWolfe
from engine.solvers.result import LearningResult
from engine.solvers.theta_ascent import ThetaAscent

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
    block-coordinate Frank-Wolfe, whose oracle knows the whole matching polytope.
    """
    if solver in ("auto", "theta"):
        problems = [SurveyProblem(survey, pairs, features, rho) for survey, pairs in cohorts]
        result = ThetaAscent(problems, ridge, limits, watch).solve()
        is_done = result.is_certified and result.status is Status.CONVERGED
        if solver == "theta" or is_done or result.status in _CALLERS_WISH:
            return result
        if limits.max_seconds is not None:
            left = max(limits.max_seconds - result.seconds, 0.0)
            limits = replace(limits, max_seconds=left)
    blocks = [make_survey_block(survey, pairs, features, rho) for survey, pairs in cohorts]
    if solver == "frank-wolfe":
        return FrankWolfe(blocks, ridge, limits=limits, watch=watch).solve()
    if solver == "pairwise":
        return PairwiseFrankWolfe(blocks, ridge, limits=limits, watch=watch).solve()
    if solver == "fully-corrective":
        return FullyCorrectiveFrankWolfe(blocks, ridge, limits=limits, watch=watch).solve()
    return BlockCoordinateFrankWolfe(blocks, ridge, rng, limits=limits, watch=watch).solve()
