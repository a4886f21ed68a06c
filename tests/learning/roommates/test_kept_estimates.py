"""Intervals of weights after an interruption: finished estimates stay, the answer is the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError, StoppedError
from engine.crf.roster import Cohort
from engine.learning.roommates import question_information as information
from engine.learning.roommates.kept_estimates import KeptEstimates
from engine.learning.roommates.model import make_roommate_model
from engine.learning.roommates.training import train_roommates
from engine.learning.roommates.uncertainty import (
    WeightEstimate,
    estimate_by_year,
    estimate_weights,
    refit_effects,
)
from engine.solvers.theta_ascent import ThetaAscent
from tests.learning.roommates.cohorts import simulated_years

REFITS = 2
N_ESTIMATES = 1 + 2 + REFITS  # of all years, of each year, of each refit
SAME = 0.01  # standard errors between two runs of which one was interrupted within an estimate


class KilledError(BaseException):
    """Stands for a process that ends: nothing handles it."""


@pytest.fixture(scope="module")
def years() -> list[Cohort]:
    return simulated_years(40, 2, seed=4)[0]


@pytest.fixture(autouse=True)
def saved_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)


def work(years: list[Cohort], path: Path | None) -> tuple[list[WeightEstimate], Any]:
    """All that the command line and the job do, in their order."""
    kept = None if path is None else KeptEstimates(FileCheckpoint(path), years)
    whole = estimate_weights(years, kept=kept)
    by_year = estimate_by_year(years, kept=kept)
    refits = refit_effects(whole, years, REFITS, rng=np.random.default_rng(1), kept=kept)
    return [whole, *by_year.years], refits


@pytest.fixture(scope="module")
def undisturbed(years: list[Cohort]) -> tuple[list[WeightEstimate], Any]:
    return work(years, None)


@pytest.mark.parametrize("n_finished", range(N_ESTIMATES))
def test_finished_estimates_are_taken_as_they_are(
    years: list[Cohort],
    undisturbed: tuple[list[WeightEstimate], Any],
    n_finished: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected, expected_refits = undisturbed
    solve, solved = ThetaAscent.solve, 0

    def killed_later(ascent: ThetaAscent) -> Any:
        nonlocal solved
        if solved == n_finished:
            raise KilledError
        solved += 1
        return solve(ascent)

    path = tmp_path / "state.npz"
    monkeypatch.setattr(ThetaAscent, "solve", killed_later)
    with pytest.raises(KilledError):
        work(years, path)

    def counted(ascent: ThetaAscent) -> Any:
        nonlocal solved
        solved += 1
        return solve(ascent)

    monkeypatch.setattr(ThetaAscent, "solve", counted)
    found, refits = work(years, path)
    assert solved == N_ESTIMATES  # by both runs together
    for one, other in zip(found, expected, strict=True):
        assert one.theta.tolist() == other.theta.tolist()
        assert one.covariance.tolist() == other.covariance.tolist()
        assert one.gap == other.gap
    assert refits.tolist() == expected_refits.tolist()


@pytest.mark.parametrize("n_steps", [1, 3])
def test_an_estimate_goes_on_from_its_weights(
    years: list[Cohort], n_steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, steps = ThetaAscent._step, 0

    def counted(ascent: ThetaAscent, *arguments: Any) -> Any:
        nonlocal steps
        if steps == limit:
            raise KilledError
        steps += 1
        return step(ascent, *arguments)

    monkeypatch.setattr(ThetaAscent, "_step", counted)
    limit = -1
    expected = estimate_weights(years)
    needed, steps, limit = steps, 0, n_steps
    path = tmp_path / "state.npz"
    with pytest.raises(KilledError):
        estimate_weights(years, kept=KeptEstimates(FileCheckpoint(path), years))
    limit = -1
    found = estimate_weights(years, kept=KeptEstimates(FileCheckpoint(path), years))
    assert steps <= needed + 1  # none of the steps was made twice; the curvature was lost
    assert found.gap <= 1e-5
    assert np.abs((found.theta - expected.theta) / expected.standard_errors).max() < SAME


def test_a_cancelled_estimate_is_not_finished(years: list[Cohort], tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    kept = KeptEstimates(FileCheckpoint(path), years)
    with pytest.raises(StoppedError):
        estimate_weights(years, kept=kept, should_stop=lambda: True)
    assert len(KeptEstimates(FileCheckpoint(path), years)) == 0


def test_a_checkpoint_of_other_work_is_refused_and_kept(
    years: list[Cohort], tmp_path: Path
) -> None:
    path = tmp_path / "state.npz"
    estimate_weights(years, kept=KeptEstimates(FileCheckpoint(path), years))
    before = path.read_bytes()
    with pytest.raises(InvalidProblemError, match="cohort digest"):
        KeptEstimates(FileCheckpoint(path), years[:1])
    with pytest.raises(InvalidProblemError, match="not of work that has a solver"):
        train_roommates(years, checkpoint=FileCheckpoint(path))
    assert path.read_bytes() == before


def test_other_settings_of_the_same_years_are_estimated_anew(
    years: list[Cohort], tmp_path: Path
) -> None:
    path = tmp_path / "state.npz"
    for count, ridge in enumerate((1.0, 2.0), start=1):
        kept = KeptEstimates(FileCheckpoint(path), years)
        found = estimate_weights(years, ridge=ridge, kept=kept)
        assert found.theta.tolist() == estimate_weights(years, ridge=ridge).theta.tolist()
        assert len(kept) == count


@pytest.mark.parametrize("n_finished", [0, 1, 5])
def test_the_information_of_questions_continues(
    years: list[Cohort], n_finished: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.npz"
    kept = KeptEstimates(FileCheckpoint(path), years)
    estimate = estimate_weights(years, kept=kept)
    model = make_roommate_model(estimate.theta, estimate.features, 1.0, 1.0)
    expected = information.question_information(model, years[-1][0])

    solve, solved, limit = information.compute_group_marginals, 0, n_finished

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal solved
        if solved == limit:
            raise KilledError
        solved += 1
        return solve(*arguments, **options)

    monkeypatch.setattr(information, "compute_group_marginals", counted)
    with pytest.raises(KilledError):
        information.question_information(model, years[-1][0], kept=kept)
    limit = -1
    kept = KeptEstimates(FileCheckpoint(path), years)
    assert len(kept) == 1  # the estimate before it is held still
    assert information.question_information(model, years[-1][0], kept=kept) == expected
    together, solved = solved, 0
    information.question_information(model, years[-1][0])
    assert together == solved
