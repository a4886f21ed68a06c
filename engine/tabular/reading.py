"""Reader of the bytes of any table: the only entry for every file of rows."""

import zlib

from engine.tabular.csv_reading import read_csv
from engine.tabular.layout import find_layout
from engine.tabular.sniffing import sniff_format
from engine.tabular.source import ON_PAGES, Limits, Source, TableError
from engine.tabular.table import Table, build_table

_GZIP = b"\x1f\x8b"


def check_file_size(size: int, limits: Limits = ON_PAGES) -> None:
    """Raise TableError if a file of ``size`` bytes is larger than the limit."""
    if size > limits.file_bytes:
        limit = limits.file_bytes // (1024 * 1024)
        raise TableError(f"The file has {size / 1024**2:.1f} MB; at most {limit} MB are read.")


def read_source(data: bytes, limits: Limits = ON_PAGES) -> Source:
    """Read the bytes of an uploaded CSV or XLSX file as they stand, all sheets.

    Raises TableError with one sentence naming the problem and its place.
    """
    check_file_size(len(data), limits)
    if data.startswith(_GZIP):
        data = _unpacked(data, limits)
    if sniff_format(data) == "XLSX":
        return _read_xlsx(data, limits)
    return read_csv(data, limits)


def _unpacked(data: bytes, limits: Limits) -> bytes:
    """Return the content of a GZIP file, if it is not larger than a workbook may unpack to."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        content = unpacker.decompress(data, limits.unzipped_bytes)
    except zlib.error as error:
        raise TableError("The file is a damaged GZIP archive. Nothing was saved.") from error
    if unpacker.unconsumed_tail:
        limit = limits.unzipped_bytes // (1024 * 1024)
        raise TableError(f"The GZIP archive unpacks to more than {limit} MB, the most read.")
    if not unpacker.eof:
        raise TableError("The GZIP archive ends before its end. Nothing was saved.")
    return content


def _read_xlsx(data: bytes, limits: Limits) -> Source:
    try:  # the engine alone reads CSV only; XLSX needs the extra "tables"
        from engine.tabular.xlsx_reading import read_xlsx
    except ImportError as error:
        raise TableError(
            "The file is XLSX, which needs defusedxml: "
            "pip install 'bethe-hall[tables]', or save it as CSV."
        ) from error
    return read_xlsx(data, limits)


def read_table(data: bytes, limits: Limits = ON_PAGES) -> Table:
    """Read a file and return its most likely table."""
    source = read_source(data, limits)
    return build_table(source, find_layout(source))
