"""Writing an ``.npz`` file whole or not at all."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEW_FILE_MODE = 0o666  # what open() asks for; the umask takes its part


def write_npz(path: Path | str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays of numbers and text to a neighbour file, flush it, rename it over ``path``.

    Whoever reads ``path`` finds the old file or the new one, also when the process is killed or
    the disk is full.

    Parameters
    ----------
    path : path of the file; its folder must exist.
    arrays : mapping of names to arrays; objects, which would need pickles, are refused.

    Raises
    ------
    OSError
        If the file cannot be written; the old one is untouched then.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode_of(path))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode_of(path: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return NEW_FILE_MODE & ~umask
