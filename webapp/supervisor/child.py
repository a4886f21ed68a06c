"""Program under supervision: it dies with the supervisor, and is started again when it ends."""

import atexit
import contextlib
import importlib
import multiprocessing
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from webapp.collector import freeze_loaded_objects
from webapp.supervisor.linux import die_with_parent, show_name

log = structlog.get_logger(__name__)

RESTART_SECONDS = 5.0  # from one start to the next, for a program that ends at once
_CONTEXT = multiprocessing.get_context("fork")
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
    "webapp.supervisor.web_worker",
)


def load_product() -> None:
    """Load the product, without any open connection, for all programs that start from now on.

    Objects that stay are excluded from garbage collection: walking over them would copy them.
    """
    importlib.import_module("django").setup()
    for name in _SHARED:
        importlib.import_module(name)
    freeze_loaded_objects()


class Child:
    """One program.

    A command ``python -m MODULE`` of this Python runs in a copy of this process, which shares the
    memory of the loaded code. In lists of processes it has the name ``bethe-NAME``.

    Parameters
    ----------
    listener : socket that the program gets as its file 3
    is_kept : bool, False for a program that is not started again
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        listener: socket.socket | None = None,
        is_kept: bool = True,
    ) -> None:
        self.name = name
        self._command = list(command)
        self._environment = dict(environment)
        self._log_path = log_path
        self._listener = listener
        self._is_kept = is_kept
        self._start()

    def _start(self) -> None:
        self._started = time.monotonic()
        self._process = _CONTEXT.Process(target=self._become_program, args=(os.getpid(),))
        self._process.start()

    @property
    def pid(self) -> int | None:
        """Return the process id while it runs."""
        return self._process.pid if self.is_running else None

    @property
    def is_running(self) -> bool:
        """Return True if the process has not ended."""
        return self._process.is_alive()

    def restart_if_ended(self) -> None:
        """Restart the program if it ended; one that ends at once gets a pause before."""
        is_early = time.monotonic() < self._started + RESTART_SECONDS
        if self.is_running or is_early or not self._is_kept:
            return
        log.warning("restarting", child=self.name, exit_code=self._process.exitcode)
        self.end()
        self._start()

    def ask_to_stop(self) -> None:
        """Ask the program to end, without waiting."""
        self._process.terminate()

    def end(self) -> None:
        """Kill the program and all that it started and did not end itself."""
        if self._process.pid is None:  # there was no room for a process
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # it may not have its own group yet
        self._process.join()

    def _become_program(self, supervisor: int) -> None:
        """Take nothing from the supervisor but its loaded code, and run the command."""
        atexit._clear()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()  # Ctrl+C reaches the supervisor alone, which stops in order
        die_with_parent(supervisor)
        show_name(f"bethe-{self.name}")
        self._take_files()
        os.environ.clear()
        os.environ.update(self._environment)
        if self._command[:2] != [sys.executable, "-m"]:
            os.execv(self._command[0], self._command)  # noqa: S606 - our own programs
        sys.argv = self._command[2:]
        try:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        finally:
            atexit._run_exitfuncs()

    def _take_files(self) -> None:
        """Open the log, or the null device if it cannot be written, as on a full disk."""
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            output = os.open(self._log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            log.warning("no log is kept", child=self.name, error=str(error))
            output = nothing
        for number, file in enumerate((nothing, output, output)):
            os.dup2(file, number)
        first_closed = 3
        if self._listener is not None:
            os.dup2(self._listener.fileno(), 3)
            first_closed = 4
        # The lock of the folder, for one, belongs to the supervisor.
        os.closerange(first_closed, os.sysconf("SC_OPEN_MAX"))
