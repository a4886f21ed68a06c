"""Read a CSV file as text cells, refusing whatever is not one, in one clear sentence."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.core.errors import InvalidProblemError

MAX_BYTES = 200 * 1024 * 1024
MAX_COLUMNS = 2_000
MAX_CELL = 2_000  # characters; an answer is a phrase, not a file
_FORMULA = re.compile(r"^(?:[=@]|[+-]\s*[A-Za-z(])")
_NOT_A_NUMBER = {"nan", "inf", "-inf", "+inf", "infinity", "-infinity"}
_SIGNATURES = (
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "an XLSX or ZIP file"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x1f\x8b", "a compressed file"),
)


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A header and rows of stripped text cells; row numbers in messages count the header as 1.

    Parameters
    ----------
    header : tuple of str, all different and none empty.
    rows : tuple of tuples of str, each as long as the header.
    line_numbers : tuple of int, the line in the file where every row ends.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    line_numbers: tuple[int, ...]


def read_csv_table(
    path: Path | str, *, is_header: Callable[[tuple[str, ...]], bool] | None = None
) -> CsvTable:
    """Read a comma-separated UTF-8 file; blank lines are skipped.

    Parameters
    ----------
    path : Path or str
    is_header : callable, optional
        Whether the cells of the first line name the columns. Where they do not, that line is the
        first row and the header reads "column 1", "column 2", ... By default it is a header.

    Raises
    ------
    InvalidProblemError
        One sentence naming the file, and the row and column where there is one.
    """
    name = Path(path).name
    try:
        size = Path(path).stat().st_size
        if size > MAX_BYTES:
            raise InvalidProblemError(f"{name} has {size / 1e6:.0f} MB; at most 200 MB are read.")
        data = Path(path).read_bytes()
    except IsADirectoryError as error:
        raise InvalidProblemError(f"{name} is a folder, not a file.") from error
    except OSError as error:
        raise InvalidProblemError(f"{name} cannot be read: {error.strerror}.") from error
    return parse_csv_table(data, name, is_header=is_header)


def parse_csv_table(
    data: bytes, name: str, *, is_header: Callable[[tuple[str, ...]], bool] | None = None
) -> CsvTable:
    """Read the bytes of a file; see ``read_csv_table``."""
    text = _decode(data, name)
    header: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = []
    lines: list[int] = []
    # Unless it is strict, a quote that is never closed makes one cell of the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    first_line = 1  # of the row that is being read
    try:
        for cells in reader:
            first_line = reader.line_num + 1
            row = tuple(cell.strip() for cell in cells)
            if not any(row):
                continue
            if not header:
                if is_header is None or is_header(row):
                    header = _check_header(row, name)
                    continue
                header = tuple(f"column {k}" for k in range(1, len(row) + 1))
            _check_row(row, header, reader.line_num, name)
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InvalidProblemError(_csv_error(name, first_line, error)) from error
    if not header:
        raise InvalidProblemError(f"{name} is empty.")
    if not rows:
        raise InvalidProblemError(f"{name} has a header but no rows.")
    return CsvTable(header, tuple(rows), tuple(lines))


def _csv_error(name: str, line: int, error: csv.Error) -> str:
    if "field larger" in str(error):
        return f"{name}, row {line}: a cell has more than {MAX_CELL:,} characters."
    return f"{name}, row {line}: the quotes do not match ({error})."


def _decode(data: bytes, name: str) -> str:
    if not data.strip():
        raise InvalidProblemError(f"{name} is empty.")
    for signature, what in _SIGNATURES:
        if data.startswith(signature):
            raise InvalidProblemError(f"{name} is {what}, not CSV.")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InvalidProblemError(f"{name} is UTF-16 text; save it as CSV UTF-8.")
    if b"\x00" in data:
        raise InvalidProblemError(f"{name} holds binary data, not CSV.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise InvalidProblemError(
            f"{name}, row {row}: byte 0x{data[error.start]:02X} is not UTF-8; save it as CSV UTF-8."
        ) from error


def _check_header(row: tuple[str, ...], name: str) -> tuple[str, ...]:
    if len(row) > MAX_COLUMNS:
        raise InvalidProblemError(
            f"{name} has {len(row):,} columns; at most {MAX_COLUMNS:,} can be read."
        )
    if len(row) == 1:
        for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in row[0]:
                raise InvalidProblemError(
                    f"{name} is separated by {word}; expected commas between the columns."
                )
    seen: dict[str, int] = {}
    for number, title in enumerate(row, start=1):
        if not title:
            raise InvalidProblemError(f"{name}: column {number} has no name in the header.")
        if len(title) > MAX_CELL:
            raise InvalidProblemError(
                f"{name}: the name of column {number} has more than {MAX_CELL:,} characters."
            )
        if title in seen:
            raise InvalidProblemError(
                f"{name}: columns {seen[title]} and {number} are both called {title!r}."
            )
        seen[title] = number
    return row


def _check_row(row: tuple[str, ...], header: tuple[str, ...], line: int, name: str) -> None:
    if len(row) != len(header):
        raise InvalidProblemError(
            f"{name}, row {line}: expected {len(header)} cells, received {len(row)}."
        )
    for title, cell in zip(header, row, strict=True):
        if len(cell) > MAX_CELL:
            raise InvalidProblemError(
                f"{name}, row {line}, {title}: the cell has more than {MAX_CELL:,} characters."
            )
        if _FORMULA.match(cell):
            raise InvalidProblemError(
                f"{name}, row {line}, {title}: {cell[:30]!r} is a formula, not an answer."
            )
        if cell.lower() in _NOT_A_NUMBER:
            raise InvalidProblemError(
                f"{name}, row {line}, {title}: {cell!r} is not an answer; leave a blank cell empty."
            )
