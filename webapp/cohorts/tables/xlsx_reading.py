"""Read the first sheet of an XLSX workbook without trusting its size, its XML or its formulas."""

import datetime
import io
import zipfile
import zlib
from typing import Any

import openpyxl
from defusedxml.common import DefusedXmlException
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

from webapp.cohorts.tables.table import (
    MAX_COLUMNS,
    MAX_ROWS,
    MAX_UNZIPPED_BYTES,
    Table,
    TableError,
    build_table,
    check_cell,
)

# openpyxl reads XML through defusedxml when that is installed, as it is: entity bombs are refused.
_MAX_MEMBERS = 2_000
_MAX_RATIO = 200


def read_xlsx(data: bytes) -> Table:
    """Read the first sheet into a table of text; raise TableError naming row and column."""
    _check_unzipped_size(data)
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, keep_links=False)
    except (InvalidFileException, DefusedXmlException, *_PARSE_ERRORS) as error:
        raise TableError("The XLSX file is damaged and cannot be read.") from error
    try:
        return _read_first_sheet(workbook)
    except (DefusedXmlException, *_PARSE_ERRORS) as error:
        if isinstance(error, TableError):
            raise
        raise TableError("The first sheet of the XLSX file is damaged.") from error
    finally:
        workbook.close()


_PARSE_ERRORS = (
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    SyntaxError,
    OSError,
    EOFError,
    RuntimeError,  # an encrypted part, or one packed in a way that zipfile does not know
    zipfile.BadZipFile,
    zlib.error,
)


def _check_unzipped_size(data: bytes) -> None:
    """Refuse a zip bomb by what its directory declares; zipfile enforces the declared sizes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise TableError("The file is a damaged ZIP or XLSX file. Nothing was saved.") from error
    total = sum(member.file_size for member in members)
    limit = MAX_UNZIPPED_BYTES
    bomb = total > limit or (total > 10_000_000 and total > _MAX_RATIO * len(data))
    if bomb or len(members) > _MAX_MEMBERS:
        raise TableError(
            f"The XLSX file unpacks to {total / 1e6:,.0f} MB, far more than a survey needs. "
            "Nothing was read."
        )


def _read_first_sheet(workbook: Any) -> Table:
    sheets = workbook.worksheets
    if not sheets:
        raise TableError("The XLSX file has no sheet with cells.")
    sheet = sheets[0]
    # A sheet may declare more cells than it has; what is really there is counted below.
    sheet.reset_dimensions()
    lines: list[tuple[int, tuple[str, ...]]] = []
    header: tuple[str, ...] = ()
    for row_number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        width = _used_width(values)
        if width > MAX_COLUMNS:
            raise TableError(f"The sheet has {width:,} columns; at most {MAX_COLUMNS} are read.")
        if row_number > MAX_ROWS + 1:
            raise TableError(f"The sheet has more than {MAX_ROWS:,} rows, the most that is read.")
        cells = tuple(
            _cell_text(value, row_number, position, header)
            for position, value in enumerate(values[:width])
        )
        header = header or cells
        padded = cells + ("",) * max(0, len(header) - len(cells))
        lines.append((row_number, padded))
    return build_table(lines, file_format="XLSX")


def _used_width(values: tuple[Any, ...]) -> int:
    width = len(values)
    while width and values[width - 1] is None:
        width -= 1
    return width


def _cell_text(value: Any, row_number: int, position: int, header: tuple[str, ...]) -> str:
    text = _as_text(value)
    name = header[position] if position < len(header) else f"column {position + 1}"
    check_cell(text, row_number, name)
    return text.strip()


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time(0):
        return value.date().isoformat()
    if isinstance(value, datetime.time) and not value.second and not value.microsecond:
        return value.isoformat("minutes")  # as a CSV file of the same survey has it
    if isinstance(value, ArrayFormula | DataTableFormula):
        text = getattr(value, "text", "") or "table"  # a data table keeps no text
        return f"={text.lstrip('=')}"
    return str(value)
