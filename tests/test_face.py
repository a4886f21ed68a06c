"""The public face: every name it lists can be imported, and listing it imports nothing."""

import subprocess
import sys

import engine


def test_every_listed_name_is_there() -> None:
    missing = [name for name in engine.__all__ if not hasattr(engine, name)]
    assert not missing
    assert "train_roommates" in engine.__all__


def test_importing_the_face_loads_no_solver() -> None:
    program = "import sys, engine; print('numba' in sys.modules or 'scipy' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout.strip() == "False", answer.stderr
