"""Memory of the started product; memory that processes share counts once."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live.product import ROOT, Product, children_of, memory_of, name_of, new_product
from tests.live.test_job_life_cycle import is_over, wait
from tests.live.visitor import Visitor
from tests.patience import wait_for
from webapp.supervisor.broker import prepare_broker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux"),
]
ALLOWED_MEGABYTES = 600
ALONE_MEGABYTES = {"web": 310, "worker": 300, "learner": 280, "sweep": 240}
_ROLES = (sys.executable, "-m", "webapp.supervisor.roles")
PARTS = {"broker", "web", "worker", "learner", "sweep"}

_LEARN = """
import numpy as np
from benchmarks.product.web_load import Filler
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.matching.services.learning import model_learn
bob = User.objects.get(username="bob")
filler = Filler(bob)
filler._model_data()
filler._cohort("A year", 300, with_pairs=True)
cohorts = list(Cohort.objects.all())
print(model_learn(user=bob, name="A model", cohorts=cohorts, relative_gap=1e-2).job_id)
"""


def processes(product: Product) -> list[int]:
    """The supervisor and all that it started."""
    assert product.process is not None
    found = [product.process.pid]
    for pid in found:
        found += children_of(pid)
    return found


def memory(product: Product) -> float:
    """Million bytes of all of them together."""
    return memory_of(processes(product)) / 1e6


def test_the_started_product_takes_600_mb_and_again_after_it_has_learned(tmp_path: Path) -> None:
    """The product took 951 MB, since each program loaded the same 190 MB for itself."""
    product = new_product(tmp_path, DJANGO_SETTINGS_MODULE="tests.webapp.live_settings")
    product.start()
    try:
        # Web server, both workers and the sweep, and what the first three forked.
        wait_for(lambda: len(processes(product)) >= 10)
        assert {name_of(pid) for pid in processes(product)} > PARTS
        visitor = Visitor(product)
        assert set(visitor.pages().values()) == {200}
        print(f"{memory(product):.0f} MB")
        assert memory(product) < ALLOWED_MEGABYTES

        before = set(processes(product))
        job = product.run(_LEARN, timeout=600).splitlines()[-1]
        row = wait(product, job, is_over)
        assert row["state"] == "succeeded", row
        learned = int(row["worker"].split(":")[-2])
        assert learned in before
        wait_for(lambda: learned not in processes(product))  # it is replaced when it is idle
        wait_for(lambda: len(processes(product)) >= 10)
        print(f"{memory(product):.0f} MB")
        assert memory(product) < ALLOWED_MEGABYTES
    finally:
        product.stop()


def test_programs_started_alone_share_and_release_what_they_loaded(tmp_path: Path) -> None:
    """They took 320, 436, 324 and 284 MB: no process shared with those that it forked."""
    product = new_product(
        tmp_path / "instance",
        DJANGO_SETTINGS_MODULE="tests.webapp.live_settings",
        WEB_WORKERS="2",
        JOB_WORKERS="2",
        LEARN_WORKERS="1",
    )
    broker = prepare_broker(product.instance)
    environment = product.environment | {"REDIS_URL": broker.url, "PYTHONPATH": str(ROOT)}
    n_forked = {"web": 2, "worker": 2, "learner": 1, "sweep": 0}
    with ExitStack() as stack:
        started = {}
        for role, command in {
            "broker": broker.command,
            **{role: (*_ROLES, role) for role in n_forked},
        }.items():
            if role == "web":
                command = (*command, "--bind", f"127.0.0.1:{product.port}")
            log = stack.enter_context((tmp_path / f"{role}.log").open("wb"))
            started[role] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log
            )
            stack.callback(end, started[role])
        for role, count in n_forked.items():
            pid = started[role].pid
            wait_for(lambda pid=pid, count=count: len(children_of(pid)) >= count)
        visitor = Visitor(product)
        assert set(visitor.pages().values()) == {200}
        found = {
            role: memory_of([started[role].pid, *children_of(started[role].pid)]) / 1e6
            for role in n_forked
        }
        print({role: f"{size:.0f} MB" for role, size in found.items()})
        assert all(found[role] < allowed for role, allowed in ALONE_MEGABYTES.items()), found


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a program, at once if it does not stop by itself."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
