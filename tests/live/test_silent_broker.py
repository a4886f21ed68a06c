"""A broker that accepts connections and never answers: clicks are taken, and nobody waits."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.live.product import Product
from tests.live.visitor import Visitor
from tests.patience import busyness, wait_for

pytestmark = pytest.mark.slow

CLICKS = 18  # as many as threads serve pages, and more
AT_ONCE = 6.0  # seconds, on an idle machine; without time limits it is for ever
FORM = {"steps": "3"}
_TOKEN = """
from webapp.accounts.models import User
from webapp.api.services import token_create
print(token_create(user=User.objects.get(username="bob"), name="t", may_change=True, days=1)[1])
"""


@pytest.fixture
def broker(product: Product) -> Iterator[int]:
    """The process of the broker, which goes on after the test."""
    pid = product.pid_of("broker")
    yield pid
    os.kill(pid, signal.SIGCONT)


def test_clicks_are_taken_while_the_broker_is_silent(product: Product, broker: int) -> None:
    visitor = Visitor(product)
    forms = [FORM | visitor.token_of(visitor.get("/counting/")) for _ in range(CLICKS)]
    program = {"Authorization": f"Bearer {product.run(_TOKEN).splitlines()[-1]}"}
    limit = AT_ONCE * busyness()
    before = product.rows("SELECT count(*) FROM jobs_job")[0][0]

    os.kill(broker, signal.SIGSTOP)

    def click(form: dict[str, str]) -> tuple[int, float, str]:
        started = time.monotonic()
        answer = visitor.post("/counting/", form, timeout=limit, allow_redirects=False)
        return answer.status_code, time.monotonic() - started, answer.headers["Location"]

    with ThreadPoolExecutor(CLICKS) as threads:
        clicks = list(threads.map(click, forms))
        assert [status for status, _, _ in clicks] == [302] * CLICKS
        again = list(threads.map(click, forms))  # impatient people send their forms again
    assert [leads for _, _, leads in again] == [leads for _, _, leads in clicks]
    ready = requests.get(f"{product.url}/readyz", timeout=limit)
    assert ready.status_code == 503
    parts = {name for name, word in ready.json().items() if word != "ok"}
    assert parts == {"broker", "worker"}
    for path in ("/", "/jobs/", "/cohorts/", "/healthz"):
        assert visitor.get(path, timeout=limit).status_code == 200
    for _ in range(3):
        answer = requests.get(f"{product.url}/api/v1/jobs", headers=program, timeout=limit)
        assert answer.status_code == 200

    os.kill(broker, signal.SIGCONT)
    count = "SELECT count(*) FROM jobs_job WHERE state = 'succeeded'"
    wait_for(lambda: product.rows(count)[0][0] == before + CLICKS, logs=product.logs)
    assert product.rows("SELECT count(*) FROM jobs_job")[0][0] == before + CLICKS
    finished = product.rows("SELECT count(*) FROM audit_auditline WHERE verb = 'finished'")
    assert finished[0][0] == before + CLICKS
