"""The tests of the JavaScript modules that hold logic, by Node's own runner."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(Path(__file__).parent.glob("*.test.js"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_module_does_what_its_tests_say(file: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js, which is absent")
    done = subprocess.run([node, "--test", file], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_with_logic_has_tests() -> None:
    names = {file.name.removesuffix(".test.js") for file in FILES}
    assert names >= {"colour", "stroke_queue", "strokes", "view_state", "viewport"}
