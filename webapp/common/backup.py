"""A copy of database and files of one moment, taken while people work, and bringing it back.

While the writers of the database wait, its rows are copied and the files get second names in a
folder of the backup's own: every file is written whole and renamed, so that one with a second name
never changes, and rows that name it are committed after it. People read meanwhile; who writes waits
for the copy of the rows, not for that of the files, which are packed after that. The backup is one
tar file: ``backup.json``, ``database``, ``secret_key``, ``media/``.
"""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.utils import timezone

from engine import whole_file
from webapp.common.errors import Refusal
from webapp.common.models import Installation
from webapp.common.version import code_version
from webapp.files import store
from webapp.files.store.protocol import MARK

FORMAT = 1


class BackupError(Refusal):
    """A backup cannot be made or brought back; one sentence says why."""


def backup_write(target: Path) -> dict[str, Any]:
    """Write a backup of this installation to a new tar file; return what it notes of itself.

    Raises
    ------
    BackupError
        If the file is there already, or the database's own tool is absent or fails.
    """
    if target.exists():
        raise BackupError(f"{target} is there already. Name another file.")
    Path(settings.MEDIA_ROOT).mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.MEDIA_ROOT, prefix=".backup-") as name:
        folder = Path(name)
        with contextlib.ExitStack() as held:
            with _one_moment() as copy_database:
                to_copy = held.enter_context(store.hold(folder / "media"))
                copy_database(folder / "database")
            for path in to_copy:
                _copy_stored(path, folder / "media")
        notes = {
            "format": FORMAT,
            "code_version": code_version(),
            "engine": connection.vendor,
            "files": sum(len(names) for _, _, names in os.walk(folder / "media")),
        }
        (folder / "backup.json").write_text(json.dumps(notes), encoding="utf-8")
        secret = Path(settings.INSTANCE_DIR) / "secret_key"
        if secret.exists():
            shutil.copy2(secret, folder / "secret_key")
        with whole_file(target.absolute()) as file, tarfile.open(fileobj=file, mode="w") as tar:
            for entry in sorted(folder.iterdir()):
                tar.add(entry, entry.name)
    Installation.objects.filter(pk=1).update(backed_up_at=timezone.now())
    return notes


def backup_restore(source: Path) -> dict[str, Any]:
    """Bring a backup back into an empty installation, and up to this version's tables.

    Raises
    ------
    BackupError
        If the installation is not empty, or the file is no backup of this kind of database.
    """
    _check_empty()
    with tempfile.TemporaryDirectory(dir=settings.INSTANCE_DIR, prefix="restore-") as name:
        folder = Path(name)
        notes = _unpack(source, folder)
        _read_database(folder / "database")
        _store_files(folder / "media")
        if (folder / "secret_key").exists():
            os.replace(folder / "secret_key", Path(settings.INSTANCE_DIR) / "secret_key")
    connections.close_all()
    call_command("migrate", interactive=False, verbosity=0)
    for row in Installation.objects.all():
        store.store().write_mark(row.store_mark)
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
    """Yield files and folders, which is all that a backup holds, each inside its folder.

    Filters of tarfile do the same, but Python 3.11.2, which Debian 12 has, knows none.
    """
    for member in tar:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
            raise tarfile.TarError(f"{member.name} would not stay in its folder")
        yield member


def _check_empty() -> None:
    """Refuse to write over anybody's data."""
    present = set(connection.introspection.table_names())
    for model in (apps.get_model("accounts.Organisation"), apps.get_model("accounts.User")):
        if model._meta.db_table in present and model._default_manager.exists():
            raise BackupError("This installation has people. Restore into an empty one.")
    if any(file.path.name != MARK for file in store.files(Path(settings.MEDIA_ROOT))):
        raise BackupError("This installation has files. Restore into an empty one.")


@contextmanager
def _one_moment() -> Iterator[Any]:
    """Hold all writers; yields the function that copies the database to a path."""
    if connection.vendor == "sqlite":
        with transaction.atomic():  # begins IMMEDIATE: takes the one lock of writers
            yield _copy_sqlite
        return
    tables = map(connection.ops.quote_name, connection.introspection.table_names())
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE MODE")
        yield _dump_postgresql


def _copy_sqlite(path: Path) -> None:
    """Copy now: a connection of its own reads while ours keeps writers away."""
    source = sqlite3.connect(f"file:{connection.settings_dict['NAME']}?mode=ro", uri=True)
    target = sqlite3.connect(path)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    path.chmod(0o600)


def _dump_postgresql(path: Path) -> None:
    options = ["--format=custom", "--no-owner", f"--file={path}"]
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
    """The connection in libpq's words, without the password, which the environment carries."""
    names = {"NAME": "dbname", "USER": "user", "HOST": "host", "PORT": "port"}
    given = {word: connection.settings_dict.get(name) for name, word in names.items()}
    return " ".join(f"{word}='{value}'" for word, value in given.items() if value)


def _copy_stored(path: Path, target: Path) -> None:
    """Fetch a file of an object store into the backup; one of no row may be gone by now."""
    with contextlib.suppress(FileNotFoundError):
        copy = target / path.relative_to(settings.MEDIA_ROOT)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.link(store.get(path), copy)


def _store_files(source: Path) -> None:
    """Bring the files of a backup to where the store has them."""
    for name, _, files in os.walk(source):
        folder = Path(settings.MEDIA_ROOT) / Path(name).relative_to(source)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in set(files) - {MARK}:
            shutil.move(Path(name, file), folder / file)
            store.put(folder / file)
