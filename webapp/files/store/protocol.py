"""Interface of a home of files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from webapp.common.errors import Refusal

MARK = ".store"  # a file at the root of every home that identifies it
UNFINISHED_SECONDS = 24 * 3600  # seconds; longer than any upload and any job


class StoreAwayError(Exception):
    """Error of a home of files that does not answer, or does not belong to the database."""


class UnreadableFileError(Refusal):
    """Error of one file that an answering home does not return for long: a write was cut off."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Entry of a file: its path below ``MEDIA_ROOT``, its bytes, and seconds since the epoch."""

    path: Path
    size: int
    modified: float


class Store(Protocol):
    """Protocol of a home of files; every method raises StoreAwayError while it does not answer."""

    root: Path  # folder of the files, or of this host's copies of them
    is_in_place: bool  # True if files written below the root are already in the home

    def put(self, path: Path) -> None:
        """Store the file that was written whole at ``path`` safely."""

    def get(self, path: Path, *, fresh: bool = False) -> bool:
        """Fetch a file to ``path``, the newest with ``fresh``; return True if it exists."""

    def has(self, path: Path) -> bool:
        """Return True if the home has the file."""

    def remove(self, path: Path) -> None:
        """Remove a file, or everything below a folder; an absent one is no error."""

    def files(self, folder: Path) -> Iterator[StoredFile]:
        """Yield the files below a folder."""

    def hold(self, target: Path) -> list[Path]:
        """Begin a copy of everything into ``target``: done at once, or return the paths to copy.

        These paths are not removed until ``release``.
        """

    def release(self) -> None:
        """End the copy."""

    def read_mark(self) -> str:
        """Return the mark of this home; '' if it has none yet."""

    def write_mark(self, mark: str) -> None:
        """Write the mark of this home."""

    def tidy(self) -> int:
        """Remove half-written files and long unused copies; return their number."""
