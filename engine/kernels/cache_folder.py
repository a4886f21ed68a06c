"""Where compiled kernels are kept: a folder for each state of the sources.

Numba dates a cached kernel by its own file alone, but a kernel carries the code of functions from
other files. After an upgrade that changed only those, the old code would be run.
"""

import hashlib
import os
import shutil
from pathlib import Path

from numba import config

_SOURCES = Path(__file__).parent
_PREFIX = "kernels-"


def use_own_cache_folder() -> None:
    """Let Numba keep kernels where only this state of the sources finds them.

    That is below ``NUMBA_CACHE_DIR``, else below ``__pycache__``; where it cannot be written, Numba
    chooses a place itself. Folders of other states of the sources below ``__pycache__``, which is
    ours alone, are removed.
    """
    own = _SOURCES / "__pycache__"
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or own)
    folder = base / f"{_PREFIX}{digest_of(_SOURCES)}"
    if not folder.is_dir():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return
        for other in own.glob(f"{_PREFIX}*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]  # made at import


def digest_of(sources: Path) -> str:
    """Return 12 letters that change with any Python file of the folder."""
    digest = hashlib.sha256()
    for file in sorted(sources.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
