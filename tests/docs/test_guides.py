"""The guide to the library names every tutorial once and only functions that exist."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
WHICH = (DOCS / "guides" / "which-function.md").read_text(encoding="utf-8")


def test_the_guide_names_every_tutorial_once() -> None:
    text = (DOCS / "guides" / "library.md").read_text(encoding="utf-8")
    named = re.findall(r"^\d\. \[[^\]]+\]\(\.\./tutorials/([\w-]+)\.md\)", text, re.M)
    assert sorted(named) == sorted(path.stem for path in (DOCS / "tutorials").glob("*.md"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(engine\.[\w.]+)`", WHICH))))
def test_every_function_of_the_page_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


def test_every_line_of_the_page_names_a_function() -> None:
    rows = [line for line in WHICH.splitlines() if line.startswith("| ")]
    rows = [line for line in rows if not line.startswith("| I want to ")]
    assert len(rows) > 30
    assert all("`engine." in line for line in rows)
