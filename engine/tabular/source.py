"""Raw content of a file: its sheets, row by row, before any row is taken for a header."""

from dataclasses import dataclass

from engine.core.errors import InvalidProblemError

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_UNZIPPED_BYTES = 200 * 1024 * 1024
MAX_ROWS = 20_000
MAX_COLUMNS = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest accepted file; by default the limit of a page, where many people upload at once."""

    file_bytes: int = MAX_FILE_BYTES
    unzipped_bytes: int = MAX_UNZIPPED_BYTES
    rows: int = MAX_ROWS
    columns: int = MAX_COLUMNS


ON_PAGES = Limits()


class TableError(InvalidProblemError):
    """Error of a file that cannot be read as a table. The message is one sentence for staff."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row that is not empty, under the number that a spreadsheet shows."""

    number: int
    cells: tuple[str, ...]
    is_hidden: bool = False

    @property
    def n_filled(self) -> int:
        """Return the number of cells that are not empty."""
        return sum(map(bool, self.cells))


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of one sheet; a CSV file is one sheet without a name.

    ``hidden_columns`` are positions from 0. ``merges`` are the cells that are merged across
    columns, as (row number, first column, last column); a cell that is merged downwards is filled
    in all of its rows already.
    """

    name: str
    lines: tuple[Line, ...]
    hidden_columns: tuple[int, ...] = ()
    merges: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """All content of a file, and how its bytes were read."""

    sheets: tuple[Sheet, ...]
    file_format: str
    encoding: str = ""
    delimiter: str = ""


def check_width(width: int, limits: Limits, where: str = "The file") -> None:
    """Raise TableError if a row that ends with a filled cell is wider than the limit."""
    if width > limits.columns:
        raise TableError(
            f"{where} has {width:,} columns; at most {limits.columns:,} are read. "
            "Remove the columns that are not needed."
        )


def trimmed(cells: list[str]) -> tuple[str, ...]:
    """Return the cells of a row without the empty ones at its end."""
    width = len(cells)
    while width and not cells[width - 1]:
        width -= 1
    return tuple(cells[:width])
