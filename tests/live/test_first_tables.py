"""The tables of an empty database are those that all migrations would make, one after the other."""

import re
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.live.commands import run_command
from tests.live.product import environment_of
from tests.live.test_backup_elsewhere import postgres

WAYS = {"at once": [], "one by one": ["--one-by-one"]}


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
            if vendor == "PostgreSQL":
                described[way] = tables_of_postgresql(environment["DATABASE_URL"])
                with psycopg.connect(environment["DATABASE_URL"]) as database:
                    named = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
                    rows[way] = counts_of(database.execute, named)
            else:
                path = instance / "bethe_hall.sqlite3"
                described[way] = tables_of_sqlite(path)
                with sqlite3.connect(path) as database:
                    named = "SELECT name FROM sqlite_master WHERE type = 'table'"
                    rows[way] = counts_of(database.execute, named)
                    rows[way].pop("sqlite_sequence", None)
            if way == "at once":
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


def counts_of(execute: Callable[[str], Any], named: str) -> dict[str, int]:
    """Return the number of rows of every table that the query ``named`` lists."""
    tables = [name for (name,) in execute(named).fetchall()]
    return {name: execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for name in tables}


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
