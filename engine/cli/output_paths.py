"""Checks that a command may write to its outputs, done before the work starts."""

import os
import zipfile
from pathlib import Path

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InvalidProblemError


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written.

    Raises
    ------
    InvalidProblemError
        If it is a folder, is write-protected, or its folder is absent or closed to us.
    """
    if path.is_dir():
        raise InvalidProblemError(f"{path}: this is a folder; give the name of a file.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidProblemError(f"{path}: its folder does not exist or cannot be written to.")
    if path.exists() and not os.access(path, os.W_OK):
        raise InvalidProblemError(f"{path}: this file is write-protected; choose another name.")


def open_checkpoint(path: Path | None) -> FileCheckpoint | None:
    """Return the checkpoint file at a path, existing or new; None without a path.

    Raises
    ------
    InvalidProblemError
        If it cannot be written, or a file of another kind would be lost.
    """
    if path is None:
        return None
    check_writable(path)
    if path.exists() and not zipfile.is_zipfile(path):
        raise InvalidProblemError(f"{path}: this file is no checkpoint; choose another name.")
    return FileCheckpoint(path)


def make_folder(path: Path) -> Path:
    """Make a folder and its parents unless they exist; return it.

    Raises
    ------
    InvalidProblemError
        If it cannot be made, or exists and is closed to us.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidProblemError(f"{path}: cannot be made a folder: {error.strerror}.") from error
    if not os.access(path, os.W_OK):
        raise InvalidProblemError(f"{path}: this folder cannot be written to.")
    return path
