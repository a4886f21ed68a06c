"""Rules that every style sheet keeps."""

import re
from itertools import chain
from pathlib import Path

from django.conf import settings

STATIC = Path(settings.BASE_DIR) / "static"
SHEETS = {path.name: path.read_text() for path in STATIC.rglob("*.css")}
SMALLEST_PIXELS = 12


def declarations(block: str) -> list[str]:
    return [line.strip() for line in block.splitlines() if line.strip()]


def test_dark_is_the_same_by_setting_and_by_the_system() -> None:
    """The default theme is "auto": what only data-theme="dark" names is missing there."""
    by_setting, by_system = re.findall(
        r':root\[data-theme="(?:dark|auto)"\] \{([^}]*)\}', SHEETS["tokens.css"]
    )
    assert declarations(by_setting) == declarations(by_system)
    assert [name for name, text in SHEETS.items() if "data-theme" in text] == ["tokens.css"]


def test_no_text_is_smaller_than_a_caption() -> None:
    sizes = chain.from_iterable(
        re.findall(r"font(?:-size)?:[^;]*?([\d.]+)px", text) for text in SHEETS.values()
    )
    assert min(map(float, sizes)) >= SMALLEST_PIXELS


def test_each_sheet_stays_short() -> None:
    assert [name for name, text in SHEETS.items() if text.count("\n") > 400] == []
