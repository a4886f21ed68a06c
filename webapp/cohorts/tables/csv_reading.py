"""Read comma-, semicolon-, tab- or bar-separated text."""

import csv
import io
import re
from collections import Counter

from webapp.cohorts.tables.decoding import decode
from webapp.cohorts.tables.source import Line, Sheet, Source, TableError, clean_cell
from webapp.cohorts.tables.table import MAX_COLUMNS, MAX_FILE_BYTES, MAX_ROWS

_DELIMITERS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated"}
_DELIMITERS["|"] = "bar-separated"
_SNIFFED_ROWS = 60

# A line that Excel writes and reads before the header, and shows to nobody.
_SEPARATOR_LINE = re.compile(r"sep=([,;\t|])(?:\r\n|\n|\r)", re.IGNORECASE)

# The csv module's own limit (131,072) would end in an error without a row; cells are checked
# where the table is built.
csv.field_size_limit(MAX_FILE_BYTES)


def read_csv(data: bytes) -> Source:
    """Read the bytes of a CSV file into one sheet; raise TableError naming row and column."""
    text, encoding = decode(data, "".join(_DELIMITERS))
    told = _SEPARATOR_LINE.match(text)
    text = text[told.end() :] if told else text
    delimiter = _sniff_delimiter(text, told[1] if told else "")
    lines: list[Line] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    row_number = 0
    try:
        for row_number, cells in enumerate(reader, start=1):
            _check_width(len(cells))
            if len(lines) > MAX_ROWS:
                raise TableError(
                    f"The file has more than {MAX_ROWS:,} rows; at most that many are read."
                )
            if any(cells):
                cleaned = tuple(map(clean_cell, cells))
                if any(cleaned):
                    lines.append(Line(row_number, cleaned))
    except csv.Error as error:
        raise TableError(
            f"Row {row_number + 1:,}: a quotation mark is not closed or not doubled."
        ) from error
    return Source((Sheet("", tuple(lines)),), "CSV", encoding, _DELIMITERS[delimiter])


def _check_width(width: int) -> None:
    if width > MAX_COLUMNS:
        raise TableError(
            f"The file has {width:,} columns; at most {MAX_COLUMNS} are read. "
            "Remove the columns that are not needed."
        )


def _sniff_delimiter(text: str, told: str) -> str:
    """Choose the delimiter under which most first rows are equally wide; ``told`` if it fits.

    Of two that fit alike a comma is the less likely one: decimals and phrases hold commas.
    """
    fits = {delimiter: _fit(text, delimiter) for delimiter in _DELIMITERS}
    best = told if fits.get(told, (0, 0))[1] > 1 else max(fits, key=lambda d: (*fits[d], d != ","))
    if fits[best][1] < 2:
        raise TableError(
            "Row 1 has only one column. Separate columns by commas, semicolons or tabs."
        )
    return best


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
        pass  # the rows before it tell enough; the reader will name the row
    wide = Counter(width for width in widths if width > 1)
    if not wide:
        return 0.0, 0
    usual, times = max(wide.items(), key=lambda one: (one[1], one[0]))
    return times / len(widths), usual
