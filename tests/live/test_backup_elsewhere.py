"""Backup and restore on PostgreSQL, with files in an object store: rows and files, compared."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.live.product import ROOT, Product, new_product
from tests.webapp.files.store.servers import object_store

_FILL = """
from webapp.accounts.models import User
from webapp.cohorts.services.imports import draft_import
from webapp.cohorts.services.drafts import draft_create
from webapp.files import store
store.check()
bob = User.objects.get(username="bob")
data = ("student_id,Bedtime\\n" + "".join(f"N{k},{'Early' if k % 2 else 'Late'}\\n"
        for k in range(40))).encode()
draft = draft_create(user=bob, filename="s.csv", size=len(data), read=lambda: data)
draft_import(user=bob, draft=draft, name="Whole", version=draft.version)
draft_create(user=bob, filename="t.csv", size=len(data), read=lambda: data)
"""

_STATE = """
import hashlib, json
from django.apps import apps
from webapp.files import store
store.check()
files = {}
for file in store.files(store.store().root):
    path = store.get(file.path)
    name = str(path.relative_to(store.store().root))
    files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
rows = {}
for model in apps.get_models():
    if model._meta.model_name != "installation":  # when it was backed up
        values = model.objects.values()
        rows[model._meta.label] = sorted(repr(sorted(row.items())) for row in values)
files.pop(".store", None)
print(json.dumps([files, rows]))
"""


# In the place of pg_dump: somebody deletes and renames, waiting for no lock, and then the
# real one dumps.
_MEANWHILE = """#!/bin/sh
psql "$DATABASE_URL" -qv ON_ERROR_STOP=1 -c "SET lock_timeout = '1s'" \\
  -c "DELETE FROM cohorts_draft" -c "UPDATE cohorts_cohort SET name = 'Later'" >&2 || exit 1
exec {pg_dump} "$@"
"""


@contextmanager
def postgres() -> Iterator[str]:
    """A server of its own; its address as DATABASE_URL."""
    process = subprocess.Popen(
        ["bin/with-postgres", "sh", "-c", 'echo "$DATABASE_URL"; read -r _'],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            pytest.skip(process.stderr.read().strip() if process.stderr else "no PostgreSQL")
        yield url
    finally:
        if process.poll() is None:
            process.stdin.write("\n")
            process.stdin.close()
        process.wait(60)


@pytest.mark.slow
def test_rows_and_files_come_back_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with ExitStack() as servers:
        first, second = (servers.enter_context(postgres()) for _ in "ab")
        bucket, _ = servers.enter_context(object_store())
        product = new_product(tmp_path / "one", DATABASE_URL=first, STORE_URL=bucket)
        product.run(_FILL)
        before = product.run(_STATE)
        assert "drafts/" in before
        backup = tmp_path / "hall.tar"
        product.manage("backup", str(backup))
        elsewhere = {
            **product.environment,
            "DATABASE_URL": second,
            "STORE_URL": bucket.replace("/files", "/other"),
            "BETHE_HALL_INSTANCE": str(tmp_path / "two"),
        }
        copy = Product(tmp_path / "two", 0, elsewhere)
        copy.manage("restore", str(backup))
        assert copy.run(_STATE) == before
        with pytest.raises(AssertionError, match="This installation has people"):
            copy.manage("restore", str(backup))


@pytest.mark.slow
def test_who_writes_does_not_wait_for_the_dump(tmp_path: Path) -> None:
    """Writers waited until pg_dump was through, which takes minutes where there is much."""
    with ExitStack() as servers:
        first, second = (servers.enter_context(postgres()) for _ in "ab")
        product = new_product(tmp_path / "one", DATABASE_URL=first)
        product.run(_FILL)
        before = product.run(_STATE)
        tools = tmp_path / "tools"
        tools.mkdir()
        (tools / "pg_dump").write_text(_MEANWHILE.format(pg_dump=shutil.which("pg_dump")))
        (tools / "pg_dump").chmod(0o755)
        product.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
        product.manage("backup", str(tmp_path / "hall.tar"))
        assert "Later" in product.run(_STATE)
        elsewhere = {
            **product.environment,
            "DATABASE_URL": second,
            "BETHE_HALL_INSTANCE": str(tmp_path / "two"),
        }
        (tmp_path / "two").mkdir()
        copy = Product(tmp_path / "two", 0, elsewhere)
        copy.manage("restore", str(tmp_path / "hall.tar"))
        assert copy.run(_STATE) == before
