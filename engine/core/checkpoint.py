"""Where long work leaves what it needs to go on after its process was killed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.core.npz_file import open_npz, write_npz

State = dict[str, NDArray[Any]]  # arrays that a checkpoint can keep
SavedState = Mapping[str, NDArray[Any]]  # the same, each perhaps read only when it is asked for


class Checkpoint(Protocol):
    """A place that keeps the last saved state, whole or not at all."""

    def load(self) -> SavedState | None:
        """Return the last saved state, or None when there is none that can be read."""

    def save(self, state: State) -> None:
        """Replace the saved state."""


class FileCheckpoint:
    """A checkpoint in one ``.npz`` file, replaced atomically; numbers and text only, no pickles.

    Parameters
    ----------
    path : Path
    is_private : bool
        Whether one piece of work alone ever uses the file, so that what does not fit it is out of
        date and may be replaced.
    """

    def __init__(self, path: Path, *, is_private: bool = False) -> None:
        self._path = path
        self.is_private = is_private

    def load(self) -> SavedState | None:
        """Return the saved state, which stays in its file; None when that is absent or damaged."""
        try:
            return open_npz(self._path)
        except (OSError, InvalidProblemError):
            return None

    def save(self, state: State) -> None:
        """Write whole or not at all over the old state."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_npz(self._path, state)


class OwnCheckpoint:
    """A checkpoint of one piece of work, which refuses to go on from, or to overwrite, another's.

    Parameters
    ----------
    place : Checkpoint
    settings : dict of str or float
        Everything that determines the work, by a name that people understand; saved beside it.
    """

    def __init__(self, place: Checkpoint, settings: dict[str, str | float]) -> None:
        self._place = place
        self._settings = settings

    def load(self) -> SavedState | None:
        """Return the saved state; None when there is none, or a private one is out of date.

        Raises
        ------
        InvalidProblemError
            If other work left it, naming the setting that differs.
        """
        saved = self._place.load()
        difference = None if saved is None else self._difference(saved)
        if difference is None:
            return saved
        if isinstance(self._place, FileCheckpoint) and self._place.is_private:
            return None
        raise InvalidProblemError(difference)

    def _difference(self, saved: SavedState) -> str | None:
        """Say in what the work that left a state differs from this; None for nothing."""
        for name, value in self._settings.items():
            theirs = saved.get(f"setting_{name}")
            if theirs is None:
                return f"The checkpoint is not of work that has a {name}."
            if theirs.shape != () or theirs.item() != value:
                return (
                    f"The checkpoint was left by work with {name} {theirs}, not {value}: "
                    "choose another file, or remove it to start anew."
                )
        return None

    def save(self, state: State) -> None:
        """Replace the saved state."""
        settings = {f"setting_{name}": np.array(v) for name, v in self._settings.items()}
        self._place.save(state | settings)
