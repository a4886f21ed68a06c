"""Read comma-, semicolon-, tab- or bar-separated text."""

import csv
import io
import re

from webapp.cohorts.tables.table import (
    MAX_CELL_CHARACTERS,
    MAX_COLUMNS,
    MAX_FILE_BYTES,
    MAX_ROWS,
    NOT_TEXT,
    Table,
    TableError,
    build_table,
    check_cell,
)

_DELIMITERS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated"}
_DELIMITERS["|"] = "bar-separated"

# A line that Excel writes and reads before the header, and shows to nobody.
_SEPARATOR_LINE = re.compile(r"sep=([,;\t|])(?:\r\n|\n|\r)", re.IGNORECASE)

# The csv module's own limit (131,072) would end in an error without a row; cells are checked here.
csv.field_size_limit(MAX_FILE_BYTES)


def read_csv(data: bytes) -> Table:
    """Read the bytes of a CSV file into a table; raise TableError naming row and column."""
    text, encoding = _decode(data)
    told = _SEPARATOR_LINE.match(text)
    text = text[told.end() :] if told else text
    delimiter = _sniff_delimiter(text, told[1] if told else "")
    lines: list[tuple[int, tuple[str, ...]]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    row_number, header = 0, ()
    try:
        for row_number, cells in enumerate(reader, start=1):
            if row_number == 1:
                header = tuple(cells)
                _check_width(len(cells))
            if len(lines) > MAX_ROWS:
                raise TableError(
                    f"The file has more than {MAX_ROWS:,} rows; at most that many are read."
                )
            lines.append((row_number, _clean_cells(cells, row_number, header)))
    except csv.Error as error:
        raise TableError(
            f"Row {row_number + 1:,}: a quotation mark is not closed or not doubled."
        ) from error
    return build_table(
        lines, file_format="CSV", encoding=encoding, delimiter=_DELIMITERS[delimiter]
    )


def _clean_cells(cells: list[str], row_number: int, header: tuple[str, ...]) -> tuple[str, ...]:
    _check_width(len(cells))
    for position, cell in enumerate(cells):
        if len(cell) > MAX_CELL_CHARACTERS or NOT_TEXT.search(cell):
            check_cell(cell, row_number, _column_name(header, position))
    return tuple(cell.strip() for cell in cells)


def _column_name(header: tuple[str, ...], position: int) -> str:
    name = header[position] if position < len(header) else ""
    return name if 0 < len(name) <= 80 else f"column {position + 1}"


def _check_width(width: int) -> None:
    if width > MAX_COLUMNS:
        raise TableError(
            f"The file has {width:,} columns; at most {MAX_COLUMNS} are read. "
            "Remove the columns that are not needed."
        )


def _decode(data: bytes) -> tuple[str, str]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _decode_utf16(data), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError as error:
        before = data[: error.start]
        row = before.count(b"\n") + 1
        line = before.rsplit(b"\n", 1)[-1].decode("utf-8", "replace")
        header = data.split(b"\n", 1)[0].decode("utf-8", "replace")
        delimiter = _most_frequent_delimiter(header)
        position = line.count(delimiter) + 1
        raise TableError(
            f"Row {row:,}, column {position}: the text is not UTF-8 (it looks like Latin-1). "
            "Save the file as “CSV UTF-8”."
        ) from error


def _decode_utf16(data: bytes) -> str:
    try:
        return data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise TableError(
            "The file begins like UTF-16 text but is not. Save the file as “CSV UTF-8”."
        ) from error


def _most_frequent_delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _sniff_delimiter(text: str, told: str) -> str:
    """Choose the delimiter of the header, read with quotes respected; ``told`` if it fits."""
    head = text[:200_000].lstrip("\r\n")
    widths = {}
    for delimiter in _DELIMITERS:
        try:
            first = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        except csv.Error:
            first = []
        widths[delimiter] = len(first)
    best = told if widths.get(told, 0) > 1 else max(widths, key=lambda one: widths[one])
    if widths[best] < 2:
        raise TableError(
            "Row 1 has only one column. Separate columns by commas, semicolons or tabs."
        )
    return best
