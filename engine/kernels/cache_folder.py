"""Cache folder of compiled kernels: a separate folder for each state of the sources.

Numba dates a cached kernel by its own file alone, but a kernel includes functions from other
files. After an upgrade that changed only those, the old code would run.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from numba import config

_SOURCES = Path(__file__).parent
_PREFIX = "kernels-"


def use_own_cache_folder() -> None:
    """Set Numba's cache to a folder that only this state of the sources uses.

    It is below the first writable one of ``NUMBA_CACHE_DIR``, ``__pycache__`` and the user's cache
    folder, else a folder that lasts as long as the process: without any, Numba would refuse to make
    a cached kernel. Folders of other states below ``__pycache__``, which belongs to this package
    alone, are removed.
    """
    name = f"{_PREFIX}{digest_of(_SOURCES)}"
    usable = (base / name for base in _places() if _can_be_used(base / name))
    config.CACHE_DIR = str(next(usable, None) or _passing_folder())  # type: ignore[attr-defined]


def digest_of(sources: Path) -> str:
    """Return 12 letters that change with any Python file of the folder."""
    digest = sha256()
    for file in sorted(sources.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _places() -> Iterator[Path]:
    """Yield possible cache folders, the best first."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        yield Path(given)
    yield _SOURCES / "__pycache__"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(cache):  # without a home, relative and dependent on the working folder
        yield Path(cache) / "bethe-hall"


def _can_be_used(folder: Path) -> bool:
    """Make a folder if needed; return whether files can be written in it, as Numba checks.

    A new folder means new sources: folders of older ones below ``__pycache__`` are removed.
    """
    try:
        is_new = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    if is_new:
        for other in (_SOURCES / "__pycache__").glob(f"{_PREFIX}*"):
            if other.name != folder.name:
                shutil.rmtree(other, ignore_errors=True)
    return True


def _passing_folder() -> Path:
    """Make a folder that only this user can write (kernels are pickles); remove it at exit."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(_remove_own, folder, os.getpid())
    return folder


def _remove_own(folder: Path, maker: int) -> None:
    """Remove a folder unless this process is a fork of its maker, which still uses it."""
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)
