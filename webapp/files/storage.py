"""Paths of an organisation's arrays: plain ``.npy`` and ``.npz`` files, never pickles.

These are paths on this host; ``webapp/files/store`` stores files safely, and fetches them.
"""

import io
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from engine.core.npz_file import ArrayFile
from engine.core.whole_file import whole_file
from webapp.database.full_disk import require_room
from webapp.files import store


def organisation_folder(organisation: Any) -> Path:
    """Return the folder that holds all files of one organisation (an instance or its key)."""
    key = getattr(organisation, "pk", organisation)
    return Path(settings.MEDIA_ROOT) / f"organisation-{int(key)}"


def array_path(organisation: Any, kind: str, uuid: UUID, suffix: str = ".npz") -> Path:
    """Return the path of one file: ``MEDIA_ROOT/organisation-ID/KIND/UUID.npz``.

    ``kind`` is a plain word (``models``, ``marginals``); the folder is made if missing.
    """
    path = named_path(organisation, kind, uuid, suffix)
    with store.faults_as_away():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def named_path(organisation: Any, kind: str, uuid: UUID, suffix: str = ".npz") -> Path:
    """Return the path of :func:`array_path` without making its folder: the store may be away."""
    if not kind.replace("-", "").replace("_", "").isalnum():
        raise ValueError(f"kind: expected a plain word, received {kind!r}.")
    return organisation_folder(organisation) / kind / f"{UUID(str(uuid))}{suffix}"


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write arrays to one ``.npz`` file on this host, whole or not at all."""
    with store.faults_as_away():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_room(path.parent, sum(array.nbytes for array in arrays.values()))
        with whole_file(path) as file:
            np.savez(file, allow_pickle=False, **arrays)


def keep_bytes(path: Path, content: bytes | memoryview) -> None:
    """Store a file whole or not at all."""
    with store.faults_as_away():
        require_room(path.parent, len(content))
        with whole_file(path) as file:
            file.write(content)
    store.put(path)


def keep_array(path: Path, array: NDArray[Any]) -> None:
    """Store one array as ``.npy``, which can be mapped into memory."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    keep_bytes(path, buffer.getbuffer())


def keep_file(written: Path, path: Path) -> None:
    """Store a file that was written elsewhere below ``MEDIA_ROOT`` under the name ``path``.

    Call it before the transaction whose rows need it: an object store takes its time.
    """
    with store.faults_as_away():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_room(path.parent)
        os.replace(written, path)
    store.put(path)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays that :func:`write_arrays` wrote; pickled content is refused."""
    with ArrayFile(store.get(path)) as archive:
        return dict(archive)
