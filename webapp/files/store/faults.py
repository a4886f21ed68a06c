"""Errors of a home of files that is read-only, not mounted or out of reach."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from webapp.files.store.protocol import StoreAwayError

_OF_FILE_SYSTEMS = {errno.EROFS, errno.EIO, errno.ESTALE, errno.ENODEV}
# The same, if they concern a file of the store; elsewhere they may concern a socket.
_OF_FILES = {
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.ENOTCONN,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ETIMEDOUT,
}


def is_fault(error: BaseException) -> bool:
    """Return True if an error means that the store is unusable now, and may recover."""
    if isinstance(error, StoreAwayError):
        return True
    if not isinstance(error, OSError):
        return False
    if error.errno in _OF_FILE_SYSTEMS:
        return True
    return error.errno in _OF_FILES and _is_below(error.filename, Path(settings.MEDIA_ROOT))


@contextmanager
def faults_as_away() -> Iterator[None]:
    """Turn errors of a broken home into StoreAwayError, which pages and jobs handle."""
    try:
        yield
    except OSError as error:
        if is_fault(error):
            raise StoreAwayError(str(error)) from error
        raise


def _is_below(name: object, root: Path) -> bool:
    return isinstance(name, str | Path) and Path(name).is_relative_to(root)
