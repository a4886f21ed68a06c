"""Files of an organisation: where they lie, whole or not at all, never pickles."""

import os
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from django.conf import LazySettings

from webapp.files.storage import (
    array_path,
    read_arrays,
    write_arrays,
)
from webapp.files.store import tidy
from webapp.files.store.protocol import UNFINISHED_SECONDS


def test_it_writes_and_reads(settings: LazySettings) -> None:
    key = uuid4()
    path = array_path(7, "models", key)
    assert path == Path(settings.MEDIA_ROOT) / "organisation-7" / "models" / f"{key}.npz"
    write_arrays(path, theta=np.arange(3.0))
    assert read_arrays(path)["theta"].tolist() == [0, 1, 2]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", ["../up", "a/b", "", "."])
def test_a_kind_cannot_leave_the_folder(kind: str) -> None:
    with pytest.raises(ValueError, match="plain word"):
        array_path(7, kind, uuid4())


def test_what_a_killed_process_left_half_written_is_removed_after_a_day(media_root: Path) -> None:
    folder = array_path(7, "proposals", uuid4()).parent
    old, new, whole = folder / "old.npz.part", folder / "new.part", folder / "old.npz"
    for path in (old, new, whole):
        path.write_bytes(b"x")
    for path in (old, whole):
        os.utime(path, (time.time() - UNFINISHED_SECONDS - 1,) * 2)
    assert tidy() == 1
    assert set(folder.iterdir()) == {new, whole}


def test_pickled_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, payload=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_arrays(path)
