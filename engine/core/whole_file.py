"""Atomic writing of files: completely or not at all, and flushed to the disk before they appear.

A neighbour file ``*.part`` is written, flushed to the disk and renamed. Readers of the path find
the old file or the new one, also if the process is killed or the disk is full.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PRIVATE = 0o600
SUFFIX = ".part"  # of files that a killed process leaves


class PartFile:
    """File that is being written and is not in its place yet.

    Parameters
    ----------
    folder : path of an existing folder, on the file system of the file's final place.
    mode : permissions, reduced by the process's umask.
    """

    def __init__(self, folder: Path, mode: int) -> None:
        self.path = folder / f"{secrets.token_hex(8)}{SUFFIX}"
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        self.file: BinaryIO = os.fdopen(handle, "wb")

    def settle(self, target: Path) -> None:
        """Flush to the disk and replace ``target``."""
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.path, target)


@contextmanager
def part_file(folder: Path, *, mode: int = PRIVATE) -> Iterator[PartFile]:
    """Yield a new file to write to; remove it unless ``settle`` was called."""
    part = PartFile(folder, mode)
    try:
        with part.file:
            yield part
    finally:
        part.path.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path, *, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Yield a file to write to; it replaces ``path`` when the block ends without an error.

    Raises
    ------
    OSError
        If the file cannot be written; an old file at ``path`` is then untouched.
    """
    with part_file(path.parent, mode=mode) as part:
        yield part.file
        part.settle(path)
