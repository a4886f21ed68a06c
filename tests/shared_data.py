"""Real inputs that lie beside the checkout and are never part of it."""

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def shared_data(name: str) -> Path:
    """Return the path of a real input; skip the test, saying why, where it is absent."""
    path = FOLDER / name
    if not path.exists():
        reason = f"needs the real input ../shared/data/{name}, which is absent"
        if os.environ.get("REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return path
