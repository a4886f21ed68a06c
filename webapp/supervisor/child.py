"""A child process that dies with its parent and is started again when it ends."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO

import structlog

log = structlog.get_logger(__name__)

_PR_SET_PDEATHSIG = 1
_QUICK_END_SECONDS = 5.0
_MAX_PAUSE_SECONDS = 10.0
LARGEST_LOG_BYTES = 10_000_000


def die_with_parent(parent: int) -> None:
    """In the child: ask the kernel for SIGKILL when the parent dies (Linux)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call; in a container it may be process 1
            os._exit(1)


class Child:
    """One program under supervision."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        stop_seconds: float = 10.0,
    ) -> None:
        self.name = name
        self._command = list(command)
        self._environment = dict(environment)
        self._log_path = log_path
        self._stop_signal = stop_signal
        self._stop_seconds = stop_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._quick_ends = 0
        self._not_before = 0.0

    @property
    def pid(self) -> int | None:
        """The process id, while it runs."""
        return self._process.pid if self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether the process exists and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program; its output goes to its log."""
        with self._open_log() as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own programs
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl+C reaches the supervisor alone, which stops in order
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        self._started = time.monotonic()

    def restart_if_ended(self) -> bool:
        """Start the program again if it ended; programs that end at once wait longer each time."""
        if self._process is None or self.is_running or time.monotonic() < self._not_before:
            return False
        log.warning("restarting", child=self.name, exit_code=self._process.returncode)
        self._kill_group()
        is_quick = time.monotonic() - self._started < _QUICK_END_SECONDS
        self._quick_ends = self._quick_ends + 1 if is_quick else 0
        self._not_before = time.monotonic() + min(2.0**self._quick_ends, _MAX_PAUSE_SECONDS)
        self.start()
        return True

    def ask_to_stop(self) -> None:
        """Ask the program to end, without waiting."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self._stop_signal)

    def stop(self) -> None:
        """Wait until the program, asked before, has ended; then end it and what it left behind."""
        if self._process is None:
            return
        if self._process.poll() is None:
            try:
                self._process.wait(self._stop_seconds)
            except subprocess.TimeoutExpired:
                log.warning("did not stop in time", child=self.name)
        self._kill_group()
        self._process.wait()

    def _kill_group(self) -> None:
        """End whatever the program started and did not end itself."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _open_log(self) -> IO[bytes]:
        self._log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        rotate(self._log_path)
        return self._log_path.open("ab")


def rotate(path: Path) -> bool:
    """Move the content of a log that has grown large to ``.log.1``; return whether it had.

    The file stays and is emptied: whoever appends to it goes on, without being started again. What
    is written between the copy and the cut is lost, a line or two in ten million bytes.
    """
    if not path.exists() or path.stat().st_size <= LARGEST_LOG_BYTES:
        return False
    shutil.copyfile(path, path.with_suffix(".log.1"))
    os.truncate(path, 0)
    return True
