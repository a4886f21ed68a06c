"""A preview as a page shows it: the causes in order, and the sum from rows to students."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from engine.tabular.cause_done import done_of, notes_of
from engine.tabular.cause_errors import errors_of
from engine.tabular.cause_proposals import proposals_of
from engine.tabular.causes import ActionError, Cause, State
from engine.tabular.choices import Choices
from engine.tabular.preview import Preview

_MAX_ROUNDS = 3
_DROPPED = {
    "test": ("test answer", "test answers"),
    "note": ("note", "notes"),
    "no id": ("without an id", "without an id"),
    "unfinished": ("not finished", "not finished"),
    "short": ("short row", "short rows"),
    "repeat": ("repeat", "repeats"),
    "joined": ("joined row", "joined rows"),
    "event": ("row of another event", "rows of other events"),
    "header": ("repeated header", "repeated headers"),
    "hidden": ("hidden row", "hidden rows"),
    "hand": ("left out", "left out"),
}


@dataclass(frozen=True, slots=True)
class Review:
    """Complete report on a file under its present choices."""

    preview: Preview
    causes: tuple[Cause, ...]
    arithmetic: tuple[tuple[int, str], ...]

    @property
    def n_open(self) -> int:
        """Return the number of causes with an unused fix."""
        return sum(cause.is_open for cause in self.causes)

    @property
    def n_done(self) -> int:
        """Return the number of causes that were dealt with."""
        return sum(cause.is_done for cause in self.causes)

    @property
    def n_errors(self) -> int:
        """Return the number of causes that stop the import."""
        return sum(cause.is_error for cause in self.causes)

    def cause(self, key: str) -> Cause:
        """Return one cause; raise ActionError if it no longer exists."""
        for cause in self.causes:
            if cause.key == key:
                return cause
        raise ActionError("This was settled meanwhile.")


def review(preview: Preview, *first: Cause) -> Review:
    """Return the causes (``first`` before all), errors first, and the arithmetic of the rows."""
    causes = (
        *first,
        *errors_of(preview),
        *proposals_of(preview),
        *notes_of(preview),
        *done_of(preview),
    )
    return Review(preview, causes, tuple(arithmetic(preview)))


def arithmetic(preview: Preview) -> list[tuple[int, str]]:
    """Return [(2562, "rows"), (-2, "headers"), (-60, "repeats")]; they add up to the students."""
    table = preview.table
    terms = [(table.n_file_rows, "rows" if table.n_file_rows != 1 else "row")]
    if table.n_above:
        terms.append((-table.n_above, "above the header"))
    if table.n_header_rows:
        terms.append((-table.n_header_rows, "header" if table.n_header_rows == 1 else "headers"))
    counts = Counter(preview.dropped[n] for n in table.row_numbers if n in preview.dropped)
    for why, count in counts.items():
        one, many = _DROPPED.get(why, (why, why))
        terms.append((-count, one if count == 1 else many))
    return terms


def use_all(
    found: Review, again: Callable[[Choices], Review], choices: Choices | None = None
) -> Choices:
    """Return the choices after every fix that is shown, in order.

    Each fix is looked up again after the ones before it, since an earlier one may have settled it
    or moved a column. An error with a fix that appears then came from these fixes, such as a
    question that all answer alike once repeats are left out. It is fixed too. Nothing else is fixed
    that was not shown.
    """
    choices = found.preview.choices if choices is None else choices
    keys = [cause.key for cause in found.causes if cause.is_open]
    for _ in range(_MAX_ROUNDS):
        for key in keys:
            cause = next((one for one in again(choices).causes if one.key == key), None)
            if cause is not None and cause.fix is not None and cause.state is not State.DONE:
                choices = cause.fix.act(choices)
        keys = [one.key for one in again(choices).causes if one.is_error and one.is_open]
        if not keys:
            break
    return choices
