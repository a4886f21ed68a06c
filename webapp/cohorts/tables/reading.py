"""The one door for uploaded tables."""

from webapp.cohorts.tables.csv_reading import read_csv
from webapp.cohorts.tables.layout import find_layout
from webapp.cohorts.tables.sniffing import sniff_format
from webapp.cohorts.tables.source import Source, TableError
from webapp.cohorts.tables.table import MAX_FILE_BYTES, Table, build_table
from webapp.cohorts.tables.xlsx_reading import read_xlsx


def check_file_size(size: int) -> None:
    """Raise TableError when a file of ``size`` bytes is larger than what is read."""
    if size > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // (1024 * 1024)
        raise TableError(f"The file has {size / 1024**2:.1f} MB; at most {limit} MB are read.")


def read_source(data: bytes) -> Source:
    """Read the bytes of an uploaded CSV or XLSX file as they stand, all sheets.

    Raises TableError with one sentence naming what is wrong and where.
    """
    check_file_size(len(data))
    return read_xlsx(data) if sniff_format(data) == "XLSX" else read_csv(data)


def read_table(data: bytes) -> Table:
    """Read a file and take from it the table that it most likely means."""
    source = read_source(data)
    return build_table(source, find_layout(source))
