"""The README's example runs and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_example_prints_what_is_shown() -> None:
    text = README.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL)
    assert found is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(found.group(1), {})  # our own file, shown to readers as it stands
    assert printed.getvalue().splitlines() == [line.strip() for line in found.group(2).splitlines()]


def test_every_picture_is_there() -> None:
    names = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert names
    assert all((README.parent / name).is_file() for name in names)
