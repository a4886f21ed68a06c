"""Where a command may write: refused before the work, not after it."""

import os
from pathlib import Path

from engine.core.errors import InvalidProblemError


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written.

    Raises
    ------
    InvalidProblemError
        If it is a folder, or its folder is absent or closed to us.
    """
    if path.is_dir():
        raise InvalidProblemError(f"{path}: this is a folder; give the name of a file.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidProblemError(f"{path}: its folder does not exist or cannot be written to.")


def make_folder(path: Path) -> Path:
    """Make a folder, and those around it, unless it is there; return it.

    Raises
    ------
    InvalidProblemError
        If it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidProblemError(f"{path}: cannot be made a folder: {error.strerror}.") from error
    return path
