"""Backup of database and files at one moment, taken while people work, and its restore.

While the writers of the database wait, a snapshot of its rows is taken and the files get second
names in a folder of the backup's own. Every file is written whole and renamed, so a file with a
second name never changes, and rows that name it are committed after it. Then writers continue,
while the rows of the snapshot are copied and the files are packed. The backup is one tar file:
``backup.json``, ``database``, ``secret_key``, ``media/``.
"""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone

from engine.core.whole_file import whole_file
from webapp.common.errors import Refusal
from webapp.common.models import Installation
from webapp.database.full_disk import is_full_disk, require_room
from webapp.files import store
from webapp.files.store.protocol import MARK, UNFINISHED_SECONDS
from webapp.version import code_version

FORMAT = 1
_FOLDER = ".backup-"  # characters; beside the files, so that these can have second names in it
Report = Callable[[str, float | None], None]


class BackupError(Refusal):
    """Error of a backup that cannot be made or restored; one sentence gives the reason."""


def _say_nothing(sentence: str, fraction: float | None) -> None:
    pass


def backup_write(target: Path, on_progress: Report = _say_nothing) -> dict[str, Any]:
    """Write a backup of this installation to a new tar file; return its notes.

    ``on_progress`` gets a sentence and the fraction that is done, and may raise to stop.

    Raises
    ------
    BackupError
        If the file is there already, the disk is full, or the database's own tool is absent or
        fails.
    """
    if target.exists():
        raise BackupError(f"{target} is there already. Name another file.")
    try:
        return _write(target, on_progress)
    except (OSError, sqlite3.Error, DatabaseError) as error:
        if is_full_disk(error):
            raise BackupError(
                "The server's disk is full. No backup was made; earlier ones are whole."
            ) from error
        raise


def _write(target: Path, on_progress: Report) -> dict[str, Any]:
    on_progress("Copying the database", None)
    Path(settings.MEDIA_ROOT).mkdir(mode=0o700, parents=True, exist_ok=True)
    require_room(Path(settings.MEDIA_ROOT))
    with tempfile.TemporaryDirectory(dir=settings.MEDIA_ROOT, prefix=_FOLDER) as name:
        folder = Path(name)
        with contextlib.ExitStack() as held:
            with _writers_waiting():
                copy_database = held.enter_context(_snapshot())
                to_copy = held.enter_context(store.hold(folder / "media"))
            copy_database(folder / "database")
            for number, path in enumerate(to_copy):
                on_progress(_of("fetched", number, len(to_copy)), number / len(to_copy) / 2)
                _copy_stored(path, folder / "media")
        n_files = sum(len(names) for _, _, names in os.walk(folder / "media"))
        notes = {
            "format": FORMAT,
            "code_version": code_version(),
            "engine": connection.vendor,
            "files": n_files,
        }
        (folder / "backup.json").write_text(json.dumps(notes), encoding="utf-8")
        secret = Path(settings.INSTANCE_DIR) / "secret_key"
        if secret.exists():
            shutil.copy2(secret, folder / "secret_key")
        target.absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(target.absolute()) as file, tarfile.open(fileobj=file, mode="w") as tar:
            _pack(tar, folder, n_files, on_progress, done=0.5 if to_copy else 0.0)
    Installation.objects.filter(pk=1).update(backed_up_at=timezone.now())
    return notes


def _pack(
    tar: tarfile.TarFile, folder: Path, n_files: int, on_progress: Report, *, done: float
) -> None:
    packed = 0

    def count(member: tarfile.TarInfo) -> tarfile.TarInfo:
        nonlocal packed
        fraction = done + (1 - done) * min(packed / max(n_files, 1), 1.0)
        on_progress(_of("packed", min(packed, n_files), n_files), fraction)
        packed += member.isfile()
        return member

    for entry in sorted(folder.iterdir()):
        tar.add(entry, entry.name, filter=count)


def _of(verb: str, number: int, total: int) -> str:
    return f"{number:,} of {total:,} files {verb}"


def backups_tidy() -> int:
    """Remove folders of backups that were killed a day ago; return their number."""
    before, removed = time.time() - UNFINISHED_SECONDS, 0
    for folder in Path(settings.MEDIA_ROOT).glob(f"{_FOLDER}*"):
        with contextlib.suppress(FileNotFoundError):
            if folder.stat().st_mtime < before:
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed


def backup_restore(source: Path) -> dict[str, Any]:
    """Restore a backup into an empty installation, and migrate it to this version's tables.

    Raises
    ------
    BackupError
        If the installation is not empty, or the file is no backup of this kind of database.
    """
    _check_empty()
    Path(settings.INSTANCE_DIR).mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.INSTANCE_DIR, prefix="restore-") as name:
        folder = Path(name)
        notes = _unpack(source, folder)
        _read_database(folder / "database")
        connections.close_all()
        call_command("migrate", interactive=False, verbosity=0)
        for row in Installation.objects.all():  # a store without its mark accepts no files
            store.store().write_mark(row.store_mark)
        _store_files(folder / "media")
        if (folder / "secret_key").exists():
            os.replace(folder / "secret_key", Path(settings.INSTANCE_DIR) / "secret_key")
    return notes


def _unpack(source: Path, folder: Path) -> dict[str, Any]:
    try:
        with tarfile.open(source) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder, members=_inside(tar))  # noqa: S202
        notes: dict[str, Any] = json.loads((folder / "backup.json").read_text(encoding="utf-8"))
    except (OSError, tarfile.TarError, ValueError, EOFError) as error:
        raise BackupError(f"{source} is no whole backup. Nothing was changed.") from error
    if notes.get("format") != FORMAT or notes.get("engine") != connection.vendor:
        raise BackupError(
            f"{source} is of a {notes.get('engine')} database, and this installation uses "
            f"{connection.vendor}. Nothing was changed."
        )
    (folder / "media").mkdir(exist_ok=True)
    return notes


def _inside(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the files and folders of a backup, each inside its folder, and nothing else.

    Filters of tarfile do the same, but Python 3.11.2, which Debian 12 has, knows none.
    """
    for member in tar:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
            raise tarfile.TarError(f"{member.name} would not stay in its folder")
        yield member


def _check_empty() -> None:
    """Refuse to overwrite existing data."""
    present = set(connection.introspection.table_names())
    for model in (apps.get_model("accounts.Organisation"), apps.get_model("accounts.User")):
        if model._meta.db_table in present and model._default_manager.exists():
            raise BackupError("This installation has people. Restore into an empty one.")
    if any(file.path.name != MARK for file in store.files(Path(settings.MEDIA_ROOT))):
        raise BackupError("This installation has files. Restore into an empty one.")


@contextmanager
def _writers_waiting() -> Iterator[None]:
    """Make all writers wait until the end of the block."""
    with transaction.atomic():  # on SQLite it begins IMMEDIATE: it takes the one lock of writers
        if connection.vendor == "postgresql":
            names = map(connection.ops.quote_name, connection.introspection.table_names())
            with connection.cursor() as cursor:
                cursor.execute(f"LOCK TABLE {', '.join(names)} IN SHARE MODE")
        yield


@contextmanager
def _snapshot() -> Iterator[Callable[[Path], None]]:
    """Yield the function that copies the rows of this moment, even if others write in the block."""
    take = _snapshot_sqlite if connection.vendor == "sqlite" else _snapshot_postgresql
    with take() as copy:
        yield copy


@contextmanager
def _snapshot_sqlite() -> Iterator[Callable[[Path], None]]:
    """Take a snapshot of SQLite by a connection of its own, which reads the state at its start."""
    path = f"file:{connection.settings_dict['NAME']}?mode=ro"
    source = sqlite3.connect(path, uri=True, isolation_level=None)
    try:
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # the snapshot begins here
        yield partial(_copy_sqlite, source)
    finally:
        source.close()


def _copy_sqlite(source: sqlite3.Connection, path: Path) -> None:
    target = sqlite3.connect(path)
    try:
        source.backup(target)
    finally:
        target.close()
    path.chmod(0o600)


@contextmanager
def _snapshot_postgresql() -> Iterator[Callable[[Path], None]]:
    """Take a snapshot of PostgreSQL by an open transaction that exports it to ``pg_dump``."""
    own = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_export_snapshot()")
            (name,) = cursor.fetchone()
        yield partial(_dump_postgresql, name)
    finally:
        own.close()


def _dump_postgresql(snapshot: str, path: Path) -> None:
    options = ["--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={path}"]
    _run_tool("pg_dump", [*options, "--dbname", _database_address()])
    path.chmod(0o600)


def _read_database(path: Path) -> None:
    if connection.vendor == "postgresql":
        options = ["--clean", "--if-exists", "--no-owner", "--exit-on-error"]
        _run_tool("pg_restore", [*options, "--dbname", _database_address(), str(path)])
        return
    connections.close_all()
    source = sqlite3.connect(path)
    target = sqlite3.connect(connection.settings_dict["NAME"])
    try:
        source.backup(target)
        target.execute("PRAGMA journal_mode=WAL")
    finally:
        source.close()
        target.close()


def _run_tool(name: str, arguments: list[str]) -> None:
    program = shutil.which(name)
    if program is None:
        raise BackupError(f"{name} is absent; it comes with PostgreSQL's client package.")
    environment = {**os.environ, "PGPASSWORD": connection.settings_dict["PASSWORD"] or ""}
    done = subprocess.run(  # noqa: S603 - PostgreSQL's own tool
        [program, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BackupError(f"{name} failed: {done.stderr.strip().splitlines()[-1]}")


def _database_address() -> str:
    """Return the connection in libpq's format; the password is in the environment instead."""
    names = {"NAME": "dbname", "USER": "user", "HOST": "host", "PORT": "port"}
    given = {word: connection.settings_dict.get(name) for name, word in names.items()}
    return " ".join(f"{word}='{value}'" for word, value in given.items() if value)


def _copy_stored(path: Path, target: Path) -> None:
    """Fetch a file of an object store into the backup; a file without a row may be gone by now."""
    with contextlib.suppress(FileNotFoundError):
        copy = target / path.relative_to(settings.MEDIA_ROOT)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.link(store.get(path), copy)


def _store_files(source: Path) -> None:
    """Put the files of a backup into the store."""
    for name, _, files in os.walk(source):
        folder = Path(settings.MEDIA_ROOT) / Path(name).relative_to(source)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in set(files) - {MARK}:
            shutil.move(Path(name, file), folder / file)
            store.put(folder / file)
