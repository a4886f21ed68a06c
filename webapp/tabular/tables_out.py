"""Tables as CSV and XLSX: the one place that writes exports.

A spreadsheet program runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and
students type the content of cells. Every cell of every export is therefore defused, headings too.
In CSV, a value that looks like a formula gets an apostrophe in front; in XLSX, text is marked as
text. Our own readers of such a file remove the mark with :func:`without_mark`.

A housing office's own value (a room named "-1.03") may have to arrive unchanged. An export that
offers this choice wraps such values in :class:`Verbatim`; values that students typed are never
wrapped.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.functional import Promise
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

CSV = "text/csv; charset=utf-8"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MARK = "'"
Rows = Iterable[Sequence[Any]]

_BYTE_ORDER_MARK = "\ufeff"  # marks UTF-8 for spreadsheet programs
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # with their full-width forms
_BLANK = "[\\s\u200b\ufeff\"']*"
_STARTS = re.compile(f"{_BLANK}[{_SIGNS}|%]|[\t\r\n]")
_HARMLESS = re.compile(r"-|-?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")  # a dash, or a number
# If the reader's own separator is a semicolon, or a line break ends a cell that another program
# quoted, the rest becomes a cell. A line that begins with a dash and a blank is a list.
_RUNS = "(?=[=@\uff1d\uff20]|[+\\-\uff0b\uff0d][^\\s\\d])"
_INSIDE = re.compile(f"([;\t\r\n]{_BLANK}){_RUNS}")
_MARKED_INSIDE = re.compile(f"([;\t\r\n]{_BLANK}){MARK}{_RUNS}")
_SUSPECT = re.compile(f"[\x00-\x1f;=+@|%\uff1d\uff0b\uff0d\uff20]|^{_BLANK}-")  # for speed alone
_TITLE = re.compile(r"[\\*?:/\[\]]")  # not allowed in the name of a sheet


class Verbatim(str):
    """Text that a CSV file holds unchanged, because the reader of the file chose so."""

    __slots__ = ()


def defused(value: Any) -> Any:
    """Return a value that no spreadsheet program runs in a CSV cell; numbers stay numbers."""
    if not isinstance(value, str) or isinstance(value, Verbatim) or not _SUSPECT.search(value):
        return value
    value = ILLEGAL_CHARACTERS_RE.sub("", value)
    if _HARMLESS.fullmatch(value):
        return value
    value = _INSIDE.sub(rf"\1{MARK}", value)
    return MARK + value if _STARTS.match(value) else value


def without_mark(cell: str) -> str:
    """Return the content of a cell without the mark of :func:`defused`."""
    cell = _MARKED_INSIDE.sub(r"\1", cell)
    rest = cell.removeprefix(MARK)
    return rest if rest != cell and _STARTS.match(rest) else cell


def table_file(title: str, rows: Rows, file_format: str) -> tuple[bytes, str]:
    """Return a table as "csv" or "xlsx" with its content type; its first row is the header."""
    return (as_xlsx({title: rows}), XLSX) if file_format == "xlsx" else (as_csv(rows), CSV)


def as_csv(rows: Rows) -> bytes:
    """Return CSV in UTF-8 with a byte order mark."""
    return "".join(csv_lines(rows)).encode("utf-8", "replace")


def csv_lines(rows: Rows) -> Iterator[str]:
    """Yield CSV line by line, for an export that is sent while it is made."""
    buffer = io.StringIO(newline="")
    buffer.write(_BYTE_ORDER_MARK)
    writer = csv.writer(buffer)
    for row in rows:
        writer.writerow([defused(value) for value in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def as_xlsx(sheets: Mapping[str, Rows]) -> bytes:
    """Return a workbook of the named sheets; text stays text, even when it is edited."""
    workbook = Workbook(write_only=True)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(_TITLE.sub(" ", title)[:31].strip("' ") or "Table")
        for row in rows:
            sheet.append([_cell(sheet, value) for value in row])
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def _cell(sheet: Any, value: Any) -> WriteOnlyCell:
    if isinstance(value, Promise):  # a text that is translated when it is shown
        value = str(value)
    if not isinstance(value, str):
        return WriteOnlyCell(sheet, value=value)
    value = ILLEGAL_CHARACTERS_RE.sub("", value)
    cell = WriteOnlyCell(sheet, value=str(value))
    cell.data_type = "s"  # openpyxl reads a leading "=" as a formula and "#N/A" as an error
    if _STARTS.match(value):
        cell.quotePrefix = True
    return cell
