"""Child process that dies with its parent and is started again when it ends."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO

import structlog

from webapp.supervisor.forks import Fork, die_with_parent

log = structlog.get_logger(__name__)

_QUICK_END_SECONDS = 5.0
_MAX_PAUSE_SECONDS = 10.0
LARGEST_LOG_BYTES = 10_000_000


class Child:
    """One program under supervision.

    A forked program runs a module of the product in a copy of this process, which shares the memory
    of the loaded code; its command is that of the module.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        is_forked: bool = False,
    ) -> None:
        self.name = name
        self._is_forked = is_forked
        self._command = list(command)
        self._environment = dict(environment)
        self._log_path = log_path
        self._stop_signal = stop_signal
        self._process: subprocess.Popen[bytes] | Fork | None = None
        self._started = 0.0
        self._quick_ends = 0
        self._not_before = 0.0

    @property
    def pid(self) -> int | None:
        """Return the process id while it runs."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Return True if the process exists and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program; its output goes to its log."""
        with self._open_log() as output:
            if self._is_forked:
                self._process = Fork(self._command, self._environment, output, name=self.name)
            else:
                self._process = self._execute(output)
        self._started = time.monotonic()

    def _execute(self, output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own programs
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl+C reaches the supervisor alone, which stops in order
            preexec_fn=partial(die_with_parent, os.getpid()),
        )

    def restart_if_ended(self) -> bool:
        """Restart the program if it ended, after growing pauses if it ends at once each time."""
        if self._process is None or self.is_running or time.monotonic() < self._not_before:
            return False
        log.warning("restarting", child=self.name, exit_code=self._process.returncode)
        self._kill_group()
        is_quick = time.monotonic() - self._started < _QUICK_END_SECONDS
        self._quick_ends = self._quick_ends + 1 if is_quick else 0
        self._not_before = time.monotonic() + min(2.0**self._quick_ends, _MAX_PAUSE_SECONDS)
        self.start()
        return True

    def end(self) -> None:
        """Kill the program and all that it started; it is started again after that."""
        if self._process is not None:
            self._kill_group()
            self._process.wait()

    def ask_to_stop(self) -> None:
        """Ask the program to end, without waiting."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self._stop_signal)

    def stop(self, deadline: float) -> None:
        """Wait for the program to end after `ask_to_stop`; then kill it and the processes it left.

        It has until ``deadline`` on the monotonic clock.
        """
        if self._process is None:
            return
        if self._process.poll() is None:
            try:
                self._process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                log.warning("did not stop in time", child=self.name)
        self._kill_group()
        self._process.wait()

    def _kill_group(self) -> None:
        """Kill the processes that the program started and did not end itself."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _open_log(self) -> IO[bytes]:
        """Open the log; use the null device if it cannot be written, as on a full disk."""
        try:
            self._log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            rotate(self._log_path)
            return self._log_path.open("ab")
        except OSError as error:
            log.warning("no log is kept", child=self.name, error=str(error))
            return open(os.devnull, "ab")


def rotate(path: Path) -> None:
    """Move a log that has grown large to ``.log.1``, in place of the one before.

    Programs that have the file open write on to the moved one until they open the log again.
    """
    if path.exists() and path.stat().st_size > LARGEST_LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
