"""A problem of an import: where, what, and the ways out that can be offered as buttons."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Errors stop the import; warnings and notes do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Fix:
    """One button: its label, the action and what it acts on."""

    label: str
    action: str
    row: int | None = None
    column: int | None = None
    answer: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence, a reason below it, and its fixes.

    ``row`` is the row number of the file and ``column`` the zero-based column, where they apply;
    problems of one ``kind`` have one cause and one fix.
    """

    severity: Severity
    sentence: str
    detail: str = ""
    row: int | None = None
    column: int | None = None
    fixes: tuple[Fix, ...] = ()
    kind: str = ""

    @property
    def is_error(self) -> bool:
        """Whether the problem stops the import."""
        return self.severity is Severity.ERROR


_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def small_number(count: int) -> str:
    """Return a count in words up to ten."""
    return _SMALL[count] if 0 <= count < len(_SMALL) else str(count)
