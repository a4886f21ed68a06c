"""How much an organisation may store, so that none fills the disk for all."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache

from engine import InvalidProblemError
from webapp.common.storage import organisation_folder

_REMEMBERED_SECONDS = 30  # an upload of thousands of files must not walk the folder for each


class QuotaError(InvalidProblemError):
    """The organisation has no room left; one sentence says how much it uses."""


def stored_bytes(organisation: Any) -> int:
    """Return how much the files of an organisation (an instance or its key) take, in bytes.

    The folder is walked at most every 30 seconds, so an organisation can pass its limit by what
    it uploads in that time.
    """
    folder = organisation_folder(organisation)
    key = f"stored-bytes:{folder}"
    return cache.get_or_set(key, lambda: _size_of(folder), _REMEMBERED_SECONDS)


def check_quota(organisation: Any) -> None:
    """Raise QuotaError when the organisation stores more than ``ORGANISATION_QUOTA_GB``."""
    limit = settings.ORGANISATION_QUOTA_GB
    used = stored_bytes(organisation) / 1000**3
    if used >= limit:
        raise QuotaError(
            f"Your organisation stores {used:.3g} GB of the {limit:g} GB that it may use. Remove "
            "images, predictions or cohorts that are no longer needed. Nothing was saved."
        )


def _size_of(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue  # removed meanwhile
    return total
