"""Orphaned files, left when a process was killed before its row was written; removed after a day.

Code that stores something writes the file first and the row second, and deletes the row first and
the file second, so that no row ever lacks its file. A kill can only leave a file without a row.
"""

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from django.db import transaction

from webapp.accounts.models import Organisation
from webapp.files import store
from webapp.files.quota import lock_organisation
from webapp.files.storage import organisation_folder
from webapp.files.store.protocol import UNFINISHED_SECONDS

Needed = Callable[[int], Iterable[str]]
_KEY = re.compile(r"[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_needed: dict[str, Needed] = {}


def register_needed(folder: str, needed: Needed) -> None:
    """Register a folder of every organisation for the daily search for orphaned files.

    ``needed`` gets the key of an organisation and returns the beginnings of the file names that
    its rows need: UUIDs, or hex digests. Files whose names begin otherwise stay.
    """
    _needed[folder] = needed


def remove_orphaned_files() -> int:
    """Remove files that are older than a day and that no row needs; return their number."""
    return sum(
        _remove_left(organisation_id, folder, needed)
        for organisation_id in Organisation.objects.values_list("pk", flat=True)
        for folder, needed in _needed.items()
    )


def _remove_left(organisation_id: int, folder: str, needed: Needed) -> int:
    suspects = _left(organisation_id, folder, needed)
    if not suspects:
        return 0
    with transaction.atomic():
        lock_organisation(organisation_id)  # new users of a file wait, or are seen now
        left = _left(organisation_id, folder, needed)
        for path in left:
            store.remove(path)
    return len(left)


def _left(organisation_id: int, folder: str, needed: Needed) -> list[Path]:
    """Return the files that no row needs and that were not written for a day.

    No upload and no job takes a day, so files that still wait for their row are younger.
    """
    before = time.time() - UNFINISHED_SECONDS
    old = {
        file.path: key[0]
        for file in store.files(organisation_folder(organisation_id) / folder)
        if file.modified < before and (key := _KEY.match(file.path.name))
    }
    keys = set(needed(organisation_id)) if old else set()
    return [path for path, key in old.items() if key not in keys]
