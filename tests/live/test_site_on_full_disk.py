"""The whole site on a small disk that fills up: it reads on, refuses writes in words, recovers."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.live.product import Product, children_of, new_product
from tests.live.visitor import Visitor
from tests.patience import wait_for
from tests.webapp.roles import Page

pytestmark = pytest.mark.slow

SURVEY = "student_id,Bedtime\n" + "".join(
    f"N{k},{'Early' if k % 2 else 'Late'}\n" for k in range(400)
)
_TOKEN = """
from webapp.accounts.models import User
from webapp.api.services import token_create
print(token_create(user=User.objects.get(username="bob"), name="t", may_change=True, days=1)[1])
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Product]:
    """The product on a disk of its own of 64 MB, in a namespace that goes away with it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(disk)]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no namespace in which a small disk may be mounted")
    product = new_product(tmp_path / "instance", METRICS_TOKEN="let-me-see", MIN_FREE_GB="0.002")
    token = product.run(_TOKEN).splitlines()[-1]
    product.launcher = (
        "unshare", "-rm", "sh", "-c",
        f'mount -t tmpfs -o size=64m none {disk} && cp -a {product.instance}/. {disk} && exec "$@"',
        "sh",
    )  # fmt: skip
    product.environment |= {"BETHE_HALL_INSTANCE": str(disk), "TMPDIR": str(disk)}
    product.seen_as = lambda pid: Path(f"/proc/{pid}/root{disk}")
    product.environment["TOKEN_OF_THE_TEST"] = token
    product.start()
    try:
        yield product
    finally:
        product.stop()


def fill(disk: Path) -> Path:
    """Take all room of a disk, to the last byte; return the file that took it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    return filler


def import_cohort(product: Product, name: str) -> requests.Response:
    return requests.post(
        f"{product.url}/api/v1/cohorts",
        data={"name": name},
        files={"file": ("s.csv", SURVEY)},
        headers={"Authorization": f"Bearer {product.environment['TOKEN_OF_THE_TEST']}"},
        timeout=60,
    )


def inside(product: Product, query: str) -> str:
    """Ask the database from within the namespace; return the first column."""
    assert product.process is not None
    path = Path(product.environment["BETHE_HALL_INSTANCE"], "bethe_hall.sqlite3")
    code = f"""import sqlite3
print(*(row[0] for row in sqlite3.connect({str(path)!r}, timeout=60).execute({query!r})))"""
    space = ["nsenter", "--target", str(product.process.pid), "--user", "--mount"]
    command = [*space, "--preserve-credentials", sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def numbers(product: Product) -> str:
    answer = requests.get(
        f"{product.url}/metrics", headers={"Authorization": "Bearer let-me-see"}, timeout=60
    )
    assert answer.status_code == 200, answer.text[:500]
    return answer.text


def test_the_site_reads_on_while_its_disk_is_full(small: Product) -> None:
    visitor = Visitor(small)
    assert import_cohort(small, "Before").status_code == 201
    before = visitor.pages()
    assert len(before) >= 15, before
    assert set(before.values()) == {200}
    web = small.pid_of("web")
    workers = children_of(web)

    filler = fill(small.instance)
    # Fresh addresses and all workers: every counter that there is takes a number.
    for _ in range(40):
        assert requests.get(f"{small.url}/healthz", timeout=30).status_code == 200
        assert requests.get(f"{small.url}/nothing/", timeout=30).status_code in (302, 404)
    ready = requests.get(f"{small.url}/readyz", timeout=30)
    assert (ready.status_code, ready.json()["room on disk"]) == (503, "not ready")
    # The page that makes a secret for a second factor writes it into the session.
    writes = {"/accounts/second-factor/": 507}
    full = visitor.pages()
    assert {path: full.get(path) for path in before} == before | writes
    assert "bethe_hall_request_seconds_count" in numbers(small)
    refused: Any = [import_cohort(small, f"Full {k}") for k in range(4)]
    for answer in refused:
        assert answer.status_code == 507, answer.text
        assert "disk is full" in answer.text
    token = visitor.token_of(visitor.get("/accounts/password/"))
    answer = visitor.post("/image-sets/new/", token | {"name": "A set", "foreground": "leaf"})
    assert answer.status_code == 507, answer.text[:500]
    assert Page(answer.text).says("disk is full")
    assert small.pid_of("web") == web
    assert children_of(web) == workers, "no web process was lost"
    log = (small.instance / "log" / "web.log").read_text(errors="replace")
    assert "SIGBUS" not in log, log[-2000:]

    os.unlink(filler)
    wait_for(lambda: import_cohort(small, "After").status_code == 201, logs=small.logs)
    assert inside(small, "SELECT name FROM cohorts_cohort ORDER BY name") == "After Before"
    assert inside(small, "PRAGMA integrity_check") == "ok"
    assert small.process is not None
    assert small.process.poll() is None
