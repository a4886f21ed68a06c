"""Reader of the command line's tables; every error names the file."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from engine.core.errors import InvalidProblemError
from engine.tabular.layout import find_layout
from engine.tabular.reading import read_source
from engine.tabular.source import Limits, Source
from engine.tabular.table import build_table

ON_COMMAND_LINE = Limits(
    file_bytes=200 * 1024 * 1024, unzipped_bytes=1024**3, rows=1_000_000, columns=2_000
)
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A header and rows of text cells; row numbers in messages are those of a spreadsheet.

    Parameters
    ----------
    header : tuple of str, all different and none empty.
    rows : tuple of tuples of str, each as long as the header.
    line_numbers : tuple of int, the number of every row in the file.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    line_numbers: tuple[int, ...]


def read_csv_table(
    path: Path | str,
    *,
    is_header: Callable[[tuple[str, ...]], bool] | None = None,
    may_be_short: bool = False,
) -> CsvTable:
    """Read the rows of a CSV or XLSX file, whatever its delimiter and encoding.

    Parameters
    ----------
    path : Path or str
        A file, or "-" for standard input.
    is_header : callable, optional
        True if the first row names the columns. If not, that row is the first one and the header
        reads "column 1", "column 2", ... By default the header is detected.
    may_be_short : bool
        True if rows of different kinds have different numbers of cells; blanks complete them.

    Raises
    ------
    InvalidProblemError
        One sentence naming the file, and the row and column if there is one.
    """
    source = read_file(path)
    source = _completed(source) if may_be_short else source
    with naming(path):
        layout = find_layout(source)
        first = source.sheets[layout.sheet].lines[0]
        if is_header is not None:
            row = first.number if is_header(first.cells) else 0
            layout = replace(layout, header_row=row, wording_row=0, extra_rows=(), joined_rows=())
        table = build_table(source, layout, min_columns=1)
    return CsvTable(table.header, table.rows, table.row_numbers)


def _completed(source: Source) -> Source:
    """Return the source with blanks after the cells of shorter rows."""
    sheets = []
    for sheet in source.sheets:
        width = max((len(line.cells) for line in sheet.lines), default=0)
        lines = tuple(
            replace(line, cells=line.cells + ("",) * (width - len(line.cells)))
            for line in sheet.lines
        )
        sheets.append(replace(sheet, lines=lines))
    return replace(source, sheets=tuple(sheets))


def read_file(path: Path | str) -> Source:
    """Return all sheets of a file; raise InvalidProblemError in one sentence that names it."""
    with naming(path):
        return read_source(_read_bytes(path), ON_COMMAND_LINE)


def file_name(path: Path | str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if str(path) == _STANDARD_INPUT else Path(path).name


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Put the name of a file before an error in it: "survey.csv, row 6: ..."."""
    try:
        yield
    except InvalidProblemError as error:
        name = file_name(path)
        sentence = re.sub(r" Nothing was (?:saved|read)\.$", "", str(error))
        if sentence.startswith(name):
            raise
        if sentence.startswith("Row "):
            raise type(error)(f"{name}, r{sentence[1:]}") from error
        if sentence.startswith("The file "):
            raise type(error)(f"{name} {sentence.removeprefix('The file ')}") from error
        raise type(error)(f"{name}: {sentence}") from error


def _read_bytes(path: Path | str) -> bytes:
    name = file_name(path)
    try:
        if str(path) == _STANDARD_INPUT:
            return sys.stdin.buffer.read(ON_COMMAND_LINE.file_bytes + 1)
        size = Path(path).stat().st_size
        if size > ON_COMMAND_LINE.file_bytes:
            raise InvalidProblemError(f"{name} has {size / 1e6:.0f} MB; at most 200 MB are read.")
        return Path(path).read_bytes()
    except IsADirectoryError as error:
        raise InvalidProblemError(f"{name} is a folder, not a file.") from error
    except OSError as error:
        raise InvalidProblemError(f"{name} cannot be read: {error.strerror}.") from error
