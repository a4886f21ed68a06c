"""Files of an organisation: where they lie, whole or not at all, never pickles."""

import os
import time
from pathlib import Path
from unittest.mock import Mock
from uuid import uuid4

import numpy as np
import pytest
from django.conf import LazySettings

from tasks.sweeper import Sweeper
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


def test_the_sweep_looks_for_such_files_when_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    sweeper = Sweeper()
    monkeypatch.setattr("tasks.sweeper.connection", Mock())
    monkeypatch.setattr("tasks.sweeper.jobs_sweep", lambda: sweeper.stop() or {})
    monkeypatch.setattr(Sweeper, "_send", lambda self: None)
    monkeypatch.setattr("tasks.sweeper.deliveries_expire", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.alerts_note", lambda: None)
    monkeypatch.setattr("tasks.sweeper.drafts_expire", lambda: looked.append("old") or 0)
    monkeypatch.setattr("tasks.sweeper.tidy", lambda: looked.append("part") or 0)
    monkeypatch.setattr("tasks.sweeper.removals_finish", lambda: looked.append("removed") or 0)
    monkeypatch.setattr("tasks.sweeper.remove_orphaned_files", lambda: looked.append("left") or 0)
    sweeper.run()
    assert looked == ["old", "part", "removed", "left"]


def test_a_tidying_that_failed_is_tried_again_within_the_hour(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    """It used to wait a day, like one that was done."""
    settings.JOB_SWEEP_SECONDS = 0
    sweeper, looks, tidied = Sweeper(), [], []

    def sweep() -> dict[str, int]:
        looks.append(1)
        if len(looks) == 26:
            sweeper.stop()
        return {}

    def expire() -> int:
        tidied.append(len(looks))
        if len(tidied) == 1:
            raise OSError("no disk")
        return 0

    clock = iter(range(0, 10**9, 1800))
    monkeypatch.setattr("tasks.sweeper.connection", Mock())
    monkeypatch.setattr("tasks.sweeper.time", Mock(monotonic=lambda: next(clock)))
    monkeypatch.setattr("tasks.sweeper.jobs_sweep", sweep)
    monkeypatch.setattr("tasks.sweeper.workers_note", lambda: None)  # it waits for their answers
    monkeypatch.setattr(Sweeper, "_send", lambda self: None)
    monkeypatch.setattr("tasks.sweeper.deliveries_expire", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.alerts_note", lambda: None)
    monkeypatch.setattr("tasks.sweeper.drafts_expire", expire)
    monkeypatch.setattr("tasks.sweeper.people_expire", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.tidy", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.removals_finish", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.remove_orphaned_files", lambda: 0)
    sweeper.run()
    assert tidied == [1, 3]


def test_it_sweeps_again_after_any_error(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    """An error of another kind used to end the sweep without a word."""
    settings.JOB_SWEEP_SECONDS = 0
    sweeper, looks = Sweeper(), []

    def sweep() -> dict[str, int]:
        looks.append(1)
        if len(looks) == 1:
            raise KeyError("unforeseen")
        sweeper.stop()
        return {}

    monkeypatch.setattr("tasks.sweeper.connection", Mock())
    monkeypatch.setattr("tasks.sweeper.jobs_sweep", sweep)
    monkeypatch.setattr("tasks.sweeper.workers_note", lambda: None)  # it waits for their answers
    monkeypatch.setattr(Sweeper, "_send", lambda self: None)
    monkeypatch.setattr("tasks.sweeper.deliveries_expire", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.alerts_note", lambda: None)
    monkeypatch.setattr("tasks.sweeper.drafts_expire", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.tidy", lambda: 0)
    monkeypatch.setattr("tasks.sweeper.removals_finish", lambda: 0)
    sweeper.run()
    assert len(looks) == 2


def test_pickled_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, payload=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_arrays(path)
