"""Jobs on the real parts: Celery, Valkey, processes that are killed in the middle."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.product import Product, children_of, is_running
from tests.patience import busyness, wait_for

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")

_ENQUEUE = """
import json
from webapp.accounts.models import User
from webapp.jobs.services import job_enqueue
bob = User.objects.get(username="bob")
values = json.loads({parameters!r})
jobs = [job_enqueue(user=bob, kind=kind, parameters=values, seed=7) for kind in {kinds!r}]
print(" ".join(str(job.pk) for job in jobs))
"""


def enqueue(product: Product, kind: str, *, count: int = 1, **parameters: Any) -> list[str]:
    code = _ENQUEUE.format(parameters=json.dumps(parameters), kinds=[kind] * count)
    return product.run(code).split()


def read(product: Product, pk: str) -> dict[str, Any]:
    key = pk.replace("-", "")
    job = dict(product.rows("SELECT * FROM jobs_job WHERE uuid = ?", key)[0])
    job["result"] = json.loads(job["result"])
    steps = product.rows(
        "SELECT iteration FROM jobs_jobtracepoint WHERE job_id = ? ORDER BY iteration", key
    )
    job["trace"] = [row["iteration"] for row in steps]
    return job


def wait(product: Product, pk: str, is_there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the job once something is true of it."""

    def job_if_there() -> dict[str, Any] | None:
        job = read(product, pk)
        return job if is_there(job) else None

    found = wait_for(job_if_there, logs=lambda: f"{read(product, pk)}\n{product.logs()}")
    assert found is not None
    return found


def is_over(job: dict[str, Any]) -> bool:
    return job["state"] not in {"queued", "running"}


def starts_and_ends(record: Path) -> tuple[int, int]:
    lines = record.read_text(encoding="ascii").splitlines() if record.exists() else []
    return (
        sum(line.startswith("start") for line in lines),
        sum(line.startswith("end") for line in lines),
    )


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_goes_on_from_its_checkpoint(
    product: Product, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = enqueue(
        product, "counting.sum", steps=40, seconds_a_step=0.02, record=str(whole)
    )[0]
    expected = wait(product, undisturbed, is_over)["result"]["total"]
    pk = enqueue(product, "counting.sum", steps=40, seconds_a_step=0.3, record=str(killed))[0]
    job = wait(product, pk, lambda row: len(row["trace"]) >= 3)
    os.kill(int(job["worker"].split(":")[-2]), signal.SIGKILL)
    job = wait(product, pk, is_over)
    assert job["state"] == "succeeded"
    assert job["result"]["total"] == expected
    assert job["attempt"] == 2
    assert job["resumed_from"] > 1
    assert job["trace"][-1] == 40
    assert starts_and_ends(killed) == (2, 1)


@pytest.mark.slow
def test_the_whole_worker_killed_is_replaced_and_the_job_goes_on(
    product: Product, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    pk = enqueue(product, "counting.sum", steps=30, seconds_a_step=0.4, record=str(record))[0]
    wait(product, pk, lambda row: len(row["trace"]) >= 2)
    parent = product.pid_of("worker")
    pool = children_of(parent)
    for pid in [parent, *pool]:
        os.kill(pid, signal.SIGKILL)
    job = wait(product, pk, is_over)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert starts_and_ends(record) == (2, 1)


@pytest.mark.slow
def test_processes_that_start_slowly_are_waited_for(product: Product) -> None:
    """On a busy machine a new process of a worker takes more than the four seconds of Celery."""
    worker = product.pid_of("worker")
    before = set(children_of(worker))
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    stopped = set[int]()
    while len(stopped) < len(before):
        for pid in set(children_of(worker)) - before - stopped:
            os.kill(pid, signal.SIGSTOP)
            stopped.add(pid)
    time.sleep(5.5)
    assert all(map(is_running, stopped)), product.logs()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    pk = enqueue(product, "counting.sum", steps=1, seconds_a_step=0.0)[0]
    job = wait(product, pk, is_over)
    assert job["state"] == "succeeded"
    assert int(job["worker"].split(":")[-2]) in stopped


_END_STUCK = """
import time
from datetime import timedelta
from django.conf import settings
from webapp.jobs import stuck
settings.JOB_STUCK_SECONDS, stuck._LATELY = 1.0, timedelta(seconds=1)
watch = stuck.StuckWorkers()
watch.look()
time.sleep(1.1)
print(watch.look())
"""


@pytest.mark.slow
def test_a_worker_that_is_stopped_for_good_is_replaced(product: Product) -> None:
    worker = product.pid_of("worker")
    wait_for(
        lambda: product.rows("SELECT 1 FROM jobs_worker WHERE process LIKE ?", f"%:{worker}:%")
    )
    os.kill(worker, signal.SIGSTOP)
    pk = enqueue(product, "counting.sum", steps=1, seconds_a_step=0.0)[0]
    wait_for(lambda: product.run(_END_STUCK) == "1", logs=product.logs)
    assert wait(product, pk, is_over)["state"] == "succeeded"
    assert product.pid_of("worker") != worker


@pytest.mark.slow
def test_a_worker_that_is_stopped_or_killed_is_no_death_of_its_job(
    product: Product, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    pk = enqueue(product, "counting.sum", steps=80, seconds_a_step=0.2, record=str(record))[0]
    for number, way in enumerate((signal.SIGTERM, signal.SIGKILL), start=1):
        running = lambda row, n=number: row["attempt"] == n and row["state"] == "running"  # noqa: E731
        worker = int(wait(product, pk, running)["worker_parent"].split(":")[-2])
        os.kill(worker, way)
    job = wait(product, pk, lambda row: row["attempt"] == 3 and row["state"] == "running")
    assert job["deaths"] == 0
    os.kill(int(job["worker"].split(":")[-2]), signal.SIGKILL)  # its own process alone
    job = wait(product, pk, is_over)
    assert (job["state"], job["attempt"], job["deaths"]) == ("succeeded", 4, 1)
    assert job["result"]["total"] == pytest.approx(
        sum(np.random.default_rng(7).random(80)), abs=1e-9
    )


@pytest.mark.slow
def test_a_broker_killed_and_restarted_loses_nothing_and_runs_nothing_twice(
    product: Product, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    first = enqueue(
        product, "counting.sum", count=5, steps=10, seconds_a_step=0.5, record=str(record)
    )
    # On a busy machine the program that enqueues them may end after the first of them.
    wait(product, first[0], lambda row: row["state"] != "queued")
    broker = product.pid_of("broker")
    os.kill(broker, signal.SIGKILL)
    # Enqueued while the broker is away: the row waits.
    second = enqueue(product, "counting.sum", steps=2, seconds_a_step=0.01, record=str(record))
    for pk in [*first, *second]:
        assert wait(product, pk, is_over)["state"] == "succeeded", product.logs()
    assert product.pid_of("broker") != broker
    assert starts_and_ends(record) == (6, 6)


@pytest.mark.slow
def test_short_work_does_not_wait_behind_long_work(product: Product) -> None:
    code = _ENQUEUE.format(
        parameters=json.dumps({"steps": 100, "seconds_a_step": 0.2}), kinds=["counting.long"] * 4
    )
    code += """
values = {"steps": 2, "seconds_a_step": 0.01}
short = [job_enqueue(user=bob, kind="counting.sum", parameters=values, seed=7) for _ in "ab"]
print(" ".join(str(job.pk) for job in short))
"""
    long, short = (line.split() for line in product.run(code).splitlines())
    for pk in short:
        assert wait(product, pk, is_over)["state"] == "succeeded"
    states = [read(product, pk)["state"] for pk in long]
    assert "succeeded" not in states
    assert "queued" in states
    product.run(
        "from webapp.jobs.models import Job; from webapp.jobs.services import job_cancel; "
        f"[job_cancel(user=job.created_by, job=job) for job in Job.objects.filter(pk__in={long!r})]"
    )
    for pk in long:
        assert wait(product, pk, is_over)["state"] == "cancelled"


@pytest.mark.slow
def test_a_message_delivered_twice_runs_once(product: Product, tmp_path: Path) -> None:
    record = tmp_path / "record"
    pk = enqueue(product, "counting.sum", steps=5, seconds_a_step=0.1, record=str(record))[0]
    product.run(
        "import uuid; from webapp.jobs import dispatch; "
        f"[dispatch.send(uuid.UUID({pk!r}), 'short') for _ in range(4)]"
    )
    assert wait(product, pk, is_over)["state"] == "succeeded"
    marker = enqueue(product, "counting.sum", steps=1, seconds_a_step=0.0)[0]
    wait(product, marker, is_over)
    assert starts_and_ends(record) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("counting.sum", {"steps": 1000, "seconds_a_step": 0.05}),
        ("counting.deaf", {"seconds": 60}),  # never asks: its process ends
    ],
)
def test_it_is_cancelled_within_two_seconds(
    product: Product, tmp_path: Path, kind: str, parameters: dict[str, Any]
) -> None:
    record = tmp_path / "record"
    pk = enqueue(product, kind, record=str(record), **parameters)[0]
    wait(product, pk, lambda row: row["state"] == "running")
    seconds = product.run(
        f"""
import time
from webapp.accounts.models import User
from webapp.jobs.models import Job
from webapp.jobs.services import job_cancel
job = Job.objects.get(pk={pk!r})
started = time.monotonic()
job_cancel(user=User.objects.get(username="bob"), job=job)
while Job.objects.get(pk={pk!r}).is_active and time.monotonic() - started < 20:
    time.sleep(0.02)
print(time.monotonic() - started)
"""
    )
    assert float(seconds) < 2.0 * busyness()
    job = read(product, pk)
    assert job["state"] == "cancelled"
    assert job["sentence"].startswith("Cancelled after ")
    time.sleep(1.5)
    assert not is_running(int(job["worker"].split(":")[-2])) or kind == "counting.sum"
    # The pool is whole again and works.
    after = enqueue(product, "counting.sum", count=2, steps=1, seconds_a_step=0.0)
    for other in after:
        assert wait(product, other, is_over)["state"] == "succeeded"
    assert starts_and_ends(record) == (1, 0)
