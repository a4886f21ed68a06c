"""Processes of the web server take one connection each, and more beside a long answer."""

import json
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path

import pytest

from tests.live.product import free_ports
from tests.patience import busyness, wait_for
from webapp.supervisor.web_worker import PATIENCE

# Answers with its process, and when it was at work; the path says for how many milliseconds.
APPLICATION = """
import json, os, time
def application(environ, start_response):
    begun = time.monotonic()
    time.sleep(int(environ["PATH_INFO"].strip("/")) / 1000)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([os.getpid(), begun, time.monotonic()]).encode()]
"""
Ask = Callable[[int], tuple[int, float, float]]


@pytest.fixture
def port() -> int:
    """Return the port of the server."""
    return free_ports(1)[0]


@pytest.fixture
def ask(tmp_path: Path, port: int) -> Iterator[Ask]:
    """Return a function that asks two processes of eight threads for an answer that takes ms."""
    (tmp_path / "answering.py").write_text(APPLICATION)
    command = [
        sys.executable, "-m", "gunicorn", "answering:application", "--pythonpath", str(tmp_path),
        "--bind", f"127.0.0.1:{port}", "--workers", "2", "--threads", "8",
        "--worker-class", "webapp.supervisor.web_worker.QueueingWorker", "--no-control-socket",
    ]  # fmt: skip
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def ask_for(milliseconds: int) -> tuple[int, float, float]:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", f"/{milliseconds}")
        process, begun, ended = json.loads(connection.getresponse().read())
        connection.close()
        return process, begun, ended

    try:
        wait_for(lambda: _both_answer(ask_for))
        yield ask_for
    finally:
        server.terminate()
        server.wait(10)


def _both_answer(ask_for: Ask) -> bool:
    try:
        with ThreadPoolExecutor(4) as four:
            return len({process for process, _, _ in four.map(ask_for, [50] * 4)}) == 2
    except OSError:
        return False


def test_a_process_answers_one_after_the_other(ask: Ask) -> None:
    with ThreadPoolExecutor(12) as crowd:
        answers = list(crowd.map(ask, [30] * 48))
    by_process = defaultdict(list)
    for process, begun, ended in answers:
        by_process[process].append((begun, ended))
    assert len(by_process) == 2, "both processes take their share"
    for spans in by_process.values():
        for (begun, ended), (next_begun, _) in pairwise(sorted(spans)):
            # On a busy machine an answer may take longer than a process waits for it.
            assert next_begun >= ended or next_begun - begun >= PATIENCE / 2


def test_long_answers_hold_up_nobody(ask: Ask) -> None:
    with ThreadPoolExecutor(6) as crowd:
        long = [crowd.submit(ask, 5000) for _ in range(6)]
        begun = time.monotonic()
        for _ in range(5):
            ask(1)
        seconds = time.monotonic() - begun
        assert not any(one.done() for one in long)
    assert seconds < 8 * PATIENCE * busyness()


def test_connections_without_a_request_hold_up_nobody(ask: Ask, port: int) -> None:
    """Browsers open some in advance."""
    waited = []
    with ExitStack() as idle:
        for _ in range(5):
            for _ in range(2):
                idle.enter_context(socket.create_connection(("127.0.0.1", port)))
            begun = time.monotonic()
            ask(1)
            waited.append(time.monotonic() - begun)
    assert min(waited) < PATIENCE / 2
