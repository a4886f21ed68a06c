"""Files of arrays: written atomically, and refused with a clear message if damaged.

Threads take turns at reading. numpy reads the header of an array with Python's own parser, and in
Python 3.11 two threads that parse at once may fail with SystemError (python/cpython issue 106905):
about once in 100,000 arrays, which ended a run of learning.
"""

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any

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


_TURN = Lock()
# A child that another thread forks finds the lock free.
os.register_at_fork(
    before=_TURN.acquire, after_in_parent=_TURN.release, after_in_child=_TURN.release
)


class ArrayFile(Mapping[str, NDArray[Any]]):
    """Arrays of an open ``.npz`` file, numbers and text only, read again at every access.

    Raises
    ------
    OSError, InvalidProblemError
        If the file cannot be opened, or holds one array alone. Damage raises what numpy raises.
    """

    def __init__(self, file: Path | str | IO[bytes]) -> None:
        with _TURN:
            archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, NpzFile):
            raise InvalidProblemError("one array alone")
        self._archive = archive

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read an array; numpy answers with bytes where its header is damaged."""
        with _TURN:
            found = self._archive[name]
        if not isinstance(found, np.ndarray):
            raise InvalidProblemError(f"{name} is no array")
        return found

    def __contains__(self, name: object) -> bool:
        """Return True if there is an array of this name, without reading it."""
        return name in self._archive.files

    def __iter__(self) -> Iterator[str]:
        """Return the names of the arrays."""
        return iter(self._archive.files)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._archive.files)

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def __enter__(self) -> "ArrayFile":
        """Return the open file."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def read_array(path: Path | str, *, is_mapped: bool = False) -> NDArray[Any]:
    """Read an ``.npy`` file, numbers and text only; ``is_mapped`` reads parts as they are used.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read, or is no such file.
    """
    with _TURN:
        found = np.load(path, allow_pickle=False, mmap_mode="r" if is_mapped else None)
    return np.asanyarray(found)


def read_npz(path: Path | str, names: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, numbers and text only: those in ``names``, or all.

    Raises
    ------
    OSError
        If the file cannot be opened or read.
    InvalidProblemError
        If it is not an ``.npz`` file, is damaged, or holds objects.
    """
    with _refused_in_words(path), ArrayFile(path) as archive:
        return {k: archive[k] for k in archive if names is None or k in names}


def open_npz(path: Path | str) -> ArrayFile:
    """Open a file of arrays that are read again at every access.

    All are read once beforehand, one after the other, so that damage shows before use and memory
    holds only the largest array. The file stays open as long as the mapping exists.

    Raises
    ------
    OSError, InvalidProblemError
        See `read_npz`.
    """
    with _refused_in_words(path):
        archive = ArrayFile(path)
        try:
            for name in archive:
                archive[name]
        except BaseException:
            archive.close()
            raise
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
