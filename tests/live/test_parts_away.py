"""Parts that go away for some seconds: pages say so, jobs wait and go on, the sums are right."""

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import psycopg
import pytest

from tests.live.product import Product, new_product
from tests.live.test_backup_elsewhere import postgres
from tests.patience import wait_for
from tests.webapp.files.store.servers import object_store

STEPS, PAUSE = 30, 0.1
_START = f"""
from django.test import Client
from webapp.accounts.models import User
from webapp.jobs.services import job_enqueue
bob = User.objects.get(username="bob")
client = Client()
client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
values = {{"steps": {STEPS}, "seconds_a_step": {PAUSE}}}
job_enqueue(user=bob, kind="counting.sum", parameters=values, seed=7)
print(client.cookies["sessionid"].value)
"""
_WRITE = """
from webapp.accounts.models import User
from webapp.jobs.services import job_enqueue
bob = User.objects.get(username="bob")
job_enqueue(user=bob, kind="counting.file", parameters={{"after": "{after}"}}, seed=7)
"""
EXPECTED = sum(np.random.default_rng(7).random(STEPS))


class Server:
    """A PostgreSQL of the test's own, which it may stop and start."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.folder = Path(unquote(urlsplit(url).netloc.rpartition("@")[2]))

    def stop(self) -> None:
        self._control("-m", "fast", "stop")

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._control("-l", str(self.folder / "server.log"), "-o", options, "start")

    def row(self, query: str) -> Any:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query).fetchone()

    def _control(self, *words: str) -> None:
        data = self.folder / "data"
        owner = data.stat()
        program = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))[-1]
        root = os.geteuid() == 0
        subprocess.run(
            [str(program), "-D", str(data), "-w", *words],
            check=True,
            capture_output=True,
            cwd=self.folder,
            user=owner.st_uid if root else None,
            group=owner.st_gid if root else None,
            extra_groups=[] if root else None,
        )


@pytest.fixture
def database() -> Iterator[Server]:
    with postgres() as url:
        yield Server(url)


def job_that(product: Product, condition: str) -> Any:
    """Wait for a job of which something is true."""
    query = f"SELECT * FROM jobs_job WHERE {condition}"
    return wait_for(lambda: product.rows(query), logs=product.logs)[0]


def ask(url: str, session: str) -> tuple[int, str, Any]:
    """Return status, page and headers."""
    request = urllib.request.Request(url, headers={"Cookie": f"sessionid={session}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


@pytest.mark.slow
def test_a_database_that_is_stopped_and_started_again(database: Server, tmp_path: Path) -> None:
    product = new_product(
        tmp_path, DATABASE_URL=database.url, DJANGO_SETTINGS_MODULE="tests.webapp.live_settings"
    )
    product.start()
    try:
        session = product.run(_START).splitlines()[-1]
        page = f"{product.url}/jobs/"
        assert ask(page, session)[0] == 200
        begun = "SELECT max(iteration) FROM jobs_jobtracepoint"
        wait_for(lambda: (database.row(begun)[0] or 0) >= 3, logs=product.logs)
        database.stop()
        status, text, headers = ask(page, session)
        assert status == 503
        assert "The database does not answer" in text
        assert int(headers["Retry-After"]) > 0
        time.sleep(2 * PAUSE * STEPS / 3)  # in which the job wants to write
        database.start()
        over = "SELECT state, result, error FROM jobs_job WHERE state NOT IN ('queued', 'running')"
        ended = wait_for(lambda: database.row(over), logs=product.logs)
        assert ended[0] == "succeeded", ended
        assert ended[1]["total"] == pytest.approx(EXPECTED, abs=1e-12)
        assert database.row("SELECT count(*) FROM audit_auditline WHERE verb = 'finished'") == (1,)
        assert ask(page, session)[0] == 200
    finally:
        product.stop()


@pytest.mark.slow
def test_an_object_store_that_is_away_when_a_job_wants_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with object_store() as (bucket, road):
        product = new_product(
            tmp_path, STORE_URL=bucket, DJANGO_SETTINGS_MODULE="tests.webapp.live_settings"
        )
        product.start()
        try:
            product.run(_WRITE.format(after=tmp_path / "written-now"))
            job_that(product, "state = 'running'")
            road.is_away = True
            (tmp_path / "written-now").touch()
            job_that(product, "sentence LIKE 'The store of files does not answer%'")
            road.is_away = False
            ended = job_that(product, "finished_at IS NOT NULL")
            assert (ended["state"], ended["attempt"]) == ("succeeded", 1), dict(ended)
            assert "written whole" in ended["result"]
        finally:
            product.stop()
