"""What stands between a file and a cohort, grouped by cause, each with one fix and a way back.

Errors stop the import; proposals make more of the file; notes are worth knowing; what was done is
there to be undone. A cause knows what its buttons do to the choices, so that "use all" is the same
buttons pressed one after the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from webapp.cohorts.tables.choices import Choices

Act = Callable[[Choices], Choices]
GROUPED_FROM = 7  # causes of one kind from which they are one cause with one fix


class State(StrEnum):
    """How much a cause matters."""

    ERROR = "error"
    PROPOSAL = "proposal"
    NOTE = "note"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the file's own cells, before and after the fix; ``more`` says what is not shown."""

    label: str = ""
    before: str = ""
    after: tuple[str, ...] = ()
    more: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """A button: its label and what it does to the choices."""

    label: str
    act: Act


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause: what, how often, why it matters, one fix, and the other way out.

    ``key`` names it from one page to the next; ``columns`` are the columns that it concerns, the
    first of which a link opens where ``link`` has words for it.
    """

    key: str
    state: State
    icon: str
    title: str
    count: str = ""
    why: str = ""
    fix: Way | None = None
    other: Way | None = None
    link: str = ""
    columns: tuple[int, ...] = ()
    samples: tuple[Sample, ...] = ()
    bars: tuple[tuple[str, int], ...] = ()
    done: str = ""  # "Left out", "Read only": the word beside the tick

    @property
    def is_error(self) -> bool:
        """Whether it stops the import."""
        return self.state is State.ERROR

    @property
    def is_done(self) -> bool:
        """Whether it was dealt with."""
        return self.state is State.DONE

    @property
    def is_open(self) -> bool:
        """Whether a fix waits to be used."""
        return not self.is_done and self.fix is not None


def listed(values: list[str] | tuple[str, ...], shown: int = 3, *, quoted: bool = True) -> str:
    """Return "“whenever”, “idk” and 9 more"."""
    words = [f"“{v[:40]}”" if quoted else v for v in values[:shown]]
    more = len(values) - shown
    if more > 0:
        return f"{', '.join(words)} and {more:,} more"
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
