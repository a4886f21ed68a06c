"""What a home of files has to be able to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from webapp.common.errors import Refusal

MARK = ".store"  # a file at the root of every home: which one it is
UNFINISHED_SECONDS = 24 * 3600  # longer than any upload is written and any job runs


class StoreAwayError(Exception):
    """The home of the files does not answer, or is not the one that belongs to the database."""


class UnreadableFileError(Refusal):
    """The home answers, but for long not for this one file: a write into it was cut off there."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the home: its path below ``MEDIA_ROOT``, bytes, and seconds since the epoch."""

    path: Path
    size: int
    modified: float


class Store(Protocol):
    """A home of files; every method raises StoreAwayError while it does not answer."""

    root: Path  # below it lie the files, or this host's copies of them

    def put(self, path: Path) -> None:
        """Make a file safe that was written whole at ``path``."""

    def get(self, path: Path, *, fresh: bool = False) -> bool:
        """Have a file at ``path``, the newest where ``fresh``; return whether there is one."""

    def has(self, path: Path) -> bool:
        """Whether the home has the file."""

    def remove(self, path: Path) -> None:
        """Remove a file, or all that lies below a folder; what is gone already is fine."""

    def files(self, folder: Path) -> Iterator[StoredFile]:
        """Yield what lies below a folder."""

    def hold(self, target: Path) -> list[Path]:
        """Begin a copy of everything into ``target``: at once, or the paths still to be copied.

        What is returned is not removed by anybody until ``release``.
        """

    def release(self) -> None:
        """Say that the copy is done."""

    def read_mark(self) -> str:
        """Return which home this is; '' where nobody has said so yet."""

    def write_mark(self, mark: str) -> None:
        """Say which home this is."""

    def tidy(self) -> int:
        """Remove what was left half done, and copies that nobody used for long; return how many."""
