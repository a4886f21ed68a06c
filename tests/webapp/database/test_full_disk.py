"""A full or nearly full disk: the database, pages and logs go on."""

import errno
import logging
import shutil
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from django.db import OperationalError
from django.test import Client

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.common.sessions import SessionStore
from webapp.database.full_disk import is_full_disk, require_room
from webapp.files.contents import FileStore, StorageFullError
from webapp.files.storage import array_path, keep_array, keep_bytes, write_arrays
from webapp.jobs.checkpoint import StoredCheckpoint
from webapp.jobs.models import JobListVisit
from webapp.monitoring.log_settings import LinesFile


class Usage(NamedTuple):
    total: float
    used: float
    free: float


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that sets how many bytes of a large disk are free."""

    def leave(free: float, total: float = 100e9) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(total, total - free, free))

    return leave


@pytest.mark.parametrize(
    ("free", "total", "size", "is_refused"),
    [
        (300e6, 100e9, 0, False),
        (300e6, 100e9, 50e6, True),
        (200e6, 100e9, 0, True),
        (30e6, 1e9, 0, False),  # a small disk keeps a fiftieth
        (10e6, 1e9, 0, True),
    ],
)
def test_files_leave_room_to_the_database(
    disk: Any, tmp_path: Path, free: float, total: float, size: int, is_refused: bool
) -> None:
    disk(free, total)
    if not is_refused:
        require_room(tmp_path, size)
        return
    with pytest.raises(OSError, match="No space left") as caught:
        require_room(tmp_path, size)
    assert is_full_disk(caught.value)


def test_no_kind_of_file_takes_the_last_room(disk: Any, bob: User) -> None:
    key = "00000000-0000-4000-8000-000000000001"
    path = array_path(bob.organisation_id, "models", key)
    saved = StoredCheckpoint(array_path(bob.organisation_id, "checkpoints", key))
    saved.save({"step": np.array(1)})
    disk(1e6)
    for write in (
        lambda: write_arrays(path, theta=np.zeros(3)),
        lambda: keep_array(path, np.zeros(3)),
        lambda: keep_bytes(path, b"bytes"),
    ):
        with pytest.raises(OSError, match="No space left"):
            write()
    with pytest.raises(StorageFullError):
        FileStore(bob.organisation_id).put([b"a picture"])
    saved.save({"step": np.array(2)})  # the work goes on without
    found = saved.load()
    assert found is not None
    assert int(found["step"]) == 1
    assert not path.exists()


def full_disk(*_: Any, **__: Any) -> None:
    raise OperationalError("database or disk is full")


def test_a_session_that_finds_no_room_is_not_the_browsers_fault(
    client: Client, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    session = SessionStore(client.session.session_key)
    session["kept"] = 1
    monkeypatch.setattr(SessionStore.get_model_class(), "save", full_disk)
    with pytest.raises(OperationalError, match="full"):
        session.save()
    client.raise_request_exception = False
    answer = client.get("/accounts/second-factor/")  # makes a secret, and keeps it in the session
    assert answer.status_code == 507
    assert Page(answer, status=507).has("heading", "disk is full")


def test_a_page_that_only_notes_a_look_is_shown_all_the_same(
    client: Client, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    monkeypatch.setattr(JobListVisit, "save", full_disk)
    assert client.get("/jobs/").status_code == 200
    assert not JobListVisit.objects.exists()


def test_a_line_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    handler = LinesFile(tmp_path / "absent" / "access.log")
    record = logging.LogRecord("x", logging.INFO, "", 0, "a line", None, None)
    handler.emit(record)
    (tmp_path / "absent").mkdir()
    handler.emit(record)
    handler.close()
    assert (tmp_path / "absent" / "access.log").read_text() == "a line\n"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EDQUOT, "quota"), True),
        (sqlite3.OperationalError("database or disk is full"), True),
        (OperationalError("database is locked"), False),
        (OSError(errno.EACCES, "denied"), False),
    ],
)
def test_a_full_disk_is_told_from_other_faults(error: Exception, expected: bool) -> None:
    assert is_full_disk(error) is expected
