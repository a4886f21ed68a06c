"""Programs in copies of this process: they share the memory of all code that it has loaded."""

import atexit
import contextlib
import ctypes
import importlib
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NoReturn

from webapp.collector import freeze_loaded_objects

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_LOOK_SECONDS = 0.02
LISTENER = "BETHE_HALL_LISTENER"  # variable of a program that gets this file, as its file 3
_SIGNALS = (signal.SIGTERM, signal.SIGINT)  # the signals that the supervisor handles
# Web server, workers and sweep need all but the last modules. Later forks copy only
# the pages that they change.
_SHARED = (
    "webapp.urls",
    "tasks.jobs",
    "tasks.idle",
    "tasks.heartbeat",
    "tasks.sweeper",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.concurrency.prefork",
    "gunicorn.app.wsgiapp",
    "gunicorn.workers.gthread",
)


def preload_shared_modules() -> None:
    """Load the product, without any open connection, for all programs that are forked.

    Objects that stay are excluded from garbage collection: walking over them would copy them.
    """
    importlib.import_module("django").setup()
    for name in _SHARED:
        importlib.import_module(name)
    freeze_loaded_objects()


def die_with_parent(parent: int) -> None:
    """Ask the kernel, in the child, for SIGKILL when the parent dies (Linux)."""
    if sys.platform.startswith("linux"):
        _process_control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call; in a container it may be process 1
            os._exit(1)


class Fork:
    """A module that runs as a program in a copy of this process; used like `subprocess.Popen`.

    ``command`` is the command that starts the module alone: Python, ``-m``, its name, and its
    arguments. In process lists it has the name ``bethe-NAME`` and the command of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: IO[bytes],
        *,
        name: str,
    ) -> None:
        self.returncode: int | None = None
        parent = os.getpid()
        # A signal that arrives before the program handles signals waits for it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self.pid = os.fork()
        if self.pid == 0:
            _run(command, environment, output.fileno(), name, parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code; raise TimeoutExpired if it takes too long."""
        started = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() - started > timeout:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_LOOK_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _run(
    command: Sequence[str], environment: Mapping[str, str], output: int, name: str, parent: int
) -> None:
    """Become the program; never return to the code that forked."""

    def program() -> None:
        _leave_parent(environment, output, name, parent)
        module = command[2]
        sys.argv = [module, *command[3:]]
        runpy.run_module(module, run_name="__main__", alter_sys=True)

    end_as_program(program)


def end_as_program(program: Callable[[], None]) -> NoReturn:
    """Run a program in a forked process and end as the interpreter does at its end."""
    code = 1
    try:
        program()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            os.write(2, f"{end.code}\n".encode())
    except BaseException:
        traceback.print_exc()
    finally:
        # The frames of the parent below never continue.
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):
                stream.flush()
        os._exit(code)


def _leave_parent(environment: Mapping[str, str], output: int, name: str, parent: int) -> None:
    """Start a session of its own, and set up signals, files and variables."""
    atexit._clear()  # the parent's exit handlers are not for its copies
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.setsid()  # Ctrl+C reaches the supervisor alone, which stops in order
    die_with_parent(parent)
    if sys.platform.startswith("linux"):
        _process_control(_PR_SET_NAME, f"bethe-{name}".encode())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    first_closed = 3
    if LISTENER in environment:
        os.dup2(int(environment[LISTENER]), 3)
        first_closed = 4
    # The lock of the folder, for one, belongs to the supervisor.
    os.closerange(first_closed, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(environment)


def _process_control(option: int, value: int | bytes) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value)
