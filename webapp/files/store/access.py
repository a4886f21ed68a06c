"""Store of this installation, with waiting for a home that is away for a while."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import structlog
from django.conf import settings

from webapp.common.models import Installation
from webapp.files.store.folder import FolderStore
from webapp.files.store.protocol import (
    Store,
    StoreAwayError,
    StoredFile,
    UnreadableFileError,
)

log = structlog.get_logger(__name__)

T = TypeVar("T")
PATIENCE_SECONDS = 900.0  # for one file that a home which answers does not return
# Waiting of a job between two attempts; pages do not wait.
_wait: ContextVar[Callable[[], None] | None] = ContextVar("wait", default=None)


def store() -> Store:
    """Return the home of the files by the settings; connections belong to this process."""
    return _store(settings.STORE_URL, Path(settings.MEDIA_ROOT), os.getpid())


@lru_cache(maxsize=4)
def _store(url: str, root: Path, process: int) -> Store:
    if not url:
        return FolderStore(root, _has_mark)
    from webapp.files.store.bucket import BucketStore  # boto3 is slow to load

    return BucketStore(url, root, cache_bytes=int(settings.STORE_CACHE_GB * 1e9))


def _has_mark() -> bool:
    """Return True if the database belongs to a store that was seen before."""
    return Installation.objects.filter(pk=1).exclude(store_mark="").exists()


@contextmanager
def persevering(wait: Callable[[], None]) -> Iterator[None]:
    """Within the block, retry while the store is away; ``wait`` is called between attempts.

    It sleeps, and raises an error to end the waiting.
    """
    token = _wait.set(wait)
    try:
        yield
    finally:
        _wait.reset(token)


def _ask(action: Callable[[], T], *, patience: float = PATIENCE_SECONDS) -> T:
    """Return the home's answer; in a job, retry as long as the home is away.

    A home that answers, but for ``patience`` seconds not to this request, will not do so later.
    """
    refused_since: float | None = None
    while True:
        try:
            return action()
        except StoreAwayError as error:
            wait = _wait.get()
            if wait is None:
                raise
            log.warning("the store is away, it will be asked again", error=str(error))
            now = time.monotonic()
            refused_since = (refused_since or now) if _answers() else None
            if refused_since is not None and now - refused_since > patience:
                raise UnreadableFileError(
                    "The store of files answers, but not for a file of this job; its log says more."
                ) from error
            wait()


def _answers() -> bool:
    """Return True if the home answers with its mark."""
    try:
        return bool(store().read_mark())
    except StoreAwayError:
        return False


def get(path: Path, *, fresh: bool = False, patience: float = PATIENCE_SECONDS) -> Path:
    """Return ``path``, fetched from the home if the file exists.

    Raises
    ------
    StoreAwayError
        While the home does not answer; in a job only once it is cancelled.
    UnreadableFileError
        In a job, if the home answers but does not return this file for ``patience`` seconds.
    """
    _ask(lambda: store().get(path, fresh=fresh), patience=patience)
    return path


def put(path: Path) -> Path:
    """Store the whole file at ``path`` safely and return ``path``; StoreAwayError as :func:`get`.

    If files are written into the home itself, a home that was away lacks the file, and waiting
    does not bring it there. The error is raised at once, and a job writes again.
    """
    if store().is_in_place:
        store().put(path)
    else:
        _ask(lambda: store().put(path))
    return path


def remove(path: Path) -> None:
    """Remove a file or folder. If the home is away it stays, and the daily walk removes it."""
    try:
        store().remove(path)
    except StoreAwayError as error:
        log.warning("the store is away, a file stays for now", error=str(error))


def remove_alike(folder: Path, beginning: str) -> None:
    """Remove the files of a folder with the same beginning of the name, as :func:`remove` does."""
    try:
        for file in list(store().files(folder)):
            if file.path.name.startswith(beginning):
                store().remove(file.path)
    except StoreAwayError as error:
        log.warning("the store is away, files stay for now", error=str(error))


def files(folder: Path) -> Iterator[StoredFile]:
    """Yield the files of the home below a folder."""
    return iter(_ask(lambda: list(store().files(folder))))


@contextmanager
def hold(target: Path) -> Iterator[list[Path]]:
    """Begin a copy of everything; yield the paths still to be copied, which stay meanwhile."""
    home = store()
    try:
        yield home.hold(target)
    finally:
        home.release()


def tidy() -> int:
    """Remove half-written files and long unused copies; return their number."""
    return store().tidy()


def check() -> None:
    """Check that the store answers, and that it belongs to the database.

    Raises
    ------
    StoreAwayError
        If it does not answer, or another one does: a folder that is not mounted, another bucket.
    """
    home = store()
    mark = home.read_mark()
    row, is_new = Installation.objects.get_or_create(
        pk=1, defaults={"store_mark": mark or uuid4().hex}
    )
    if not mark and is_new:
        home.write_mark(row.store_mark)
        mark = home.read_mark()
    if not mark:
        raise StoreAwayError(
            "The store is empty, but this database has had one: a folder that is not mounted?"
        )
    if mark != row.store_mark:
        raise StoreAwayError("This is the store of another database.")
    probe = home.root / f".probe-{os.getpid()}"
    try:
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.write_bytes(b"ready")
        home.put(probe)
    except OSError as error:
        raise StoreAwayError(str(error)) from error
    finally:
        remove(probe)
