"""Real inputs that lie beside the checkout and are never part of it.

They are extra: what must hold is tested on inputs that are generated, wherever the checkout lies.
"""

from pathlib import Path

import pytest

EXTRA = "needs the real input"  # how the reason of a skip begins that is never a failure
FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def shared_data(name: str) -> Path:
    """Return the path of a real input; skip the test, saying why, where it is absent."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{EXTRA} ../shared/data/{name}, which is absent")
    return path
