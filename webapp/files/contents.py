"""Content-addressed files of an organisation: named by their SHA-256, outside the web root.

Each organisation has its own tree, so equal files of two organisations never share a byte and a
digest from elsewhere gives no access. A file appears whole or not at all: it is written under
another name, flushed to disk and renamed.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.utils.translation import gettext as _

from engine.core.whole_file import PartFile, part_file
from webapp.database.full_disk import FULL_DISK, is_full_disk, require_room
from webapp.files import store
from webapp.files.storage import organisation_folder

CHUNK_BYTES = 1 << 16


class StorageFullError(Exception):
    """Error of a full disk; the message is for the person who uploads."""

    def __init__(self) -> None:
        advice = _("Nothing of this file was saved.")
        super().__init__(f"{FULL_DISK} {advice}")


@dataclass(frozen=True, slots=True)
class StoredContent:
    """Entry of the store for one file: its digest (64 hex digits) and its size in bytes."""

    digest: str
    size: int


def read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of ``stream`` in pieces of ``CHUNK_BYTES``."""
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


@contextmanager
def full_disk_explained() -> Iterator[None]:
    """Turn the operating system's "no space left" into StorageFullError."""
    try:
        yield
    except OSError as error:
        if is_full_disk(error):
            raise StorageFullError from error
        raise


class FileStore:
    """Store of one organisation's files.

    Parameters
    ----------
    organisation_id : int
        Primary key of the owner; part of every path.
    kind : str
        "originals" for what people uploaded or painted, "derived" for what can be made again.
    """

    def __init__(self, organisation_id: int, kind: str = "originals") -> None:
        self._root = organisation_folder(organisation_id) / "files" / kind

    def path(self, digest: str, suffix: str = "") -> Path:
        """Return the path of the file with this digest, existing or not."""
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ValueError(f"Expected a SHA-256 in lower-case hex, received {digest!r}.")
        return self._root / digest[:2] / f"{digest}{suffix}"

    def fetch(self, digest: str, suffix: str = "") -> Path:
        """Return the path of the file with this digest, fetched from the store if it is there."""
        return store.get(self.path(digest, suffix))

    def put(self, chunks: Iterable[bytes]) -> StoredContent:
        """Store bytes under their own digest; storing the same bytes twice keeps one copy.

        Raises
        ------
        StorageFullError
            If the disk is full. No part of the file stays behind.
        """
        digest, size = hashlib.sha256(), 0
        with full_disk_explained(), store.faults_as_away(), self._new_part() as part:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                part.file.write(chunk)
            require_room(self._root)
            self._settle(part, self.path(digest.hexdigest()))
        return StoredContent(digest.hexdigest(), size)

    def put_derived(self, digest: str, suffix: str, content: bytes) -> Path:
        """Store a file derived from the file ``digest`` (such as a thumbnail) beside it."""
        target = self.path(digest, suffix)
        with full_disk_explained(), store.faults_as_away(), self._new_part() as part:
            part.file.write(content)
            self._settle(part, target)
        return target

    def remove(self, digest: str) -> None:
        """Remove a file and all files derived from it; absent files are no error."""
        store.remove_alike(self.path(digest).parent, digest)

    def _new_part(self) -> AbstractContextManager[PartFile]:
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        require_room(self._root)
        return part_file(self._root)

    @staticmethod
    def _settle(part: PartFile, target: Path) -> None:
        target.parent.mkdir(exist_ok=True, mode=0o700)
        part.settle(target)
        store.put(target)


def content_remove(*, organisation_id: int, digest: str) -> None:
    """Remove a file and all files derived from it."""
    FileStore(organisation_id).remove(digest)
    FileStore(organisation_id, "derived").remove(digest)
