"""Checkpoint of a job in the store, so that any host can resume it."""

from pathlib import Path

import structlog

from engine.core.checkpoint import FileCheckpoint
from webapp.database.full_disk import is_full_disk, require_room
from webapp.files import store

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 20.0  # seconds for a checkpoint that an answering store does not return


class StoredCheckpoint(FileCheckpoint):
    """Checkpoint of one job alone, in a file of the store."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, is_private=True)

    def load(self):  # type: ignore[no-untyped-def]  # as the engine's
        """Return the last saved state, from whichever host; None if nothing was saved.

        A store that was killed during a write may answer with an error for this file from then on.
        The work then starts again, and its next checkpoint overwrites the file.
        """
        try:
            store.get(self._path, fresh=True, patience=PATIENCE_SECONDS)
        except store.UnreadableFileError as error:
            log.warning("a checkpoint cannot be read, the work starts again", error=str(error))
            return None
        return super().load()

    def save(self, state) -> None:  # type: ignore[no-untyped-def]  # as the engine's
        """Overwrite the old state; without store or room on disk, work continues without saving."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_room(self._path.parent, sum(array.nbytes for array in state.values()))
            super().save(state)
            store.store().put(self._path)
        except OSError as error:
            if not is_full_disk(error) and not store.is_fault(error):
                raise
            log.warning("a checkpoint is not kept", error=str(error))
        except store.StoreAwayError as error:
            log.warning("the store is away, a checkpoint is not kept", error=str(error))
