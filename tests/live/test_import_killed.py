"""The web server is killed in the middle of an import: all students or none."""

import contextlib
import os
import signal
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tests.live.product import Product, children_of
from tests.patience import PATIENCE_SECONDS, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]

STUDENTS = 8_000
TOKEN = "a" * 32

_PREPARE = f"""
from django.test import Client
from webapp.accounts.models import User
from webapp.cohorts.services.drafts import draft_create
bob = User.objects.get(username="bob")
header = "student_id," + ",".join("Q%d" % q for q in range(30))
rows = ("N%d," % k + ",".join(str(1 + (k * q) % 5) for q in range(30)) for k in range({STUDENTS}))
data = "\\n".join([header, *rows]).encode()
draft = draft_create(user=bob, filename="large.csv", size=len(data), read=lambda: data)
client = Client()
client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
print(draft.pk, client.cookies["sessionid"].value)
"""


def send_import(product: Product, draft: str, session: str) -> None:
    """POST the confirmation; a server that dies in between is what the test is about."""
    data = urllib.parse.urlencode(
        {"name": "Large", "version": "1", "csrfmiddlewaretoken": TOKEN}
    ).encode()
    request = urllib.request.Request(
        f"{product.url}/cohorts/import/{draft}/confirm/",
        data=data,
        headers={"Cookie": f"sessionid={session}; csrftoken={TOKEN}"},
    )
    with contextlib.suppress(OSError, urllib.error.URLError):
        urllib.request.urlopen(request, timeout=120)


def kill_web_server(product: Product) -> None:
    """SIGKILL for the web server and its workers, as the kernel would."""
    parent = product.pid_of("web")
    for pid in [*children_of(parent), parent]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for_web(product: Product) -> None:
    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{product.url}/healthz", timeout=30) as answer:
                return answer.status == 200
        except OSError:
            return False

    wait_for(answers, logs=product.logs)


def counts(product: Product) -> tuple[int, int, int]:
    """Cohorts, students and drafts in the database."""
    tables = ("cohorts_cohort", "cohorts_student", "cohorts_draft")
    return tuple(product.rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"] for table in tables)


def test_no_half_cohort_when_the_web_server_is_killed(product: Product) -> None:
    draft, session = product.run(_PREPARE).split()
    interrupted = 0
    for delay in (0.15, 0.3, 0.6, 1.0):
        posting = threading.Thread(target=send_import, args=(product, draft, session))
        posting.start()
        time.sleep(delay)
        kill_web_server(product)
        posting.join(timeout=PATIENCE_SECONDS)
        wait_for_web(product)
        found = counts(product)
        assert found in ((0, 0, 1), (1, STUDENTS, 0)), f"half a cohort: {found}"
        interrupted += found == (0, 0, 1)
        if found[0]:
            break
    assert interrupted, "the import was always quicker than the kill"
    if counts(product)[0] == 0:
        send_import(product, draft, session)
    assert counts(product) == (1, STUDENTS, 0)
