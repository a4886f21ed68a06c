"""What every reader returns, the caps it keeps, and the one way in which it fails."""

import html
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from engine.datasets.survey_table import is_blank
from webapp.cohorts.tables.layout import SheetLayout
from webapp.cohorts.tables.makers import QUALTRICS, SURVEYMONKEY
from webapp.cohorts.tables.option_columns import (
    OptionColumns,
    find_option_columns,
    with_answers,
)
from webapp.cohorts.tables.source import Line, Source, TableError

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_UNZIPPED_BYTES = 200 * 1024 * 1024
MAX_ROWS = 20_000
MAX_COLUMNS = 500
MAX_CELL_CHARACTERS = 32_767  # what a cell of Excel holds; essays are common, and never scored
# Control characters but tab and line ends: no spreadsheet takes them back in an export.
_FORMULA = re.compile(r"=\s*[\w(\"'+\-{\[.$@]")
_MARKUP = re.compile(r"<[^<>]{1,400}>")
NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


@dataclass(frozen=True)
class Table:
    """A rectangular table of text.

    ``row_numbers`` are the line numbers that a spreadsheet shows (the header is row 1), so that a
    message about row 57 points at row 57 of the file even where empty lines were skipped.
    ``short_rows`` are those in which one cell was missing, which is read as a blank at the end.
    ``wordings`` are the questions as asked, where the file has them beside short names.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_numbers: tuple[int, ...]
    file_format: str
    encoding: str = ""
    delimiter: str = ""
    short_rows: tuple[int, ...] = ()
    wordings: tuple[str, ...] = ()
    layout: SheetLayout = field(default_factory=SheetLayout)
    sheet_name: str = ""
    n_above: int = 0  # rows above the header
    options: tuple[OptionColumns, ...] = ()  # questions that the file has as one column an option
    # What was worked out of these cells; it goes when the table goes.
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows below the header."""
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.header)

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The cells column by column."""
        return tuple(zip(*self.rows, strict=True))

    def column(self, index: int) -> tuple[str, ...]:
        """Return the cells of one column, top to bottom."""
        return self.columns[index]

    def answers(self, index: int) -> Counter[str]:
        """Return how often each cell of a column comes, blanks left out; counted once."""
        key = ("answers", index)
        if key not in self.memo:
            counts = Counter(self.columns[index])
            self.memo[key] = Counter({cell: n for cell, n in counts.items() if not is_blank(cell)})
        found: Counter[str] = self.memo[key]
        return found

    @property
    def n_file_rows(self) -> int:
        """Rows of the file but the header: what is above it, its further header rows, the rest."""
        return self.n_above + self.n_header_rows + self.n_rows

    @property
    def n_header_rows(self) -> int:
        """Header rows besides the first: wordings, and what only the maker reads."""
        return bool(self.layout.wording_row) + len(self.layout.extra_rows)

    @property
    def description(self) -> str:
        """Return how the file was read: 'comma-separated, UTF-8' or 'XLSX, sheet Answers'."""
        if self.file_format == "XLSX":
            return f"XLSX, sheet {self.sheet_name}"[:60] if self.sheet_name else "XLSX, first sheet"
        return f"{self.delimiter}, {self.encoding}"


def build_table(source: Source, layout: SheetLayout) -> Table:
    """Check header and shape of one sheet and return the table.

    Raises TableError naming the row or column when there is no header, no student, an unnamed or
    repeated column, a formula, or a row of another length. Trailing empty cells are forgiven, and
    so is one missing cell: the preview warns of it, since it may be missing anywhere in its row.
    A column without a name and without cells is none; a maker's own repeated names are numbered.
    """
    sheet = source.sheets[layout.sheet]
    by_number = {line.number: line for line in sheet.lines}
    if layout.header_row not in by_number:
        raise TableError("The header row is not in the file: choose another header.")
    above = [line for line in sheet.lines if line.number < layout.header_row]
    own = {layout.header_row, layout.wording_row, *layout.extra_rows}
    below = [
        line for line in sheet.lines if line.number > layout.header_row and line.number not in own
    ]
    titles = _titles(by_number, layout)
    width = max(len(titles), 1)
    while width and not titles[width - 1]:
        width -= 1
    named = [
        k for k in range(width) if titles[k] or any(k < len(x.cells) and x.cells[k] for x in below)
    ]
    header = _checked_header([titles[k] for k in named], named, numbered=bool(layout.maker))
    if not below:
        raise TableError("The file has a header but no rows below it.")
    is_xlsx = source.file_format == "XLSX"  # which has no row that is too short
    rows = tuple(
        _checked(_fitted(line, width, named, forgiving=is_xlsx), header, line.number)
        for line in below
    )
    wordings = _wordings(by_number, layout, named)
    has_options = layout.maker in (QUALTRICS, SURVEYMONKEY)
    options = find_option_columns(header, wordings, rows) if has_options else ()
    short = tuple(line.number for line in below if not is_xlsx and len(line.cells) < width)
    return Table(
        header,
        with_answers(rows, options),
        tuple(line.number for line in below),
        source.file_format,
        source.encoding,
        source.delimiter,
        short,
        wordings,
        layout,
        sheet.name if len(source.sheets) > 1 else "",
        len(above),
        options,
    )


def _titles(by_number: Mapping[int, Line], layout: SheetLayout) -> list[str]:
    titles = [" ".join(cell.split()) for cell in by_number[layout.header_row].cells]
    if layout.maker != SURVEYMONKEY or not layout.wording_row:
        return titles
    # An option stands below its question, whose text stands above the first option only.
    options = [" ".join(cell.split()) for cell in by_number[layout.wording_row].cells]
    titles += [""] * (len(options) - len(titles))
    asked = ""
    for k, title in enumerate(titles):
        asked = title or asked
        option = options[k] if k < len(options) else ""
        is_whole = not option or "response" in option.casefold()
        titles[k] = (asked if option else title) if is_whole else f"{asked} - {option}"
    return titles


def _wordings(
    by_number: Mapping[int, Line], layout: SheetLayout, named: list[int]
) -> tuple[str, ...]:
    if not layout.wording_row or layout.maker == SURVEYMONKEY:
        return ()
    cells = by_number[layout.wording_row].cells
    said = [plain_text(cells[k]) if k < len(cells) else "" for k in named]
    return tuple(said)


def plain_text(text: str) -> str:
    """Return the wording of a question without markup and line ends."""
    return " ".join(html.unescape(_MARKUP.sub(" ", text)).split())


def _checked_header(names: list[str], positions: list[int], *, numbered: bool) -> tuple[str, ...]:
    header: list[str] = []
    seen: dict[str, int] = {}
    for position, name in zip(positions, names, strict=True):
        if not name:
            raise TableError(
                f"Column {position + 1} has no name in the header. Name it or remove it."
            )
        if NOT_TEXT.search(name):
            raise TableError(f"Column {position + 1}: its name holds a control character.")
        if name.casefold() in seen and not numbered:
            raise TableError(
                f"Columns {seen[name.casefold()]} and {position + 1} are both called “{name}”. "
                "Rename one."
            )
        count, free = 2, name
        while free.casefold() in seen:
            free, count = f"{name} ({count})", count + 1
        seen[free.casefold()] = position + 1
        header.append(free)
    return tuple(header)


def _fitted(line: Line, width: int, named: list[int], *, forgiving: bool) -> tuple[str, ...]:
    cells, number = line.cells, line.number
    if len(cells) > width and any(cells[width:]):
        raise TableError(
            f"Row {number:,} has {len(cells):,} cells, but the header has {width:,} columns."
        )
    if not forgiving and len(cells) < width - 1 and width > 2:
        missing = width - len(cells)
        raise TableError(
            f"Row {number:,} has {len(cells):,} cells, {missing:,} fewer than the header."
        )
    full = cells[:width] + ("",) * (width - len(cells))
    return full if len(named) == width else tuple(full[k] for k in named)


def _checked(cells: tuple[str, ...], header: tuple[str, ...], number: int) -> tuple[str, ...]:
    for name, cell in zip(header, cells, strict=True):
        if len(cell) > MAX_CELL_CHARACTERS:
            raise TableError(
                f"Row {number:,}, {name[:60]}: the cell holds {len(cell):,} characters; "
                f"at most {MAX_CELL_CHARACTERS:,} are read."
            )
        if not cell.isprintable() and NOT_TEXT.search(cell):
            raise TableError(f"Row {number:,}, {name[:60]}: the cell holds a control character.")
        if cell[:1] == "=" and _FORMULA.match(cell):
            shown = cell if len(cell) <= 40 else cell[:39] + "…"
            raise TableError(
                f"Row {number:,}, {name[:60]}: the cell holds a formula ({shown}). "
                "Replace formulas by their values."
            )
    return cells
