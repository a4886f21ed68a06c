"""Technical columns, about how or when a person answered, recognised by names and cells.

A survey program's own columns are known by their names (:mod:`engine.tabular.makers`); columns that
other programs add are recognised here, so that no model learns from an address.
"""

import re
from collections.abc import Collection

from engine.tabular.text import fold_answer

REASON = "It says how or when somebody answered, not what."
_NAME = re.compile(
    r"\b(?:ip|ip[ _]address|submission ip|user[ _-]?agent|browser|latitude|longitude|referr?er|"
    r"random seed|start ?language|last ?page|time ?zone|duration|seconds spent)\b",
    re.I,
)
_DATE = re.compile(r"\b(?:date|datum|fecha|data|timestamp|zeitstempel|submitted|completed)\b", re.I)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}", re.I)
# Days since 1900, as Excel keeps dates: of 1995 to 2064, with the time of day behind the point.
_SERIAL = re.compile(r"(?:3[5-9]|[45]\d)\d{3}(?:\.\d+)?")
_DAY = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|"
    r"[^\W\d_]{3,10}\.? \d{1,2},? \d{4}|\d{1,2}\.? (?:de )?[^\W\d_]{3,10}\.? (?:de )?\d{4}"
)
_SHARE = 0.9
_STATUS = re.compile(
    r"(?:(?:response|survey|completion|entry|submission)[ _-]?)?(?:status|state)", re.I
)
_STEPS = frozenset({
    "complete", "completed", "partial", "partially complete", "incomplete", "in progress",
    "finished", "submitted", "disqualified", "abandoned", "started", "not started",
})  # fmt: skip


def says_if_finished(name: str, cells: Collection[str]) -> bool:
    """Return True if a column says which responses were finished, whatever program wrote it."""
    return (
        bool(cells)
        and _STATUS.fullmatch(name.strip()) is not None
        and all(fold_answer(cell) in _STEPS for cell in cells)
    )


def is_technical(name: str, cells: Collection[str]) -> bool:
    """Return True if the different cells of a column are addresses, or dates in words or numbers.

    ``name`` decides what cells alone cannot: a seed, a place on the earth, a date.
    """
    if not cells:
        return False
    enough = _SHARE * len(cells)
    if sum(_ADDRESS.fullmatch(cell) is not None for cell in cells) >= enough:
        return True
    if _DATE.search(name) and sum(map(_is_date, cells)) >= enough:
        return True
    return len(cells) > 2 and _NAME.search(name) is not None and not name.endswith("?")


def _is_date(cell: str) -> bool:
    return _SERIAL.fullmatch(cell) is not None or _DAY.match(cell) is not None
