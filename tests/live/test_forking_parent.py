"""Worker and web server fork: no database file may be open in the process that does."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.live.product import Product, children_of
from tests.live.test_job_life_cycle import enqueue, is_over, wait
from tests.patience import wait_for
from tests.webapp.live_settings import JOB_SWEEP_SECONDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]

# One commit of a forked child before the parent's thread closes its connection, one after.
_FORK = """
import os, sqlite3, sys, threading
path, is_held = sys.argv[1], sys.argv[2] == "held"

def connect():
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    return connection

connection = connect()
connection.execute("CREATE TABLE numbers (number)")
connection.close()
has_opened, may_close = threading.Event(), threading.Event()

def hold():
    held = connect() if is_held else None
    if held: held.execute("SELECT * FROM numbers").fetchall()
    has_opened.set()
    may_close.wait()
    if held: held.close()

thread = threading.Thread(target=hold)
thread.start()
has_opened.wait()
(from_parent, to_child), (from_child, to_parent) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    connection = connect()
    connection.execute("INSERT INTO numbers VALUES (1)")
    os.write(to_parent, b"1")
    os.read(from_parent, 1)
    connection.execute("INSERT INTO numbers VALUES (2)")
    os._exit(0)
os.read(from_child, 1)
may_close.set()
thread.join()
os.write(to_child, b"2")
os.waitpid(child, 0)
"""


@pytest.mark.parametrize(("held", "kept"), [("held", [1]), ("free", [1, 2])])
def test_a_commit_is_lost_exactly_if_a_connection_was_open_at_the_fork(
    tmp_path: Path, held: str, kept: list[int]
) -> None:
    """Why the sweep is a process of its own. If SQLite ever mends it, this test says so."""
    path = tmp_path / "database.sqlite3"
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORK, str(path), held], check=True)
    with sqlite3.connect(path) as connection:
        assert [row[0] for row in connection.execute("SELECT number FROM numbers")] == kept


class Watch:
    """A thread that looks without a pause at what files a process has open."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}/fd")
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.looks = 0
        self.found: set[str] = set()

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.0005):
            self.looks += 1
            for name in os.listdir(self._folder):
                try:
                    path = os.readlink(self._folder / name)
                except OSError:
                    continue  # closed meanwhile
                if ".sqlite3" in path:
                    self.found.add(path)


def test_the_process_that_forks_never_has_the_database_open(product: Product) -> None:
    """The sweep was a thread of that process: a finished job's commit vanished, it ran twice."""
    worker, sweep, web = (product.pid_of(name) for name in ("worker", "sweep", "web"))
    with Watch(worker) as parent, Watch(web) as server:
        running = enqueue(product, "counting.sum", count=4, steps=5, seconds_a_step=0.2)
        deaf = enqueue(product, "counting.deaf", seconds=60)[0]
        wait(product, deaf, lambda job: job["state"] == "running")
        product.run(
            "from webapp.accounts.models import User; from webapp.jobs.models import Job; "
            "from webapp.jobs.services import job_cancel; "
            f"job_cancel(user=User.objects.get(username='bob'), job=Job.objects.get(pk={deaf!r}))"
        )  # it does not listen: its process is ended, and the parent forks another
        for pk in [*running, deaf]:
            assert is_over(wait(product, pk, is_over))
        before = children_of(web)
        os.kill(before[0], signal.SIGKILL)  # the web server forks another
        wait_for(lambda: len(children_of(web)) == len(before) and before[0] not in children_of(web))
        time.sleep(2 * JOB_SWEEP_SECONDS)
    assert parent.looks > 500
    assert parent.found == set()
    assert server.found == set()
    with Watch(sweep) as sweeper:
        time.sleep(0.1)
    assert sweeper.found, "the watch sees an open database where there is one"
    assert children_of(sweep) == []
