"""Obstacles between a file and a cohort, grouped by cause, each with one fix and an undo.

Errors stop the import. Proposals make more of the file. Notes are worth knowing. Changes that were
made can be undone. A cause knows the effect of its buttons on the choices, so that "use all" is the
same buttons pressed one after the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from engine.core.errors import InvalidProblemError
from engine.tabular.choices import Choices


class ActionError(InvalidProblemError):
    """Error of a button that does not apply to a file. The message is one sentence."""


Act = Callable[[Choices], Choices]
GARBLED = "garbled"  # the key of letters that were read in the wrong code page
GROUPED_FROM = 7  # from this many causes of one kind on, they form one cause with one fix


class State(StrEnum):
    """Severity and progress of a cause."""

    ERROR = "error"
    PROPOSAL = "proposal"
    NOTE = "note"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the file's own cells, before and after the fix; ``more`` counts those not shown."""

    label: str = ""
    before: str = ""
    after: tuple[str, ...] = ()
    more: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A button: its label and its effect on the choices."""

    label: str
    act: Act


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause: its kind, its count, why it matters, one fix, and the alternative.

    ``key`` identifies it from one page to the next; ``columns`` are the affected columns. If
    ``link`` has a label, the link opens the first of them.
    """

    key: str
    state: State
    icon: str
    title: str
    count: str = ""
    why: str = ""
    fix: Resolution | None = None
    other: Resolution | None = None
    link: str = ""
    columns: tuple[int, ...] = ()
    samples: tuple[Sample, ...] = ()
    bars: tuple[tuple[str, int], ...] = ()
    done: str = ""  # "Left out", "Read only": the word beside the tick
    is_doubt: bool = False  # the meaning of the cells is in doubt, not only their use

    @property
    def is_error(self) -> bool:
        """Return True if it stops the import."""
        return self.state is State.ERROR

    @property
    def is_done(self) -> bool:
        """Return True if it was dealt with."""
        return self.state is State.DONE

    @property
    def is_open(self) -> bool:
        """Return True if its fix has not been used yet."""
        return not self.is_done and self.fix is not None
