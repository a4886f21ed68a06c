"""Which sheet of a file is the survey, and which of its rows name the columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from webapp.cohorts.tables.makers import recognise
from webapp.cohorts.tables.source import Line, Sheet, Source, TableError

_LOOKED_AT = 200  # rows from which the width of a sheet is told
_HEADER_WITHIN = 40  # a cover above the header is not longer than this
_FILLED_SHARE = 0.6  # a header fills at least this share of the usual width
_NARROW = 4  # columns; a sheet as narrow as this may be a cover or a list of codes


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """How a file is read: plain data, chosen here and changed by staff.

    ``sheet`` is a position; ``header_row``, ``wording_row`` (0: none) and ``extra_rows`` are
    numbers as a spreadsheet shows them. ``maker`` is the program that wrote the file, or empty.
    """

    sheet: int = 0
    header_row: int = 1
    wording_row: int = 0
    extra_rows: tuple[int, ...] = ()
    maker: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON field."""
        return {
            "sheet": self.sheet,
            "header_row": self.header_row,
            "wording_row": self.wording_row,
            "extra_rows": list(self.extra_rows),
            "maker": self.maker,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> "SheetLayout | None":
        """Return what ``to_json`` wrote; None where a draft of before has none."""
        if not data:
            return None
        return cls(**{**data, "extra_rows": tuple(data["extra_rows"])})


def find_layout(source: Source) -> SheetLayout:
    """Return how the file is best read.

    The sheet with most answers below a header is taken; a cover, a list of codes and an empty
    sheet have few. Raises TableError when no sheet holds anything.
    """
    candidates = []
    for position, sheet in enumerate(source.sheets):
        if sheet.lines:
            layout = replace(_sheet_layout(sheet), sheet=position)
            candidates.append((_weight(sheet, layout), -position, layout))
    if not candidates:
        raise TableError("The file is empty: a header and at least two rows are expected.")
    return max(candidates, key=lambda one: one[:2])[2]


def layout_at(source: Source, sheet: int, header_row: int) -> SheetLayout:
    """Return the layout with a header row that staff chose; what is above it is left out.

    Raises TableError when there is no such sheet or row.
    """
    if not 0 <= sheet < len(source.sheets):
        raise TableError("There is no such sheet in the file.")
    lines = source.sheets[sheet].lines
    if all(line.number != header_row for line in lines):
        raise TableError(f"Row {header_row:,} is empty or not in the file: choose another header.")
    below = [line for line in lines if line.number >= header_row]
    found = recognise(below)
    if found is not None and found.header_row == header_row:
        return SheetLayout(sheet, header_row, found.wording_row, found.extra_rows, found.maker)
    return SheetLayout(sheet, header_row)


def sheet_layout(source: Source, sheet: int) -> SheetLayout:
    """Return the best layout of one sheet; raise TableError when it is empty or absent."""
    if not 0 <= sheet < len(source.sheets) or not source.sheets[sheet].lines:
        raise TableError("This sheet is empty.")
    return replace(_sheet_layout(source.sheets[sheet]), sheet=sheet)


def _sheet_layout(sheet: Sheet) -> SheetLayout:
    found = recognise(sheet.lines)
    if found is not None:
        return SheetLayout(0, found.header_row, found.wording_row, found.extra_rows, found.maker)
    return SheetLayout(0, _header_row(sheet.lines))


def _header_row(lines: Sequence[Line]) -> int:
    """Return the first row that is nearly as wide as the table below it."""
    widths = sorted(line.n_filled for line in lines[:_LOOKED_AT])
    usual = widths[(9 * (len(widths) - 1)) // 10]
    wanted = max(2, _FILLED_SHARE * usual) if usual > 1 else 1
    for line in lines[:_HEADER_WITHIN]:
        if line.n_filled >= wanted:
            return line.number
    return lines[0].number


def _weight(sheet: Sheet, layout: SheetLayout) -> tuple[bool, float]:
    """Return what speaks for a sheet: a maker's own form first, then answers below the header."""
    below = [line for line in sheet.lines if line.number > layout.header_row]
    n_cells = sum(line.n_filled for line in below)
    width = max((line.n_filled for line in below[:_LOOKED_AT]), default=0)
    return bool(layout.maker), n_cells * (0.2 if width < _NARROW else 1.0)
