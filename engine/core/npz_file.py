"""Files in ``.npz`` format: written atomically, and refused with a clear message if damaged."""

import os
import struct
import tokenize
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

NEW_FILE_MODE = 0o666  # as open() requests; the umask removes its bits


# Exceptions of numpy and zipfile for unsupported bytes: a wrong kind of file, unknown compression
# or encryption, a part cut off or changed, an array larger than any memory.
_DAMAGE = (
    ValueError,
    TypeError,
    EOFError,
    KeyError,
    OverflowError,
    MemoryError,
    RuntimeError,  # NotImplementedError is one
    SyntaxError,  # of a header that numpy parses as Python; nothing is executed
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(path: Path | str, names: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, numbers and text only: those in ``names``, or all.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    InvalidProblemError
        If it is not an ``.npz`` file, is damaged, or holds objects.
    """
    with _refused_in_words(path), _open(path) as archive:
        return {k: _array(archive, k) for k in archive.files if names is None or k in names}


def open_npz(path: Path | str) -> Mapping[str, NDArray[Any]]:
    """Open a file of arrays that are read again at every access.

    All are read once beforehand, one after the other, so that damage shows before use and memory
    holds only the largest array. The file stays open as long as the mapping exists.

    Raises
    ------
    OSError, InvalidProblemError
        See `read_npz`.
    """
    with _refused_in_words(path):
        archive = _open(path)
        try:
            for name in archive.files:
                _array(archive, name)
        except BaseException:
            archive.close()
            raise
        return archive


def _open(path: Path | str) -> NpzFile:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, NpzFile):
        raise InvalidProblemError("one array alone")
    return archive


def _array(archive: NpzFile, name: str) -> NDArray[Any]:
    """Return an array of the file; numpy answers with bytes where its header is damaged."""
    found = archive[name]
    if not isinstance(found, np.ndarray):
        raise InvalidProblemError(f"{name} is no array")
    return found


@contextmanager
def _refused_in_words(path: Path | str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise InvalidProblemError(f"{Path(path).name} is no file of arrays, or damaged.") from error


def read_model_parts(
    path: Path | str, names: Collection[str] | None, *, max_bytes: int
) -> dict[str, NDArray[Any]]:
    """Read the parts of a model file that are in ``names``, or all.

    Raises
    ------
    InvalidProblemError
        If the file is absent, larger than ``max_bytes``, or not a file of arrays: one sentence.
    """
    name = Path(path).name
    try:
        is_too_large = Path(path).stat().st_size > max_bytes
        parts = {} if is_too_large else read_npz(path, names)
    except FileNotFoundError as error:
        raise InvalidProblemError(f"{name}: there is no such file.") from error
    except (OSError, InvalidProblemError) as error:
        raise InvalidProblemError(f"{name}: this is not a whole model file.") from error
    if is_too_large:
        raise InvalidProblemError(f"{name} is too large to be a model file.")
    return parts


def write_npz(path: Path | str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays of numbers and text to a neighbour file, flush it, rename it over ``path``.

    Readers of ``path`` find the old file or the new one, also if the process is killed or the disk
    is full.

    Parameters
    ----------
    path : path of the file; its folder must exist.
    arrays : mapping of names to arrays; objects, which would need pickles, are refused.

    Raises
    ------
    OSError
        If the file cannot be written; the old one is then untouched.
    """
    path = Path(path)
    with whole_file(path, mode=NEW_FILE_MODE) as file:
        if path.exists():
            os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
        np.savez(file, allow_pickle=False, **arrays)
