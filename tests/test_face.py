"""The public face: every name it lists can be imported, and listing it imports nothing."""

import re
import subprocess
import sys
from pathlib import Path

import engine


def test_every_listed_name_is_there() -> None:
    missing = [name for name in engine.__all__ if not hasattr(engine, name)]
    assert not missing
    assert "train_roommates" in engine.__all__


def test_importing_the_face_loads_no_solver() -> None:
    program = "import sys, engine; print('numba' in sys.modules or 'scipy' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout.strip() == "False", answer.stderr


def test_examples_import_from_the_face_what_it_lists() -> None:
    wrong = [
        f"{path}: {name}"
        for path in Path(engine.__file__).parent.rglob("*.py")
        for line in re.findall(r">>> from engine import (.*)", path.read_text())
        for name in line.split(", ")
        if name not in engine.__all__
    ]
    assert not wrong
