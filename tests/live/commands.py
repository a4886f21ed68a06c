"""Management commands of products, in copies of a process that has loaded the code.

A command in a new Python spends three processor seconds on imports, and in a copy a tenth of one.
Each command is still a process of its own, with the environment, the working folder and the exit
code that it would have. ``run_command`` starts the process that is copied and asks it for copies.

That process has loaded the libraries. For each environment it makes a copy that has also loaded
the settings and models; commands are copies of the latter. None of them opens a database.
"""

import atexit
import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
# What models and services import and what needs no settings: most of the time of a start.
LIBRARIES = (
    "celery.app", "django.contrib.admin", "django.core.management.commands.shell",
    "django.core.serializers.json", "django.views.generic", "engine.cli", "engine.rooms",
    "kombu.transport.redis", "lxml.etree", "numba", "openpyxl", "PIL.Image", "prometheus_client",
    "pydantic", "redis.asyncio", "rich.traceback", "scipy.optimize", "scipy.sparse.csgraph",
    "structlog",
)  # fmt: skip
# Variables that Python or the loader of programs reads at a start: a copy comes too late for them.
_READ_AT_START = ("LD_", "PYTHON")
_MAX_LOADED = 2  # copies that wait for further commands of an environment
_MESSAGE_BYTES = 150_000


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    new_python: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py`` with these arguments in the root of the repository.

    With ``new_python``, or if the environment changes how Python starts, the command is a new
    Python instead of a copy.
    """
    command = [sys.executable, "manage.py", *arguments]
    if new_python or _at_start(environment) != _at_start(os.environ):
        return subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    broker = Path(environment["BETHE_HALL_INSTANCE"], "broker.url")  # settings read it
    address = broker.read_text(encoding="ascii") if broker.exists() else ""
    request = json.dumps({
        "key": json.dumps([sorted(environment.items()), address]),
        "arguments": arguments,
        "environment": dict(environment),
    }).encode()  # fmt: skip
    assert len(request) < _MESSAGE_BYTES
    answer, given = socket.socketpair()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, answer:
        with given:
            files = [given.fileno(), output.fileno(), errors.fileno()]
            socket.send_fds(_server(), [request], files)
        code = _code_of(answer, timeout)
        if code is None:
            raise subprocess.TimeoutExpired(command, timeout)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess(command, code, *texts)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are read at the start of a program."""
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _code_of(answer: socket.socket, timeout: float) -> int | None:
    """Return the exit code of a command; None, after killing it, if that does not come in time."""
    lines = answer.makefile("rb")
    pid = lines.readline()  # at once, or after the settings and models were loaded
    answer.settimeout(timeout)
    try:
        code = lines.readline()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
        return None
    if not code:
        raise RuntimeError("The process that is copied for commands has ended.")
    return int(code)


@cache
def _server() -> socket.socket:
    """Start the process that is copied; it ends when this socket closes, with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.live.commands", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def stop() -> None:
        ours.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a command that nobody waits for
            process.wait(10)

    atexit.register(stop)
    return ours


def _serve(control: socket.socket) -> None:
    """Pass each request to a copy that has loaded its environment; make that if it is absent."""
    loaded: dict[str, socket.socket] = {}  # the one used last is the last
    for message, files in _requests(control):
        request = json.loads(message)
        known = loaded.pop(request["key"], None)
        if known is None:
            while len(loaded) >= _MAX_LOADED:
                loaded.pop(next(iter(loaded))).close()
            known, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if os.fork() == 0:
                known.close()
                for other in (control, *loaded.values()):
                    other.close()
                for file in files:
                    os.close(file)
                _serve_environment(theirs, request["environment"])
            theirs.close()
        loaded[request["key"]] = known
        socket.send_fds(known, [message], files)
        for file in files:
            os.close(file)
    for known in loaded.values():
        known.close()
    _reap(0)


def _serve_environment(control: socket.socket, environment: dict[str, str]) -> None:
    """Load the settings and models of an environment; do each command in a copy."""
    os.environ.clear()
    os.environ.update(environment)
    with contextlib.suppress(Exception):  # each command says itself what is wrong
        importlib.import_module("django").setup()
    gc.freeze()
    for message, files in _requests(control):
        if os.fork() == 0:
            control.close()
            _report(json.loads(message)["arguments"], *files)
        for file in files:
            os.close(file)
    _reap(0)
    os._exit(0)


def _requests(control: socket.socket) -> Any:
    """Yield messages with their files until the other end closes."""
    while True:
        message, files, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 3)
        _reap(os.WNOHANG)
        if not message:
            return
        yield message, files


def _reap(options: int) -> None:
    """Take the exit codes of copies that have ended, or with 0 wait for all of them."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _report(arguments: list[str], answer: int, output: int, errors: int) -> None:
    """Do a command in another copy; write its process id, and its exit code when it ends."""
    copy = multiprocessing.get_context("fork").Process(
        target=_run, args=(arguments, output, errors)
    )
    with contextlib.suppress(OSError):
        copy.start()
        os.write(answer, f"{copy.pid}\n".encode())
        copy.join()
        os.write(answer, f"{copy.exitcode}\n".encode())
    os._exit(0)


def _run(arguments: list[str], output: int, errors: int) -> None:
    """Become the command."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.argv = ["manage.py", *arguments]
    try:
        runpy.run_path(str(ROOT / "manage.py"), run_name="__main__")
    finally:
        atexit._run_exitfuncs()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        sys.argv = ["manage.py"]
        for name in LIBRARIES:
            importlib.import_module(name)
        gc.freeze()
        _serve(requests)
