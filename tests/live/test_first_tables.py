"""The tables of an empty database are those that all migrations would make, one after the other."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live.commands import run_command
from tests.live.product import environment_of
from tests.live.test_backup_elsewhere import postgres

WAYS = {"at once": [], "one by one": ["--one-by-one"]}
_ROWS = """
import json
from django.db import connection
with connection.cursor() as cursor:
    counts = {}
    for table in connection.introspection.table_names(cursor):
        cursor.execute(f'SELECT COUNT(*) FROM "{table}"')
        counts[table] = cursor.fetchone()[0]
print(json.dumps(counts))
"""


@pytest.mark.slow
@pytest.mark.parametrize("vendor", ["SQLite", "PostgreSQL"])
def test_tables_made_at_once_are_those_of_all_migrations(vendor: str, tmp_path: Path) -> None:
    described, rows = {}, {}
    with ExitStack() as servers:
        for way, options in WAYS.items():
            instance = tmp_path / way
            instance.mkdir()
            environment = environment_of(instance)
            if vendor == "PostgreSQL":
                environment["DATABASE_URL"] = servers.enter_context(postgres())
            said = manage(environment, "migrate", *options)
            assert ("Making the tables" in said) == (way == "at once")
            rows[way] = json.loads(
                manage(environment, "shell", "--no-imports", "-c", _ROWS).splitlines()[-1]
            )
            described[way] = (
                tables_of_postgresql(environment["DATABASE_URL"])
                if vendor == "PostgreSQL"
                else tables_of_sqlite(instance / "bethe_hall.sqlite3")
            )
            again = manage(environment, "migrate")
            assert "No migrations to apply." in again
            assert "Making the tables" not in again
    assert len(described["at once"]) > 400
    assert described["at once"] == described["one by one"]
    assert rows["at once"] == rows["one by one"]
    filled = {name for name, count in rows["at once"].items() if count}
    assert filled == {"auth_permission", "django_content_type", "django_migrations"}


def manage(environment: Mapping[str, str], *arguments: str) -> str:
    """Run a command in this installation; return what it printed."""
    done = run_command(arguments, environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables_of_sqlite(path: Path) -> dict[str, object]:
    """Return the definitions of tables and indexes; columns in the order of their names."""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return {
        f"{kind} {name}": sorted(parts_of(sql)) if kind == "table" else sql
        for kind, name, sql in rows
    }


def parts_of(sql: str) -> list[str]:
    """Return what stands between the outer brackets of CREATE TABLE, parted at its commas."""
    inner = sql[sql.index("(") + 1 : sql.rindex(")")]
    parts, depth = [""], 0
    for letter in inner:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def tables_of_postgresql(url: str) -> list[str]:
    """Return the lines of a dump of the tables without rows, each with its table.

    Without the names that PostgreSQL gives to rules of single columns, which nothing reads, and
    without one of Django's: the key of groups and permissions, which nothing uses.
    """
    dump = subprocess.run(
        ["pg_dump", "--schema-only", "--no-owner", url], check=True, capture_output=True, text=True
    )
    table, found = "", []
    for line in dump.stdout.splitlines():
        if match := re.match(r"(?:CREATE|ALTER) TABLE (?:ONLY )?public\.(\w+)", line):
            table = match[1]
        if line and not re.match(r"--|\\", line):
            text = re.sub(r"CONSTRAINT \w+ UNIQUE", "UNIQUE", line.strip().rstrip(","))
            found.append(f"{table}: {text}")
    keys = {f"auth_group_permissions: id {kind} NOT NULL" for kind in ("integer", "bigint")}
    return sorted(set(found) - keys)
