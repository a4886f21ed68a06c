"""Rules that every style sheet keeps."""

import re
from itertools import chain
from pathlib import Path

from django.conf import settings

STATIC = Path(settings.BASE_DIR) / "static"
SHEETS = {path.name: path.read_text() for path in STATIC.rglob("*.css")}
SHEETS_BY_PATH = {str(path.relative_to(STATIC)): path.read_text() for path in STATIC.rglob("*.css")}
TEMPLATE_FOLDER = Path(settings.BASE_DIR) / "templates"
TEMPLATES = {
    str(path.relative_to(TEMPLATE_FOLDER)): path.read_text()
    for path in TEMPLATE_FOLDER.rglob("*.html")
}
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


def parts_of(template: str, seen: set[str]) -> set[str]:
    """Return a template and all that it is made of: what it extends, includes, and calls by tag."""
    if template not in seen:
        seen.add(template)
        text = TEMPLATES[template]
        named = re.findall(r"[\w/-]+\.html", " ".join(re.findall(r"\{% (?:ext|inc).*?%\}", text)))
        tags = [f"common/_{tag}.html" for tag in re.findall(r"\{% (\w+)", text)]
        for part in {*named, *(tag for tag in tags if tag in TEMPLATES)}:
            parts_of(part, seen)
    return seen


def classes_of(template: str) -> set[str]:
    """Return the classes that are written out, also those that a condition chooses among."""
    written = re.findall(r'class="((?:[^"{]|\{[%{].*?[%}]\})*)"', TEMPLATES[template])
    tokens = " ".join(re.sub(r"\{[%{].*?[%}]\}", "|", text) for text in written).split()
    whole = (token for token in tokens if not re.search(r"[-_]\|", token))  # "button--{{ kind }}"
    return {name for token in whole for name in token.split("|") if name}


def test_every_class_of_a_page_is_styled_by_a_sheet_that_the_page_loads() -> None:
    """Pages of questionnaires once lacked the space above their forms: roommates' sheet had it."""
    styled = {
        sheet: set(re.findall(r"\.([a-z][\w-]*)", text)) for sheet, text in SHEETS_BY_PATH.items()
    }
    pages = [
        name
        for name, text in TEMPLATES.items()
        if "{% extends" in text and not name.startswith("admin/")  # Django styles its admin
    ]
    assert len(pages) > 50
    missing = set()
    for page in pages:
        parts = parts_of(page, set())
        links = {m for p in parts for m in re.findall(r"static '([^']+\.css)'", TEMPLATES[p])}
        known = set().union(*(styled[link] for link in links))
        missing |= {(page, p, name) for p in parts for name in classes_of(p) - known}
    assert missing == set()
