"""The one door for uploaded tables."""

from webapp.cohorts.tables.csv_reading import read_csv
from webapp.cohorts.tables.sniffing import sniff_format
from webapp.cohorts.tables.table import MAX_FILE_BYTES, Table, TableError
from webapp.cohorts.tables.xlsx_reading import read_xlsx


def check_file_size(size: int) -> None:
    """Raise TableError when a file of ``size`` bytes is larger than what is read."""
    if size > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // (1024 * 1024)
        raise TableError(f"The file has {size / 1024**2:.1f} MB; at most {limit} MB are read.")


def read_table(data: bytes) -> Table:
    """Read the bytes of an uploaded CSV or XLSX file.

    Raises TableError with one sentence naming what is wrong and where.
    """
    check_file_size(len(data))
    if sniff_format(data) == "XLSX":
        table = read_xlsx(data)
    else:
        table = read_csv(data)
    _check_formulas(table)
    return table


def _check_formulas(table: Table) -> None:
    for number, row in zip(table.row_numbers, table.rows, strict=True):
        for name, cell in zip(table.header, row, strict=True):
            if cell.startswith("=") and len(cell) > 1:
                shown = cell if len(cell) <= 40 else cell[:39] + "…"
                raise TableError(
                    f"Row {number:,}, {name}: the cell holds a formula ({shown}). "
                    "Replace formulas by their values."
                )
