"""Where files of all organisations lie: one interface, three homes.

A local folder, a folder that all hosts share (``MEDIA_ROOT``), or a bucket of an object store of
the S3 kind (``STORE_URL``), for which ``MEDIA_ROOT`` is a cache of this host. Everybody works with
paths below ``MEDIA_ROOT``: :func:`get` makes a file present there before it is read or mapped into
memory, :func:`put` makes one that was written there safe.

A name is never given two contents: what people upload is named by its digest, what a job makes by
an identifier of its own. Only what is rewritten while a job runs (its checkpoint, its previews) is
asked for with ``fresh``, which looks into the home each time.
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
from webapp.files.store.protocol import Store, StoreAwayError, StoredFile, UnreadableFileError

__all__ = [
    "Store",
    "StoreAwayError",
    "StoredFile",
    "UnreadableFileError",
    "check",
    "files",
    "get",
    "hold",
    "persevering",
    "put",
    "remove",
    "remove_alike",
    "store",
    "tidy",
]
