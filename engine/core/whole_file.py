"""The one way in which files are written: whole or not at all, and on the disk before they show.

A neighbour file ``*.part`` is written, flushed to the disk and renamed. Whoever reads the path
finds the old file or the new one, also when the process is killed or the disk is full.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PRIVATE = 0o600
SUFFIX = ".part"  # of what a killed process leaves behind


class PartFile:
    """A file that is being written and has no name yet.

    Parameters
    ----------
    folder : path of a folder that exists, on the file system of the file's later place.
    mode : permissions; the process's mask takes its part of them.
    """

    def __init__(self, folder: Path, mode: int) -> None:
        self.path = folder / f"{secrets.token_hex(8)}{SUFFIX}"
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        self.file: BinaryIO = os.fdopen(handle, "wb")

    def settle(self, target: Path) -> None:
        """Flush to the disk and take the place of ``target``; a file there is replaced."""
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.path, target)


@contextmanager
def part_file(folder: Path, *, mode: int = PRIVATE) -> Iterator[PartFile]:
    """Yield a new file to write to and settle; one that was not settled is removed."""
    part = PartFile(folder, mode)
    try:
        with part.file:
            yield part
    finally:
        part.path.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path, *, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Yield a file to write to; when the block ends without an error, ``path`` is that file.

    Raises
    ------
    OSError
        If it cannot be written; an old file at ``path`` is untouched then.
    """
    with part_file(path.parent, mode=mode) as part:
        yield part.file
        part.settle(path)
