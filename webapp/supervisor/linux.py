"""Requests to Linux about the own process; other systems ignore them."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent, the process with this id, dies."""
    if sys.platform.startswith("linux"):
        _process_control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call; in a container it may be process 1
            os._exit(1)


def show_name(name: str) -> None:
    """Set the name that lists of processes show."""
    if sys.platform.startswith("linux"):
        _process_control(_PR_SET_NAME, name.encode())


def _process_control(option: int, value: int | bytes) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value)
