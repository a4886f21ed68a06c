"""Where the arrays of an organisation lie: plain ``.npy`` and ``.npz`` files, never pickles."""

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from engine import whole_file

UNFINISHED_SECONDS = 24 * 3600  # longer than any upload is written and any job runs


def organisation_folder(organisation: Any) -> Path:
    """Return the folder that holds all files of one organisation (an instance or its key)."""
    key = getattr(organisation, "pk", organisation)
    return Path(settings.MEDIA_ROOT) / f"organisation-{int(key)}"


def array_path(organisation: Any, kind: str, uuid: UUID, suffix: str = ".npz") -> Path:
    """Return the path of one file: ``MEDIA_ROOT/organisation-ID/KIND/UUID.npz``.

    ``kind`` is a plain word (``models``, ``marginals``); the folder is made when missing.
    """
    if not kind.replace("-", "").replace("_", "").isalnum():
        raise ValueError(f"kind: expected a plain word, received {kind!r}.")
    folder = organisation_folder(organisation) / kind
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{UUID(str(uuid))}{suffix}"


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write arrays to one ``.npz`` file, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with whole_file(path) as file:
        np.savez(file, **arrays)


def remove_unfinished() -> int:
    """Remove files that a killed process left half written; return how many.

    Whatever is written whole or not at all is written as ``*.part`` first.
    """
    untouched_since, removed = time.time() - UNFINISHED_SECONDS, 0
    for folder, _, names in os.walk(settings.MEDIA_ROOT):
        for path in (Path(folder, name) for name in names if name.endswith(".part")):
            with contextlib.suppress(FileNotFoundError):  # finished meanwhile
                if path.stat().st_mtime < untouched_since:
                    path.unlink()
                    removed += 1
    return removed


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read what :func:`write_arrays` wrote; pickled content is refused."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def remove_path(path: Path) -> None:
    """Remove a file or folder; one that is already gone is fine."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
