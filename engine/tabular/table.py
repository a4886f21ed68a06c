"""Table that every reader returns, the limits it enforces, and the error that it raises."""

import html
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from engine.tabular.layout import SheetLayout
from engine.tabular.makers import LIMESURVEY, QUALTRICS, SURVEYMONKEY, is_import_id
from engine.tabular.option_columns import (
    OptionColumns,
    find_option_columns,
    with_answers,
)
from engine.tabular.source import Line, Sheet, Source, TableError
from engine.tabular.survey_table import is_blank
from engine.tabular.text import fold_answer

MAX_CELL_CHARACTERS = 32_767  # the limit of an Excel cell; essays are common, and never scored
# Control characters but tab and line ends: no spreadsheet takes them back in an export.
_FORMULA = re.compile(
    r"=\s*(?:table$|[A-Za-z_.]+\(|\$?[A-Z]{1,3}\$?\d|[-+]?\d|[-+]*[(\"'\[{@])", re.IGNORECASE
)
_MIN_BESIDE = 4  # columns from which a row of one cell is a note
_NOTE = re.compile(
    r"(?:grand |sub)?totals?\b|sum\b|average\b|mean\b|generated\b|exported\b|report\b|summe\b|"
    r"gesamt\b|durchschnitt\b|mittelwert\b|moyenne\b|somme\b|suma\b|promedio\b|media\b|source:|"
    r"n ?= ?\d",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<[^<>]{1,400}>")
NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


@dataclass(frozen=True)
class Table:
    """A rectangular table of text.

    ``row_numbers`` are the line numbers that a spreadsheet shows (the header is row 1), so that a
    message about row 57 points at row 57 of the file even if empty lines were skipped.
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
    options: tuple[OptionColumns, ...] = ()  # questions that the file has as one column per option
    hidden_rows: tuple[int, ...] = ()  # numbers of rows that a spreadsheet does not show
    hidden_columns: tuple[int, ...] = ()  # positions
    repeated_headers: tuple[int, ...] = ()  # numbers of rows that repeat the header
    foot_rows: tuple[int, ...] = ()  # numbers of rows at the foot that are no students
    # Cache of results computed from these cells; dropped with the table.
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def n_rows(self) -> int:
        """Return the number of rows below the header."""
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        """Return the number of columns."""
        return len(self.header)

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """Return the cells column by column."""
        return tuple(zip(*self.rows, strict=True))

    def column(self, index: int) -> tuple[str, ...]:
        """Return the cells of one column, top to bottom."""
        return self.columns[index]

    def answered(self, index: int) -> tuple[str, ...]:
        """Return the cells of one column, blank in repeated headers and in rows at the foot."""
        cells = self.columns[index]
        no_students = {*self.repeated_headers, *self.foot_rows}
        if not no_students:
            return cells
        return tuple(
            "" if number in no_students else cell
            for number, cell in zip(self.row_numbers, cells, strict=True)
        )

    def counts(self, index: int) -> Counter[str]:
        """Return the count of each answered cell of a column, blanks included; counted once."""
        key = ("counts", index)
        if key not in self.memo:
            self.memo[key] = Counter(self.answered(index))
        found: Counter[str] = self.memo[key]
        return found

    def answers(self, index: int) -> Counter[str]:
        """Return the count of each cell of a column, blanks left out; counted once."""
        key = ("answers", index)
        if key not in self.memo:
            counts = self.counts(index)
            self.memo[key] = Counter({cell: n for cell, n in counts.items() if not is_blank(cell)})
        found: Counter[str] = self.memo[key]
        return found

    @property
    def n_file_rows(self) -> int:
        """Return the number of rows of the file without its first header row."""
        return self.n_above + self.n_header_rows + self.n_rows

    @property
    def n_header_rows(self) -> int:
        """Return the number of header rows besides the first: wordings and rows for the program."""
        layout = self.layout
        return bool(layout.wording_row) + len(layout.extra_rows) + len(layout.joined_rows)

    @property
    def description(self) -> str:
        """Return how the file was read: 'comma-separated, UTF-8' or 'XLSX, sheet Answers'."""
        if self.file_format == "XLSX":
            return f"XLSX, sheet {self.sheet_name}"[:60] if self.sheet_name else "XLSX, first sheet"
        return f"{self.delimiter}, {self.encoding}"


def build_table(source: Source, layout: SheetLayout, min_columns: int = 2) -> Table:
    """Check header and shape of one sheet and return the table.

    Raises TableError naming the row or column when there is no header, no student, an unnamed or
    repeated column, a formula, or a row of another length. Trailing empty cells are forgiven, and
    so is one missing cell: the preview warns of it, since it may be missing anywhere in its row.
    A column without name and cells is ignored; repeated names of a survey program are numbered.
    """
    sheet = source.sheets[layout.sheet]
    by_number = {line.number: line for line in sheet.lines}
    if layout.header_row and layout.header_row not in by_number:
        raise TableError("The header row is not in the file: choose another header.")
    own = {layout.header_row, layout.wording_row, *layout.extra_rows, *layout.joined_rows}
    above = [x for x in sheet.lines if x.number < layout.header_row and x.number not in own]
    below = [
        line for line in sheet.lines if line.number > layout.header_row and line.number not in own
    ]
    groups = _groups(sheet, layout)
    titles = _titles(by_number, layout, groups) if layout.header_row else _numbers(below)
    width = max(len(titles), 1)
    while width and not titles[width - 1]:
        width -= 1
    named = [
        k for k in range(width) if titles[k] or any(k < len(x.cells) and x.cells[k] for x in below)
    ]
    if source.file_format == "CSV" and width < min_columns:
        raise TableError(
            f"Row {layout.header_row or 1:,} has only one column. "
            "Separate columns by commas, semicolons or tabs."
        )
    header = _checked_header([titles[k] for k in named], named, numbered=bool(layout.maker))
    if not below:
        raise TableError("The file has a header but no rows below it.")
    is_xlsx = source.file_format == "XLSX"  # no row is too short in this format
    rows = tuple(
        _checked(_fitted(line, width, named, forgiving=is_xlsx), header, line.number)
        for line in below
    )
    wordings = _wordings(by_number, layout, named, groups)
    short = tuple(line.number for line in below if not is_xlsx and len(line.cells) < width)
    foot = _foot_rows(below, rows, len(header))
    if layout.header_row:
        _check_order(below, titles, layout.header_row)
    repeated = _repeated_headers(header, wordings, below, rows)
    has_options = layout.maker in (QUALTRICS, SURVEYMONKEY, LIMESURVEY)
    options = find_option_columns(header, wordings, rows, layout.maker) if has_options else ()
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
        tuple(line.number for line in below if line.is_hidden),
        tuple(named.index(k) for k in sheet.hidden_columns if k in named),
        tuple(repeated),
        tuple(foot),
    )


def _numbers(lines: Sequence[Line]) -> list[str]:
    """Return titles of a table in which no row names the columns."""
    width = max((len(line.cells) for line in lines), default=0)
    return [f"column {k}" for k in range(1, width + 1)]


def _groups(sheet: Sheet, layout: SheetLayout) -> list[str]:
    """Return the text of the rows above the header for every column that they cover."""
    by_number = {line.number: line for line in sheet.lines}
    width = max((len(line.cells) for line in sheet.lines), default=0)
    found = [""] * width if layout.joined_rows else []
    for row in layout.joined_rows:
        cells = list(by_number[row].cells) + [""] * (width - len(by_number[row].cells))
        spans = {left: right for at, left, right in sheet.merges if at == row}
        for k in range(width):
            last = spans.get(k, k)
            if not spans and cells[k]:  # a file without merged cells: up to the next group
                below = by_number[layout.header_row].cells
                while (
                    last + 1 < min(width, len(below))
                    and not cells[last + 1]
                    and below[last + 1]
                    and below[k]
                ):
                    last += 1
            for j in range(k, last + 1 if cells[k] else k):
                text = " ".join(cells[k].split())
                found[j] = f"{found[j]} - {text}" if found[j] else text
    return found


def _titles(by_number: Mapping[int, Line], layout: SheetLayout, groups: Sequence[str]) -> list[str]:
    titles = [" ".join(cell.split()) for cell in by_number[layout.header_row].cells]
    if groups:
        titles += [""] * (len(groups) - len(titles))
        times = Counter(title.casefold() for title in titles)
        return [
            f"{group} - {title}" if group and title and times[title.casefold()] > 1
            else title or group
            for title, group in zip(titles, groups, strict=True)
        ]  # fmt: skip
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
    by_number: Mapping[int, Line], layout: SheetLayout, named: list[int], groups: Sequence[str]
) -> tuple[str, ...]:
    if any(groups):
        below = by_number[layout.header_row].cells
        titles = [below[k] if k < len(below) else "" for k in named]
        return tuple(
            f"{groups[k]}: {title}" if groups[k] and title not in ("", groups[k]) else ""
            for k, title in zip(named, titles, strict=True)
        )
    if not layout.wording_row or layout.maker == SURVEYMONKEY:
        return ()
    cells = by_number[layout.wording_row].cells
    said = [plain_text(cells[k]) if k < len(cells) else "" for k in named]
    return tuple(said)


def _check_order(lines: Sequence[Line], titles: Sequence[str], header_row: int) -> None:
    """Refuse a second header that names the columns in another order, or other columns.

    A row that repeats the header exactly is left out when choices are guessed.
    """
    known = {fold_answer(title) for title in titles if title}
    for line in lines:
        head = list(itertools.islice(filter(None, line.cells), 3))
        if len(head) < 2 or not all(fold_answer(cell) in known for cell in head):
            continue
        cells = [fold_answer(cell) for cell in line.cells]
        differing = [k for k, cell in enumerate(cells[: len(titles)]) if cell in known
                     and cell != fold_answer(titles[k])]  # fmt: skip
        if len(differing) > 1 and sum(cell in known for cell in cells) > 0.6 * line.n_filled:
            raise TableError(
                f"Row {line.number:,} names the columns again, in another order than row "
                f"{header_row:,}. Two files seem to be pasted together: upload each."
            )


def _repeated_headers(
    header: Sequence[str],
    wordings: Sequence[str],
    lines: Sequence[Line],
    rows: Sequence[Sequence[str]],
) -> Iterator[int]:
    """Yield the rows that repeat the header, as in files that were pasted together."""
    names = [fold_answer(title) for title in header]
    asked = [fold_answer(wording) for wording in wordings]
    for line, row in zip(lines, rows, strict=True):
        filled = [(cell, k) for k, cell in enumerate(row) if cell]
        if len(filled) < 2:
            continue
        is_header = all(fold_answer(cell) == names[k] for cell, k in filled) or (
            bool(asked) and all(fold_answer(cell) == asked[k] for cell, k in filled)
        )
        if is_header or sum(map(is_import_id, row)) > 0.5 * len(filled):
            yield line.number


def _foot_rows(lines: Sequence[Line], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the rows at the foot that are no students: a total, a note, the time of writing.

    A number alone is a total if it is the number of rows above it, and does not continue ids that
    count up.
    """
    found: list[int] = []
    for k, (line, row) in reversed(list(enumerate(zip(lines, rows, strict=True)))):
        filled = [cell for cell in row if cell]
        is_alone = width >= _MIN_BESIDE and len(filled) == 1 and bool(row[0])
        is_note = is_alone and (" " in row[0] or ":" in row[0])
        is_note |= not found and _is_count(rows, k)
        if not is_note and not (filled and _NOTE.match(filled[0]) and len(filled) < width):
            break
        found.append(line.number)
    return found if len(found) < min(6, len(rows) - 1) else []


def _is_count(rows: Sequence[Sequence[str]], k: int) -> bool:
    """Return True if row k holds only the number of rows above it."""
    filled = [(j, cell) for j, cell in enumerate(rows[k]) if cell]
    if len(filled) != 1 or len(rows[k]) < 2 or k < 3 or filled[0][1] != str(k):
        return False
    return rows[k - 1][filled[0][0]] != str(k - 1)


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
