"""Files that no row needs: a process was killed between the two. They go after a day.

Whoever stores something writes the file first and the row second, and deletes the row first and the
file second, so that no row ever lacks its file. What a kill leaves is a file without a row.
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
    """Have the files of a folder of every organisation looked through once a day.

    ``needed`` gets the key of an organisation and returns what the names of the files begin with
    that its rows need: UUIDs, or digests in hex. Files whose names begin otherwise stay.
    """
    _needed[folder] = needed


def remove_left_files() -> int:
    """Remove files that are older than a day and that no row needs; return how many."""
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
        lock_organisation(organisation_id)  # whoever needs such a file anew waits, or is seen now
        left = _left(organisation_id, folder, needed)
        for path in left:
            store.remove(path)
    return len(left)


def _left(organisation_id: int, folder: str, needed: Needed) -> list[Path]:
    """Return those files that nobody needs and nobody has written for a day.

    No upload and no job takes a day, so what they have written and not yet given a row is younger.
    """
    before = time.time() - UNFINISHED_SECONDS
    old = {
        file.path: key[0]
        for file in store.files(organisation_folder(organisation_id) / folder)
        if file.modified < before and (key := _KEY.match(file.path.name))
    }
    keys = set(needed(organisation_id)) if old else set()
    return [path for path, key in old.items() if key not in keys]
