"""Tables as CSV and XLSX, as every export writes them.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula. XLSX keeps
text as text; CSV marks such cells with an apostrophe unless it is to be exact.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from defusedcsv import csv as defused_csv
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

CSV = "text/csv; charset=utf-8"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
Rows = Iterable[Sequence[Any]]


def table_file(
    title: str, rows: Rows, file_format: str, *, exact: bool = False
) -> tuple[bytes, str]:
    """Return a table as "csv" or "xlsx" with its content type; its first row is the header."""
    if file_format == "xlsx":
        return as_xlsx({title: rows}), XLSX
    return as_csv(rows, exact=exact), CSV


def as_csv(rows: Rows, *, exact: bool = False) -> bytes:
    """Return CSV in UTF-8 with a byte order mark; ``exact`` leaves cells as they are."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer) if exact else defused_csv.writer(buffer)
    writer.writerows(rows)
    return b"\xef\xbb\xbf" + buffer.getvalue().encode()


def as_xlsx(sheets: Mapping[str, Rows]) -> bytes:
    """Return a workbook of the named sheets; text stays text."""
    workbook = Workbook(write_only=True)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title[:31])
        for row in rows:
            sheet.append([_cell(sheet, value) for value in row])
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def _cell(sheet: Any, value: Any) -> WriteOnlyCell:
    cell = WriteOnlyCell(sheet, value=value)
    if isinstance(value, str):
        cell.data_type = "s"  # openpyxl would take a leading "=" for a formula
    return cell
