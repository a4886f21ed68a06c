"""Things that several processes of a run of tests need, and that one of them makes."""

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


@cache
def shared_folder() -> Path:
    """Return a folder of this run: that of ``bin/test``, which removes it, or one of its own.

    The processes of a run without ``bin/test`` share a folder as well, and the last that leaves
    removes it.
    """
    given = os.environ.get("TEST_SHARED_FOLDER")
    if given:
        Path(given).mkdir(mode=0o700, exist_ok=True)
        return Path(given)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = Path(tempfile.gettempdir(), f"bethe-hall-tests-{run}")
    folder.mkdir(mode=0o700, exist_ok=True)
    users = (folder / "users").open("w")  # each has a share of it till it ends
    fcntl.flock(users, fcntl.LOCK_SH)

    def leave() -> None:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(leave)
    return folder


@contextmanager
def being_made(name: str) -> Iterator[Path]:
    """Yield a path of the shared folder; while it is absent, no other process looks for it."""
    folder = shared_folder()
    with (folder / f"{name}.maker").open("w") as maker:
        fcntl.flock(maker, fcntl.LOCK_EX)
        yield folder / name
