"""An ``.npz`` file: written whole or not at all, and read back or refused in words."""

import os
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.core.whole_file import whole_file

NEW_FILE_MODE = 0o666  # what open() asks for; the umask takes its part


# What numpy and zipfile raise on foreign bytes: a wrong kind of file, a compression or encryption
# that they do not know, a part cut off or changed, an array of a size that no machine has.
_DAMAGE = (
    ValueError,
    TypeError,
    EOFError,
    KeyError,
    OverflowError,
    MemoryError,
    RuntimeError,  # NotImplementedError is one
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(path: Path | str, names: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, of numbers and text only: those of ``names`` that it has, or all.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    InvalidProblemError
        If it is no ``.npz`` file, is damaged, or holds objects.
    """
    with _refused_in_words(path), _open(path) as archive:
        return {k: archive[k] for k in archive.files if names is None or k in names}


def open_npz(path: Path | str) -> Mapping[str, NDArray[Any]]:
    """Open a file of arrays, each of which is read anew whenever it is asked for.

    All are read once beforehand, one after the other: damage shows before anything is used, and
    memory has to hold the largest array only. The file stays open as long as the mapping is kept.

    Raises
    ------
    OSError, InvalidProblemError
        See `read_npz`.
    """
    with _refused_in_words(path):
        archive = _open(path)
        try:
            for name in archive.files:
                archive[name]
        except BaseException:
            archive.close()
            raise
        return archive


def _open(path: Path | str) -> NpzFile:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, NpzFile):
        raise InvalidProblemError("one array alone")
    return archive


@contextmanager
def _refused_in_words(path: Path | str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise InvalidProblemError(f"{Path(path).name} is no file of arrays, or damaged.") from error


def read_model_parts(
    path: Path | str, names: Collection[str] | None, *, max_bytes: int
) -> dict[str, NDArray[Any]]:
    """Read those of ``names`` that a model file has, or all.

    Raises
    ------
    InvalidProblemError
        If the file is absent, larger than ``max_bytes``, or no file of arrays: one sentence.
    """
    name = Path(path).name
    try:
        is_too_large = Path(path).stat().st_size > max_bytes
        parts = {} if is_too_large else read_npz(path, names)
    except FileNotFoundError as error:
        raise InvalidProblemError(f"{name}: there is no such file.") from error
    except (OSError, InvalidProblemError) as error:
        raise InvalidProblemError(f"{name} is not a model file.") from error
    if is_too_large:
        raise InvalidProblemError(f"{name} is too large to be a model file.")
    return parts


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
    with whole_file(path, mode=NEW_FILE_MODE) as file:
        if path.exists():
            os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
        np.savez(file, allow_pickle=False, **arrays)
