"""Training of a roommate model from the pairs of past years."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.checkpoint import Checkpoint, OwnCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.options import (
    check_callables,
    check_choice,
    check_generator,
    check_number,
    check_seconds,
)
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.status import Status
from engine.crf.roster import Cohort, as_rooms, cohort_digest
from engine.crf.survey_features import make_survey_features
from engine.kernels.threads import one_blas_thread
from engine.learning.roommates.calibration import fit_calibration
from engine.learning.roommates.defaults import RELATIVE_GAP, RHO, RIDGE
from engine.learning.roommates.model import RoommateModel, make_roommate_model
from engine.learning.roommates.solvers import SOLVERS, solve_roommates
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult


@dataclass(frozen=True, slots=True, eq=False)
class TrainedRoommates:
    """Learned model, with the certificate of its weights: bounds on log l_rho, nats."""

    model: RoommateModel
    result: LearningResult


def train_roommates(
    cohorts: Sequence[Cohort],
    *,
    ridge: float = RIDGE,
    rho: float = RHO,
    solver: str = "auto",
    relative_gap: float = RELATIVE_GAP,
    max_seconds: float | None = None,
    rng: np.random.Generator | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    checkpoint: Checkpoint | None = None,
) -> TrainedRoommates:
    """Fit a roommate model by approximate maximum likelihood over perfect matchings.

    Parameters
    ----------
    cohorts : sequence of (Survey, pairs (p, 2) or rooms (n,))
        Pairs of students, or the room of every student (-1 for none) if rooms hold more than two:
        each resident's roommate then counts as uniform among the others in the room. Students
        without a roommate are left out of the year.
    ridge : float, lambda > 0.
    rho : float in [0, 1], 1 for Bethe, 1/2 for the reweighted bound.
    solver : "auto", "theta", "frank-wolfe", "block-coordinate" or "fully-corrective"
    relative_gap : float, stop at this certified gap divided by the size of the log-likelihood.
    max_seconds : float, optional
        Limit of learning and calibration together; calibration is left out if too little remains.
    rng : Generator, used by the block order; defaults to seed 0.
    on_progress, should_stop : callbacks
        Reports carry both bounds: ``objective`` L(tau) above, ``lower_bound`` l_rho(theta) below.
    checkpoint : Checkpoint, optional
        A killed run that is started again with the same cohorts and settings resumes from it;
        a checkpoint of other cohorts or settings is refused and left unchanged.

    Returns
    -------
    TrainedRoommates
        If stopped early, the best weights so far with their gap.

    Raises
    ------
    InvalidProblemError
        Naming the cohort, student or setting that is wrong.

    Notes
    -----
    Calibration is fitted afterwards on held-out folds, in at most three minutes plus the time for
    the marginals of the folds.

    References
    ----------
    Tang et al. 2015, sections 3 and 4.2, appendix A.3.

    Examples
    --------
    >>> from engine import simulate_university
    >>> year = simulate_university(30, 1, rng=np.random.default_rng(0)).cohorts[0]
    >>> train_roommates([(year.survey, year.pairs)]).result.relative_gap <= 1e-4
    True
    """
    check_number("ridge", ridge, above=0.0)
    check_number("rho", rho, at_least=0.0, at_most=1.0)
    check_choice("solver", solver, SOLVERS)
    check_number("relative_gap", relative_gap, above=0.0)
    check_seconds("max_seconds", max_seconds)
    check_generator("rng", rng)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    checked = _check_cohorts(cohorts)
    features = make_survey_features([survey for survey, _ in checked])
    with one_blas_thread():
        result = solve_roommates(
            checked,
            features,
            ridge=ridge,
            rho=rho,
            solver=solver,
            limits=Limits(relative_gap, max_seconds=max_seconds),
            callbacks=Callbacks(
                on_progress, should_stop, _own(checkpoint, checked, solver, ridge, rho)
            ),
            rng=rng or np.random.default_rng(0),
        )
        model = make_roommate_model(result.theta, features, ridge, rho, result.method)
        if result.status is Status.CONVERGED:
            on_progress(Progress("Comparing pair probabilities with choices left out of learning"))
            left = np.inf if max_seconds is None else max_seconds - result.seconds
            model = _calibrate(model, checked, left, should_stop)
    return TrainedRoommates(model, result)


def _own(
    checkpoint: Checkpoint | None,
    cohorts: Sequence[Cohort],
    solver: str,
    ridge: float,
    rho: float,
) -> OwnCheckpoint | None:
    """Return a checkpoint bound to the cohorts, the solver and the settings."""
    if checkpoint is None:
        return None
    settings: dict[str, str | float] = {
        "solver": solver,
        "ridge": float(ridge),
        "rho": float(rho),
        "cohort digest": cohort_digest(cohorts)[:12],
    }
    return OwnCheckpoint(checkpoint, settings)


def _calibrate(
    model: RoommateModel,
    cohorts: Sequence[Cohort],
    max_seconds: float,
    should_stop: StopCallback,
) -> RoommateModel:
    """Return the model calibrated on held-out folds, or unchanged if that is not possible."""
    value = fit_calibration(
        cohorts,
        model.features,
        model.ridge,
        model.rho,
        max_seconds=max_seconds,
        should_stop=should_stop,
    )
    return model if value is None else model.with_calibration(value)


def _check_cohorts(cohorts: Sequence[Cohort]) -> list[Cohort]:
    if not cohorts:
        raise InvalidProblemError("Learning needs at least one past cohort, received none.")
    checked = []
    for number, (survey, pairs) in enumerate(cohorts, start=1):
        room = as_rooms(pairs, survey.n_students, survey.ids)
        residents = int((room >= 0).sum())
        if residents < 4:
            raise InvalidProblemError(
                f"Cohort {number} has {residents // 2 or 'no'} pair, and at least 2 are needed."
            )
        checked.append((survey, np.asarray(pairs, dtype=np.int64)))
    return checked
