"""Checkpoints from which long work resumes after its process was killed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.core.npz_file import open_npz, write_npz
from engine.core.options import check_flag

State = dict[str, NDArray[Any]]  # arrays that a checkpoint can save
SavedState = Mapping[str, NDArray[Any]]  # the same, each perhaps read only on access


class Checkpoint(Protocol):
    """Protocol of a place that keeps the last saved state, written completely or not at all."""

    def load(self) -> SavedState | None:
        """Return the last saved state, or None if none can be read."""

    def save(self, state: State) -> None:
        """Replace the saved state."""


class FileCheckpoint:
    """Checkpoint in one ``.npz`` file, replaced atomically; numbers and text only, no pickles.

    Parameters
    ----------
    path : Path
    is_private : bool
        Whether the file belongs to a single piece of work, so that a state that does not match is
        out of date and may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = FileCheckpoint(Path(folder) / "state.npz")
    ...     place.save({"step": np.array(3)})
    ...     int(place.load()["step"])
    3
    """

    def __init__(self, path: Path, *, is_private: bool = False) -> None:
        check_flag("is_private", is_private)
        self._path = path
        self.is_private = is_private

    def load(self) -> SavedState | None:
        """Return the saved state, read from the file on access; None if it is absent or damaged."""
        try:
            return open_npz(self._path)
        except (OSError, InvalidProblemError):
            return None

    def save(self, state: State) -> None:
        """Replace the old state atomically."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_npz(self._path, state)


class OwnCheckpoint:
    """Checkpoint of one piece of work, which refuses to resume from or overwrite another's.

    Parameters
    ----------
    place : Checkpoint
    settings : dict of str or float
        Everything that determines the work, under readable names; saved with the state.
    """

    def __init__(self, place: Checkpoint, settings: dict[str, str | float]) -> None:
        self._place = place
        self._settings = settings

    def load(self) -> SavedState | None:
        """Return the saved state, or None if there is none or a private one is out of date.

        Raises
        ------
        InvalidProblemError
            If other work saved it; the message names the setting that differs.
        """
        saved = self._place.load()
        difference = None if saved is None else self._difference(saved)
        if difference is None:
            return saved
        if isinstance(self._place, FileCheckpoint) and self._place.is_private:
            return None
        raise InvalidProblemError(difference)

    def _difference(self, saved: SavedState) -> str | None:
        """Describe how the work that saved a state differs from this one; None if it does not."""
        for name, value in self._settings.items():
            theirs = saved.get(f"setting_{name}")
            if theirs is None:
                return f"The checkpoint is not of work that has a {name}."
            if theirs.shape != () or theirs.item() != value:
                return (
                    f"The checkpoint was left by work with {name} {theirs}, not {value}: "
                    "choose another file, or remove it to start again."
                )
        return None

    def save(self, state: State) -> None:
        """Replace the saved state."""
        settings = {f"setting_{name}": np.array(v) for name, v in self._settings.items()}
        self._place.save(state | settings)
