"""Where a job saves what it goes on from: in the store, so that any host can go on."""

from pathlib import Path

import structlog

from engine.core.checkpoint import FileCheckpoint
from webapp.common.full_disk import is_full_disk
from webapp.files import store

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 20.0  # for a checkpoint that the store does not give although it answers


class StoredCheckpoint(FileCheckpoint):
    """A checkpoint of one job alone, in a file of the store."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, is_private=True)

    def load(self):  # type: ignore[no-untyped-def]  # as the engine's
        """Return what was saved last, on whichever host; None when nothing was.

        A store that was killed as it wrote may answer with an error for this file from then on;
        the work begins anew, and its next checkpoint is written over it.
        """
        try:
            store.get(self._path, fresh=True, patience=PATIENCE_SECONDS)
        except store.UnreadableFileError as error:
            log.warning("a checkpoint cannot be read, the work begins anew", error=str(error))
            return None
        return super().load()

    def save(self, state) -> None:  # type: ignore[no-untyped-def]  # as the engine's
        """Write over the old state; without store or room on disk the work goes on without that."""
        try:
            super().save(state)
            store.store().put(self._path)
        except OSError as error:
            if not is_full_disk(error):
                raise
            log.warning("the disk is full, a checkpoint is not kept", error=str(error))
        except store.StoreAwayError as error:
            log.warning("the store is away, a checkpoint is not kept", error=str(error))
