"""A problem of an import: its place, its kind, and the fixes offered as buttons."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a problem: errors stop the import; warnings and notes do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Fix:
    """One button: its label, its action and the target of the action."""

    label: str
    action: str
    row: int | None = None
    column: int | None = None
    answer: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem of an import: one sentence, its reason, and its fixes.

    ``row`` is the row number of the file and ``column`` the zero-based column, if they apply;
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
        """Return True if the problem stops the import."""
        return self.severity is Severity.ERROR
