"""An uploaded file as it stands: its sheets, row by row, before anything is taken for a header."""

import re
import unicodedata
from dataclasses import dataclass

from webapp.common.errors import Refusal

# Spaces that word processors and web forms put in place of a plain one.
_ODD_SPACES = re.compile("[\u00a0\u2007\u202f\u3000]")
# How Excel and student systems keep leading zeros in a CSV file: ="00123".
_QUOTED_VALUE = re.compile(r'="([^"]*)"')


class TableError(Refusal):
    """A file that cannot be read as a table. The message is one sentence for staff."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row that is not empty, under the number that a spreadsheet shows."""

    number: int
    cells: tuple[str, ...]

    @property
    def n_filled(self) -> int:
        """How many of its cells hold something."""
        return sum(map(bool, self.cells))


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of one sheet; a CSV file is one sheet without a name."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that a file holds, and how its bytes were read."""

    sheets: tuple[Sheet, ...]
    file_format: str
    encoding: str = ""
    delimiter: str = ""


def clean_cell(text: str) -> str:
    """Return a cell without spaces around it, in composed letters, with plain spaces inside."""
    text = text.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ODD_SPACES.sub(" ", text)).strip("\ufeff\u200b ")
    quoted = _QUOTED_VALUE.fullmatch(text)
    return quoted[1].strip() if quoted else text
