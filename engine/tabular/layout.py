"""Layout of a file: its survey sheet, and the rows that name the columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.tabular.makers import recognise
from engine.tabular.second_header import holds_wordings, is_second_header
from engine.tabular.source import Line, Sheet, Source, TableError

_LOOKED_AT = 200  # rows that determine the width of a sheet
_HEADER_WITHIN = 40  # a cover above the header is not longer than this
_FILLED_SHARE = 0.6  # a header fills at least this share of the usual width
_NARROW = 4  # columns; a sheet as narrow as this may be a cover or a list of codes


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """Layout of a file as plain data, chosen here and changed by staff.

    ``sheet`` is a position; ``header_row``, ``wording_row`` (0: none) and ``extra_rows`` are
    numbers as a spreadsheet shows them; a header row of 0 means that no row names the columns.
    ``joined_rows`` are above the header and name groups of columns, as merged cells do.
    ``maker`` is the program that wrote the file, or empty.
    """

    sheet: int = 0
    header_row: int = 1
    wording_row: int = 0
    extra_rows: tuple[int, ...] = ()
    maker: str = ""
    joined_rows: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON field."""
        return {
            "sheet": self.sheet,
            "header_row": self.header_row,
            "wording_row": self.wording_row,
            "extra_rows": list(self.extra_rows),
            "maker": self.maker,
            "joined_rows": list(self.joined_rows),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> "SheetLayout | None":
        """Return what ``to_json`` wrote; None for an old draft without a layout."""
        if not data:
            return None
        rows = {name: tuple(data.get(name, ())) for name in ("extra_rows", "joined_rows")}
        return cls(**{**data, **rows})


def find_layout(source: Source) -> SheetLayout:
    """Return the best layout of the file.

    The sheet with the most answers below a header is taken; a cover, a list of codes and an empty
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
    """Return the layout with a header row that staff chose; rows above it are left out.

    Of a program that no rule knows, only that row names the columns: the row below it is a student.

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
    joined = _rows_above(source.sheets[sheet], header_row)
    return SheetLayout(sheet, header_row, joined_rows=joined)


def sheet_layout(source: Source, sheet: int) -> SheetLayout:
    """Return the best layout of one sheet; raise TableError when it is empty or absent."""
    if not 0 <= sheet < len(source.sheets) or not source.sheets[sheet].lines:
        raise TableError("This sheet is empty.")
    return replace(_sheet_layout(source.sheets[sheet]), sheet=sheet)


def _sheet_layout(sheet: Sheet) -> SheetLayout:
    found = recognise(sheet.lines)
    if found is not None:
        return SheetLayout(0, found.header_row, found.wording_row, found.extra_rows, found.maker)
    header_row = _continued(sheet, _header_row(sheet.lines))
    layout = SheetLayout(0, header_row, joined_rows=_rows_above(sheet, header_row))
    header, *below = [line for line in sheet.lines if line.number >= header_row]
    if layout.joined_rows or not below or not is_second_header(header, below[0], below[1:]):
        return layout
    if holds_wordings(header, below[0]):
        return replace(layout, wording_row=below[0].number)
    return replace(layout, extra_rows=(below[0].number,))


def _header_row(lines: Sequence[Line]) -> int:
    """Return the first row that is nearly as wide as the table below it."""
    widths = sorted(line.n_filled for line in lines[:_LOOKED_AT])
    usual = widths[(9 * (len(widths) - 1)) // 10]
    wanted = max(2, _FILLED_SHARE * usual) if usual > 1 else 1
    for line in lines[:_HEADER_WITHIN]:
        if line.n_filled >= wanted:
            return line.number
    return lines[0].number


def _continued(sheet: Sheet, header_row: int) -> int:
    """Return the last row of a header that begins in ``header_row``.

    The header continues in the next row if that row names the columns under merged header cells.
    In a file without merged cells, it continues if the next row names exactly the columns that
    the header leaves blank, and is blank under the others.
    """
    by_number = {line.number: line for line in sheet.lines}
    below = by_number.get(header_row + 1)
    if below is None:
        return header_row
    header = by_number[header_row]
    merged = {
        k for row, left, right in sheet.merges if row == header_row for k in range(left, right + 1)
    }
    named = {k for k, cell in enumerate(below.cells) if cell}
    same = {k for k in named if k < len(header.cells) and header.cells[k] == below.cells[k]}
    if merged and len(named & merged) > 1:
        return header_row + 1 if named <= merged | same else header_row
    width = max((len(line.cells) for line in sheet.lines[:_LOOKED_AT]), default=0)
    blank = {k for k in range(width) if k >= len(header.cells) or not header.cells[k]}
    blank &= {k for line in sheet.lines for k, cell in enumerate(line.cells) if cell}
    starts = {k - 1 for k in blank if k - 1 not in blank}
    alone = set(range(width)) - blank - starts
    if blank and blank <= named and alone and not alone & named and named <= blank | starts:
        return header_row + 1
    return header_row


def _rows_above(sheet: Sheet, header_row: int) -> tuple[int, ...]:
    """Return the rows directly above the header that belong to it.

    Such a row is merged across some of the columns, but not across all of them, which is a
    title; or it fills cells of columns that the header itself leaves blank.
    """
    by_number = {line.number: line for line in sheet.lines}
    found: list[int] = []
    row = header_row - 1
    while row in by_number and header_row in by_number:
        line, header = by_number[row], by_number[header_row]
        groups = [(left, right) for at, left, right in sheet.merges if at == row]
        is_grouped = any(
            sum(bool(cell) for cell in header.cells[left : right + 1]) > 1 for left, right in groups
        )
        is_title = line.n_filled == 1 and not any(line.cells[1:])
        used = {k for x in sheet.lines if x.number > header_row for k, c in enumerate(x.cells) if c}
        adds = {
            k
            for k, cell in enumerate(line.cells)
            if cell and k in used and (k >= len(header.cells) or not header.cells[k])
        }
        if not (is_grouped and not is_title) and not adds:
            break
        found.insert(0, row)
        row -= 1
    return tuple(found)


def _weight(sheet: Sheet, layout: SheetLayout) -> tuple[bool, float]:
    """Return the score of a sheet: a survey program's form first, then answers below a header."""
    below = [line for line in sheet.lines if line.number > layout.header_row]
    n_cells = sum(line.n_filled for line in below)
    width = max((line.n_filled for line in below[:_LOOKED_AT]), default=0)
    return bool(layout.maker), n_cells * (0.2 if width < _NARROW else 1.0)
