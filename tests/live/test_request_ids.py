"""One id leads from a request in the web process to the line of the job in the worker's."""

import json
import time
import urllib.error
import urllib.request

import pytest

from tests.live.product import Product
from tests.patience import PATIENCE_SECONDS


def lines_of(product: Product) -> list[dict[str, object]]:
    path = product.instance / "log" / "access.log"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_the_access_log_joins_requests_and_jobs(product: Product) -> None:
    code = """
from structlog.contextvars import bound_contextvars
from webapp.accounts.models import User
from webapp.jobs.services import job_enqueue
bob = User.objects.get(username="bob")
with bound_contextvars(request="from-the-test"):
    print(job_enqueue(
        user=bob, kind="counting.sum", parameters={"steps": 1, "seconds_a_step": 0}, seed=1).pk)
"""
    pk = product.run(code)
    with urllib.request.urlopen(f"{product.url}/healthz", timeout=30) as answer:
        identifier = answer.headers["X-Request-ID"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = [line for line in lines_of(product) if line.get("job") == pk]
        if found:
            break
        time.sleep(0.2)
    assert [line["request"] for line in found] == ["from-the-test"]
    assert found[0]["state"] == "succeeded"
    (line,) = [line for line in lines_of(product) if line.get("request") == identifier]
    assert (line["path"], line["status"]) == ("/healthz", 200)


@pytest.mark.slow
def test_the_running_product_is_ready(product: Product) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    parts: dict[str, str] = {}
    while time.monotonic() < deadline and set(parts.values()) != {"ok"}:
        try:
            with urllib.request.urlopen(f"{product.url}/readyz", timeout=30) as answer:
                parts = json.load(answer)
        except urllib.error.HTTPError as error:  # the worker may just have been started
            parts = json.load(error)
            time.sleep(1)
    assert set(parts) == {"database", "store", "room on disk", "broker", "worker"}
    assert set(parts.values()) == {"ok"}, parts


@pytest.mark.slow
def test_workers_tell_the_sweep_what_they_have(product: Product) -> None:
    deadline, workers = time.monotonic() + PATIENCE_SECONDS, []
    while time.monotonic() < deadline and len(workers) < 2:
        time.sleep(0.2)
        workers = product.rows("SELECT * FROM jobs_worker")
    assert {worker["name"].partition("-")[0] for worker in workers} == {"short", "long"}
    for worker in workers:
        assert worker["processes"] >= 1
        assert 0 < worker["memory_used"] < worker["memory_total"]
