"""Store of the files of all organisations: one interface, three homes.

The home is a local folder, a folder that all hosts share (``MEDIA_ROOT``), or a bucket of an S3
object store (``STORE_URL``), for which ``MEDIA_ROOT`` is a cache of this host. All code works with
paths below ``MEDIA_ROOT``: :func:`get` makes a file present there before it is read or mapped into
memory, :func:`put` stores a file that was written there safely.

A name never gets two contents: uploads are named by their digest, results of a job by an identifier
of their own. Only files rewritten while a job runs (its checkpoint, its previews) are requested
with ``fresh``, which looks into the home each time.
"""

from webapp.files.store.access import (
    check,
    files,
    get,
    hold,
    persevering,
    put,
    remove,
    remove_alike,
    store,
    tidy,
)
from webapp.files.store.faults import faults_as_away, is_fault
from webapp.files.store.protocol import Store, StoreAwayError, StoredFile, UnreadableFileError

__all__ = [
    "Store",
    "StoreAwayError",
    "StoredFile",
    "UnreadableFileError",
    "check",
    "faults_as_away",
    "files",
    "get",
    "hold",
    "is_fault",
    "persevering",
    "put",
    "remove",
    "remove_alike",
    "store",
    "tidy",
]
