"""Every tutorial runs from its first block to its last, and prints what it shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
TUTORIALS = sorted(path.stem for path in FOLDER.glob("*.md"))


def test_there_are_eight() -> None:
    assert len(TUTORIALS) == 8


@pytest.mark.parametrize("name", TUTORIALS)
def test_it_prints_what_it_shows(name: str) -> None:
    blocks = BLOCK.findall((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)  # our own file, shown to readers as it stands
        assert printed.getvalue().split() == shown.split(), code
