"""Few threads wait long for SQLite's write lock; the others are refused and go on reading."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from tests.patience import wait_for
from webapp.database import passing_notes
from webapp.database.passing_notes import PATIENCE_MS, little_patience
from webapp.database.sqlite3 import base
from webapp.database.sqlite3.base import DatabaseWrapper


@pytest.fixture(autouse=True)
def files_of_its_own(django_db_blocker: Any) -> Iterator[None]:
    """Databases are files of the tests, not the one that tests share."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(autouse=True)
def gate(monkeypatch: pytest.MonkeyPatch) -> base.Gate:
    """Seconds become hundredths, and one thread may wait for long."""
    made = base.Gate(1)
    monkeypatch.setattr(base, "FIRST_MS", 60)
    monkeypatch.setattr(base, "KNOWN_MS", 5)
    monkeypatch.setattr(base, "REST_MS", 60_000)
    monkeypatch.setattr(base, "_gate", made)
    return made


def connected(path: Path) -> DatabaseWrapper:
    return DatabaseWrapper(
        {
            "ENGINE": "webapp.database.sqlite3",
            "NAME": path,
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
            "AUTOCOMMIT": True,
            "ATOMIC_REQUESTS": False,
            "CONN_MAX_AGE": 0,
            "CONN_HEALTH_CHECKS": False,
            "TIME_ZONE": None,
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "db.sqlite3")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE numbers (number)")
    return tmp_path / "db.sqlite3"


@pytest.fixture
def holder(path: Path) -> Iterator[sqlite3.Connection]:
    """Another process that has the lock until it rolls back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def begin(path: Path) -> float:
    """Take the lock in this thread; return the seconds it took. OperationalError: refused."""
    connection = connected(path)
    started = time.monotonic()
    try:
        connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        connection.rollback()
        return time.monotonic() - started
    finally:
        connection.close()


def test_one_waits_and_the_next_is_refused_at_once(
    path: Path, holder: sqlite3.Connection, gate: base.Gate
) -> None:
    waited: list[float] = []
    first = threading.Thread(target=lambda: waited.append(begin(path)))
    first.start()
    wait_for(lambda: gate.first_ms == base.KNOWN_MS, seconds=30)
    started = time.monotonic()
    with pytest.raises(OperationalError, match="locked"):
        begin(path)
    assert time.monotonic() - started < 10, "not the minute of the one that may wait"
    holder.execute("ROLLBACK")
    first.join()
    assert len(waited) == 1
    assert begin(path) >= 0, "there is room to wait again"


def test_a_lock_that_is_held_for_a_moment_refuses_nobody(
    path: Path, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "FIRST_MS", 60_000)
    waited: list[float] = []
    threads = [threading.Thread(target=lambda: waited.append(begin(path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    holder.execute("ROLLBACK")
    for thread in threads:
        thread.join()
    assert len(waited) == 4


def test_a_statement_without_a_transaction_waits_for_the_first_step(path: Path) -> None:
    connection = connected(path)
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchone() == (60,)
    connection.close()


def test_a_note_waits_for_a_moment_and_leaves_the_patience_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connected(path)
    monkeypatch.setattr(passing_notes, "connection", connection)

    def patience() -> int:
        with connection.cursor() as cursor:
            return int(cursor.execute("PRAGMA busy_timeout").fetchone()[0])

    usual = patience()
    with little_patience():
        assert patience() == PATIENCE_MS
    assert patience() == usual
    connection.close()
