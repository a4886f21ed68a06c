"""Reader of comma-, semicolon-, tab- or bar-separated text."""

import csv
import io
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from engine.tabular.decoding import decode
from engine.tabular.source import Limits, Line, Sheet, Source, TableError, check_width, trimmed
from engine.tabular.text import clean_text

_DELIMITERS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated"}
_DELIMITERS["|"] = "bar-separated"
_SNIFFED_ROWS = 60
_LIMIT = threading.Lock()  # held while the csv module's limit is changed

# A line that Excel writes and reads before the header, and never shows.
_SEPARATOR_LINE = re.compile(r"\"?sep=([,;\t|])\"?(?:\r\n|\n|\r)", re.IGNORECASE)


def read_csv(data: bytes, limits: Limits) -> Source:
    """Read the bytes of a CSV file into one sheet; raise TableError naming row and column."""
    text, encoding = decode(data, "".join(_DELIMITERS))
    found = _SEPARATOR_LINE.match(text)
    text = text[found.end() :] if found else text
    delimiter = _sniff_delimiter(text, found[1] if found else "")
    with _long_cells(limits):
        rows = _read_rows(text, delimiter, limits)
    # Spreadsheets end every row with a delimiter for each column ever touched. A blank within the
    # table stays, because the width of a row shows that it lacks a cell.
    used = max((len(row) for _, row, _ in rows), default=0)
    lines = tuple(
        Line(number, row + ("",) * (min(width, used) - len(row))) for number, row, width in rows
    )
    return Source((Sheet("", lines),), "CSV", encoding, _DELIMITERS[delimiter])


def _read_rows(text: str, delimiter: str, limits: Limits) -> list[tuple[int, tuple[str, ...], int]]:
    """Return [(row number, cells up to the last filled one, number of cells as written)]."""
    rows: list[tuple[int, tuple[str, ...], int]] = []
    # Without strict mode, a quote that is never closed makes one cell of the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    stored = _StoredCells()
    row_number = 0
    try:
        for row_number, cells in enumerate(reader, start=1):
            row = trimmed([stored[cell] for cell in trimmed(cells)])
            check_width(len(row), limits)
            if len(rows) > limits.rows:
                raise TableError(
                    f"The file has more than {limits.rows:,} rows; at most that many are read."
                )
            if row:
                rows.append((row_number, row, len(cells)))
    except csv.Error as error:
        raise TableError(
            f"Row {row_number + 1:,}: a quotation mark is not closed or not doubled."
        ) from error
    return rows


class _StoredCells(dict[str, str]):
    """The stored form of every different cell; equal cells share one string."""

    def __missing__(self, cell: str) -> str:
        found = self[cell] = clean_text(cell)
        return found


@contextmanager
def _long_cells(limits: Limits) -> Iterator[None]:
    """Let cells be as long as the file.

    The csv module's limit of 131,072 characters would end in an error without a column; cells are
    checked where the table is built. The limit belongs to the whole process, so it is restored.
    """
    with _LIMIT:
        before = csv.field_size_limit(limits.file_bytes)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _sniff_delimiter(text: str, stated: str) -> str:
    """Choose the delimiter under which most first rows are equally wide; ``stated`` if it fits.

    If two fit alike, the comma is the less likely one: decimals and phrases hold commas.
    """
    fits = {delimiter: _fit(text, delimiter) for delimiter in _DELIMITERS}
    best = max(fits, key=lambda d: (*fits[d], d != ","))
    if fits.get(stated, (0, 0))[1] > 1:
        best = stated
    return best if fits[best][1] > 1 else ","  # a file of one column has no delimiter


def _fit(text: str, delimiter: str) -> tuple[float, int]:
    """Return (share of the first rows that have the usual width, that width)."""
    head = text[:400_000].lstrip("\r\n")
    widths: list[int] = []
    try:
        for cells in csv.reader(io.StringIO(head, newline=""), delimiter=delimiter):
            if any(cells):
                widths.append(len(cells))
            if len(widths) >= _SNIFFED_ROWS:
                break
    except csv.Error:
        pass  # the rows before it suffice; the reader will name the row
    wide = Counter(width for width in widths if width > 1)
    if not wide:
        return 0.0, 0
    usual, times = max(wide.items(), key=lambda one: (one[1], one[0]))
    return times / len(widths), usual
