"""A database of an earlier version, for tests of migrations.

An empty database reaches an earlier version by the migrations of that version, about 20 to 40. To
go back there from the newest version, and to return, all of them are applied twice.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import StateApps

MigrateTo = Callable[..., StateApps]


@contextmanager
def empty_database(folder: Path) -> Iterator[None]:
    """Make the default database an empty one of the same kind; a file of SQLite is in a folder."""
    usual = connections["default"]
    other = usual.copy()
    name = str(folder / "earlier.sqlite3")
    if usual.vendor != "sqlite":
        name = f"{usual.settings_dict['NAME']}_earlier"
        _execute(usual, f'CREATE DATABASE "{name}"')
    other.settings_dict["NAME"] = name
    connections["default"] = other
    try:
        yield
    finally:
        other.close()
        connections["default"] = usual
        if usual.vendor != "sqlite":
            _execute(usual, f'DROP DATABASE "{name}"')


def migrate_default_to(*versions: tuple[str, str]) -> StateApps:
    """Migrate the default database to the versions of applications; return their models."""
    MigrationExecutor(connection).migrate(list(versions))
    loader = MigrationLoader(connection)
    return loader.project_state(list(loader.applied_migrations)).apps


def _execute(database: BaseDatabaseWrapper, sql: str) -> None:
    with database._nodb_cursor() as cursor:
        cursor.execute(sql)
