"""Read the sheets of an XLSX workbook without trusting its size, its XML or its formulas."""

import datetime
import io
import zipfile
import zlib
from typing import Any

import openpyxl
from defusedxml.common import DefusedXmlException
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

from webapp.cohorts.tables.source import Line, Sheet, Source, TableError, clean_cell
from webapp.cohorts.tables.table import MAX_COLUMNS, MAX_ROWS, MAX_UNZIPPED_BYTES

# openpyxl reads XML through defusedxml when that is installed, as it is: entity bombs are refused.
_MAX_MEMBERS = 2_000
_MAX_RATIO = 200
_MAX_SHEETS = 40
_MAX_CELLS = 4_000_000  # of all sheets together


def read_xlsx(data: bytes) -> Source:
    """Read the sheets that are shown as text; raise TableError naming what is wrong.

    Hidden sheets hold lists for menus, or what somebody meant to be rid of; they are read only
    where no other has cells.
    """
    _check_unzipped_size(data)
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, keep_links=False)
    except (InvalidFileException, DefusedXmlException, *_PARSE_ERRORS) as error:
        raise TableError("The XLSX file is damaged and cannot be read.") from error
    try:
        return _read_sheets(workbook)
    except (DefusedXmlException, *_PARSE_ERRORS) as error:
        if isinstance(error, TableError):
            raise
        raise TableError("A sheet of the XLSX file is damaged.") from error
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


def _read_sheets(workbook: Any) -> Source:
    shown = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
    hidden = [sheet for sheet in workbook.worksheets if sheet not in shown]
    for some in (shown, hidden):
        if len(some) > _MAX_SHEETS:
            raise TableError(f"The file has {len(some)} sheets; at most {_MAX_SHEETS} are read.")
        sheets, n_cells = [], 0
        for sheet in some:
            read = _read_sheet(sheet, several=len(some) > 1)
            n_cells += sum(len(line.cells) for line in read.lines)
            if n_cells > _MAX_CELLS:
                raise TableError(f"The file has more than {_MAX_CELLS:,} cells, the most read.")
            sheets.append(read)
        if any(sheet.lines for sheet in sheets):
            return Source(tuple(sheets), "XLSX")
    raise TableError("The XLSX file has no sheet with cells.")


def _read_sheet(sheet: Any, *, several: bool) -> Sheet:
    name = f"sheet “{sheet.title[:40]}”" if several else "sheet"
    # A sheet may declare more cells than it has; what is really there is counted below.
    sheet.reset_dimensions()
    lines: list[Line] = []
    for row_number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        width = _used_width(values)
        if width > MAX_COLUMNS:
            raise TableError(f"The {name} has {width:,} columns; at most {MAX_COLUMNS} are read.")
        cells = tuple(clean_cell(_as_text(value)) for value in values[:width])
        if not any(cells):
            continue
        if len(lines) > MAX_ROWS:
            raise TableError(f"The {name} has more than {MAX_ROWS:,} rows, the most that is read.")
        lines.append(Line(row_number, cells))
    return Sheet(sheet.title, tuple(lines))


def _used_width(values: tuple[Any, ...]) -> int:
    width = len(values)
    while width and values[width - 1] is None:
        width -= 1
    return width


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
