"""Checkpoint of a series of estimates: those that are finished, and the one in progress."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from engine.core.checkpoint import Checkpoint, OwnCheckpoint, SavedState, State
from engine.core.status import Status
from engine.crf.roster import Cohort, cohort_digest
from engine.crf.survey_features import SurveyFeatures
from engine.solvers import control
from engine.solvers.result import LearningResult, result_from_state, result_state

WORK = "intervals of weights"  # distinguishes its checkpoints from those of other work


class KeptEstimates:
    """Finished estimates of one piece of work, each under a key of its data and settings.

    A resumed run takes every finished estimate as it is, and continues the one in progress from
    its weights. Saves are at least ``CHECKPOINT_SECONDS`` apart.

    Parameters
    ----------
    checkpoint : Checkpoint
    cohorts : sequence of (Survey, pairs or rooms)
        All years of the work; a checkpoint of other years is refused and left unchanged.

    Raises
    ------
    InvalidProblemError
        If other work saved the checkpoint.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from engine.core.checkpoint import FileCheckpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = KeptEstimates(FileCheckpoint(Path(folder) / "state.npz"), [])
    ...     len(kept)
    0
    """

    def __init__(self, checkpoint: Checkpoint, cohorts: Sequence[Cohort]) -> None:
        digest = cohort_digest(cohorts)
        self._place = OwnCheckpoint(checkpoint, {"kind": WORK, "cohort digest": digest[:12]})
        saved = self._place.load() or {}
        state: State = {name: saved[name] for name in saved}
        self._finished = {k: v for k, v in state.items() if k.startswith("finished_")}
        self._present = {k: v for k, v in state.items() if k.startswith("present_")}
        self._saved_at = time.perf_counter()

    def __len__(self) -> int:
        """Return the number of finished estimates."""
        return sum(name.endswith("_theta") for name in self._finished)

    def estimate(
        self, key: str, solve: Callable[[Checkpoint | None], LearningResult]
    ) -> LearningResult:
        """Return the finished estimate of a key, or the one that ``solve`` finds, and keep it.

        ``solve`` is given the checkpoint of this estimate. A cancelled estimate is not finished.
        """
        prefix = f"finished_{key}_"
        found = _part(self._finished, prefix)
        if found:
            return result_from_state(found)
        result = solve(_Present(self, key))
        if result.status is not Status.CANCELLED:
            self._finished |= _named(prefix, result_state(replace(result, trajectory=())))
            self._present = {}
            if time.perf_counter() - self._saved_at >= control.CHECKPOINT_SECONDS:
                self.save()
        return result

    def checkpoint(self, key: str) -> Checkpoint:
        """Return the checkpoint of a part of the work that is no estimate."""
        return _Present(self, key)

    def present(self, key: str) -> SavedState | None:
        """Return the state of the estimate in progress if it has this key."""
        return _part(self._present, f"present_{key}_") or None

    def keep_present(self, key: str, state: State) -> None:
        """Save the state of the estimate in progress."""
        self._present = _named(f"present_{key}_", state)
        self.save()

    def save(self) -> None:
        """Save all finished estimates and the state of the one in progress."""
        self._place.save(self._finished | self._present)
        self._saved_at = time.perf_counter()


@dataclass(frozen=True, slots=True)
class _Present:
    """Checkpoint of the estimate in progress."""

    kept: KeptEstimates
    key: str

    def load(self) -> SavedState | None:
        """Return its saved state."""
        return self.kept.present(self.key)

    def save(self, state: State) -> None:
        """Save its state beside the finished estimates."""
        self.kept.keep_present(self.key, state)


def estimate_key(
    cohorts: Sequence[Cohort],
    features: SurveyFeatures,
    rho: float,
    ridge: float,
    max_seconds: float | None,
) -> str:
    """Return a hash of everything that determines an estimate."""
    digest = sha256(cohort_digest(cohorts).encode())
    digest.update(repr((rho, ridge, max_seconds)).encode())
    digest.update(repr((features.has_blanks, features.frequencies)).encode())
    return digest.hexdigest()[:16]


def _named(prefix: str, state: State) -> State:
    return {f"{prefix}{name}": values for name, values in state.items()}


def _part(state: State, prefix: str) -> State:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
