"""The clock of the machine is set back an hour under everything that runs."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from tests.live.product import Product, new_product
from tests.live.test_parts_away import ask, job_that
from tests.patience import wait_for

STEPS, PAUSE = 40, 0.5  # a busy machine has to get to the kill before the end
_START = f"""
from django.test import Client
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.jobs.services import job_enqueue
bob = User.objects.get(username="bob")
client = Client()
client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
values = {{"steps": {STEPS}, "seconds_a_step": {PAUSE}}}
job_enqueue(user=bob, kind="counting.sum", parameters=values, seed=7)
print(client.cookies["sessionid"].value)
"""
_LATER = """
import datetime
from django.utils import timezone
from webapp.accounts.models import User
from webapp.common.limits import count_up
from webapp.jobs.services import job_enqueue
bob = User.objects.get(username="bob")
values = {"steps": 2, "seconds_a_step": 0.01}
job_enqueue(user=bob, kind="counting.sum", parameters=values, seed=8)
print([count_up("test", "bob") for _ in range(3)])
print(timezone.now().isoformat())
"""


# libfaketime 0.9.10 refuses the absolute waits that Python's own sleep is made of.
_SLEEP = """
import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
"""


def library() -> Path:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("libfaketime is absent (Debian: apt-get install libfaketime)")
    return found[-1]


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """The file that says how far the clock of the product's processes is off."""
    file = tmp_path / "clock"
    file.write_text("+0\n")
    return file


@pytest.fixture
def product(tmp_path: Path, clock: Path) -> Product:
    (tmp_path / "sitecustomize.py").write_text(_SLEEP)
    (tmp_path / "product").mkdir()
    return new_product(
        tmp_path / "product",
        DJANGO_SETTINGS_MODULE="tests.webapp.live_settings",
        LD_PRELOAD=str(library()),
        FAKETIME_TIMESTAMP_FILE=str(clock),
        PYTHONPATH=str(tmp_path),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
        NO_FAKE_STAT="1",
    )


@pytest.mark.slow
def test_it_breaks_neither_sessions_nor_jobs_nor_limits(product: Product, clock: Path) -> None:
    product.start()
    try:
        session = product.run(_START).splitlines()[-1]
        begun = "SELECT 1 FROM jobs_jobtracepoint WHERE iteration >= 3"
        wait_for(lambda: product.rows(begun), logs=product.logs)
        before = job_that(product, "1")
        clock.write_text("-1h\n")
        assert ask(f"{product.url}/jobs/", session)[0] == 200, "still signed in"
        os.kill(int(before["worker"].split(":")[-2]), signal.SIGKILL)
        counts, now = product.run(_LATER).splitlines()[-2:]
        assert now < before["started_at"].replace(" ", "T"), "the clock was set back"
        assert counts == "[1, 2, 3]"
        job = job_that(product, "seed = 7 AND finished_at IS NOT NULL")
        assert (job["state"], job["attempt"]) == ("succeeded", 2), dict(job)
        total = sum(np.random.default_rng(7).random(STEPS))
        assert json.loads(job["result"])["total"] == pytest.approx(total, abs=1e-12)
        assert job_that(product, "seed = 8 AND finished_at IS NOT NULL")["state"] == "succeeded"
        for address in ("/jobs/", "/", "/accounts/settings/"):
            assert ask(f"{product.url}{address}", session)[0] == 200
    finally:
        product.stop()
