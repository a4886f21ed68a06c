"""A backup taken while the product works, brought back elsewhere, is the product of one moment."""

import hashlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.product import ROOT, Product
from tests.patience import PATIENCE_SECONDS

# Writes a file, then the row that names it, over and over, as imports and jobs do.
_WRITER = """
import time, uuid
from webapp.accounts.models import Organisation, User
from webapp.cohorts.services.imports import draft_import
from webapp.cohorts.services.drafts import draft_create
bob = User.objects.get(username="bob")
lines = ["student_id,Bedtime,Smokes"]
lines += [f"N{k},{('Early', 'Late')[k % 2]},{('Yes', 'No')[k // 2 % 2]}" for k in range(40)]
data = "\\n".join(lines).encode()
while True:
    draft_create(user=bob, filename="s.csv", size=len(data), read=lambda: data)
    draft = draft_create(user=bob, filename="s.csv", size=len(data), read=lambda: data)
    draft_import(user=bob, draft=draft, name=f"Cohort {uuid.uuid4()}", version=draft.version)
"""


@pytest.fixture
def writer(product: Product) -> Iterator[subprocess.Popen[bytes]]:
    """A process that keeps writing rows and files."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", _WRITER],
        cwd=ROOT,
        env=product.environment,
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and not product.rows("SELECT 1 FROM cohorts_cohort LIMIT 1"):
        time.sleep(0.1)
    yield process
    process.kill()
    process.wait()


# A backup in which somebody writes, waiting for no lock, before the rows are copied.
_WRITE_MEANWHILE = """
import sqlite3, sys
from pathlib import Path
from webapp.operations import backup
copy = backup._copy_sqlite
def write_and_copy(source, path):
    with sqlite3.connect("{database}", timeout=0) as other:
        other.execute("UPDATE accounts_user SET first_name = 'Later'")
    copy(source, path)
backup._copy_sqlite = write_and_copy
backup.backup_write(Path("{target}"))
"""


def rows_of(path: Path) -> dict[str, list[str]]:
    """Every row of every table, in an order of its own."""
    with sqlite3.connect(path) as database:
        names = [
            row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        return {
            name: sorted(map(repr, database.execute(f'SELECT * FROM "{name}"'))) for name in names
        }


def files_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def restored(product: Product, backup: Path, instance: Path) -> Product:
    """A new installation into which the backup was brought back."""
    environment = {**product.environment, "BETHE_HALL_INSTANCE": str(instance)}
    copy = Product(instance=instance, port=0, environment=environment)
    copy.manage("restore", str(backup))
    return copy


@pytest.mark.slow
def test_it_brings_back_database_and_files_of_one_moment(
    product: Product, writer: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    first, second = tmp_path / "busy.tar", tmp_path / "again.tar"
    product.manage("backup", str(first))
    assert writer.poll() is None, "people went on meanwhile"
    assert first.stat().st_mode & 0o077 == 0
    copy = restored(product, first, tmp_path / "copy")
    database = copy.instance / "bethe_hall.sqlite3"
    with sqlite3.connect(database) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        drafts = {row[0] for row in opened.execute("SELECT uuid FROM cohorts_draft")}
    # Every row has its file.
    kept = {path.stem.replace("-", "") for path in copy.instance.rglob("drafts/*.json")}
    assert drafts
    assert drafts <= kept
    # What was brought back can be backed up and brought back again, byte for byte.
    before = rows_of(database)
    copy.manage("backup", str(second))
    twin = restored(product, second, tmp_path / "twin")
    assert rows_of(twin.instance / "bethe_hall.sqlite3") == before
    assert files_of(twin.instance / "media") == files_of(copy.instance / "media")
    key = (product.instance / "secret_key").read_text()
    assert (twin.instance / "secret_key").read_text() == key
    assert not [path for path in os.listdir(copy.instance) if path.startswith("backup-")]


@pytest.mark.slow
def test_who_writes_does_not_wait_for_the_copy(product: Product, tmp_path: Path) -> None:
    database, target = product.instance / "bethe_hall.sqlite3", tmp_path / "backup.tar"
    product.run(_WRITE_MEANWHILE.format(database=database, target=target))
    copy = restored(product, target, tmp_path / "copy")
    names = "SELECT DISTINCT first_name FROM accounts_user"
    assert [row[0] for row in product.rows(names)] == ["Later"]
    assert [row[0] for row in copy.rows(names)] == [""]


@pytest.mark.slow
def test_it_is_never_brought_back_over_anybodys_data(product: Product, tmp_path: Path) -> None:
    backup = tmp_path / "backup.tar"
    product.manage("backup", str(backup))
    with pytest.raises(AssertionError, match="This installation has people"):
        product.manage("restore", str(backup))
    with pytest.raises(AssertionError, match="is there already"):
        product.manage("backup", str(backup))
    cut = tmp_path / "cut.tar"
    cut.write_bytes(backup.read_bytes()[:5000])
    with pytest.raises(AssertionError, match="is no whole backup"):
        restored(product, cut, tmp_path / "other")
