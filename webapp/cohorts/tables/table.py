"""What every reader returns, the caps it keeps, and the one way in which it fails."""

import re
from dataclasses import dataclass

from webapp.common.errors import Refusal

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_UNZIPPED_BYTES = 200 * 1024 * 1024
MAX_ROWS = 20_000
MAX_COLUMNS = 500
MAX_CELL_CHARACTERS = 1_000
# Control characters but tab and line ends: no spreadsheet takes them back in an export.
NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


class TableError(Refusal):
    """A file that cannot be read as a table. The message is one sentence for staff."""


@dataclass(frozen=True, slots=True)
class Table:
    """A rectangular table of text.

    ``row_numbers`` are the line numbers that a spreadsheet shows (the header is row 1), so that a
    message about row 57 points at row 57 of the file even where empty lines were skipped.
    ``short_rows`` are those in which one cell was missing, which is read as a blank at the end.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_numbers: tuple[int, ...]
    file_format: str
    encoding: str = ""
    delimiter: str = ""
    short_rows: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows below the header."""
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.header)

    def column(self, index: int) -> tuple[str, ...]:
        """Return the cells of one column, top to bottom."""
        return tuple(row[index] for row in self.rows)

    @property
    def description(self) -> str:
        """Return how the file was read: 'comma-separated, UTF-8' or 'XLSX'."""
        if self.file_format == "XLSX":
            return "XLSX, first sheet"
        return f"{self.delimiter}, {self.encoding}"


def check_cell(text: str, row_number: int, column: str) -> None:
    """Raise TableError when a cell is too long or holds a character no text has."""
    if len(text) > MAX_CELL_CHARACTERS:
        raise TableError(
            f"Row {row_number:,}, {column}: the cell holds {len(text):,} characters; "
            f"at most {MAX_CELL_CHARACTERS:,} are read."
        )
    if NOT_TEXT.search(text):
        raise TableError(f"Row {row_number:,}, {column}: the cell holds a control character.")


def build_table(
    lines: list[tuple[int, tuple[str, ...]]],
    *,
    file_format: str,
    encoding: str = "",
    delimiter: str = "",
) -> Table:
    """Check header and shape of numbered lines and return the table.

    Raises TableError naming the row or column when there is no header, no student, an unnamed or
    repeated column, or a row of another length. Trailing empty cells are forgiven, and so is one
    missing cell: the preview warns of it, since it may be missing anywhere in its row.
    """
    lines = [(number, cells) for number, cells in lines if any(cells)]
    if not lines:
        raise TableError("The file is empty: a header and at least two rows are expected.")
    header = _checked_header(lines[0][1])
    if len(lines) == 1:
        raise TableError("The file has a header but no rows below it.")
    rows, numbers = [], []
    for number, cells in lines[1:]:
        rows.append(_fitted(cells, len(header), number))
        numbers.append(number)
    short = tuple(number for number, cells in lines[1:] if len(cells) < len(header))
    return Table(header, tuple(rows), tuple(numbers), file_format, encoding, delimiter, short)


def _checked_header(cells: tuple[str, ...]) -> tuple[str, ...]:
    header = list(cells)
    while header and not header[-1]:
        header.pop()
    seen: dict[str, int] = {}
    for position, name in enumerate(header, start=1):
        if not name:
            raise TableError(f"Column {position} has no name in the header. Name it or remove it.")
        key = name.casefold()
        if key in seen:
            raise TableError(
                f"Columns {seen[key]} and {position} are both called “{name}”. Rename one."
            )
        seen[key] = position
    return tuple(header)


def _fitted(cells: tuple[str, ...], width: int, number: int) -> tuple[str, ...]:
    if len(cells) > width and any(cells[width:]):
        raise TableError(
            f"Row {number:,} has {len(cells):,} cells, but the header has {width:,} columns."
        )
    if len(cells) < width and len(cells) < width - 1 and width > 2:
        missing = width - len(cells)
        raise TableError(
            f"Row {number:,} has {len(cells):,} cells, {missing:,} fewer than the header."
        )
    return tuple(cells[:width]) + ("",) * (width - len(cells))
