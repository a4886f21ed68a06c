"""A preview as a page tells it: the causes in order, and the sum from rows to students."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from webapp.cohorts.tables.cause_done import done_of, notes_of
from webapp.cohorts.tables.cause_errors import errors_of
from webapp.cohorts.tables.cause_proposals import proposals_of
from webapp.cohorts.tables.causes import Cause, State
from webapp.cohorts.tables.choices import Choices
from webapp.cohorts.tables.preview import Preview
from webapp.common.errors import Refusal

_DROPPED = {
    "test": ("test answer", "test answers"),
    "note": ("note", "notes"),
    "no id": ("without an id", "without an id"),
    "unfinished": ("not finished", "not finished"),
    "short": ("short row", "short rows"),
    "repeat": ("repeat", "repeats"),
    "hand": ("left out", "left out"),
}


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that is to be said of a file under its present choices."""

    preview: Preview
    causes: tuple[Cause, ...]
    arithmetic: tuple[tuple[int, str], ...]

    @property
    def n_open(self) -> int:
        """Causes with a fix that waits."""
        return sum(cause.is_open for cause in self.causes)

    @property
    def n_done(self) -> int:
        """Causes that were dealt with."""
        return sum(cause.is_done for cause in self.causes)

    @property
    def n_errors(self) -> int:
        """Causes that stop the import."""
        return sum(cause.is_error for cause in self.causes)

    def cause(self, key: str) -> Cause:
        """Return one cause; raise Refusal when it is gone."""
        for cause in self.causes:
            if cause.key == key:
                return cause
        raise Refusal("This was settled meanwhile.")


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
    """Return the choices after every fix that is shown, in order, and none that was not.

    Each is looked up anew in what the fixes before it left, since an earlier one may have settled
    it or moved a column.
    """
    choices = found.preview.choices if choices is None else choices
    for key in [cause.key for cause in found.causes if cause.is_open]:
        cause = next((one for one in again(choices).causes if one.key == key), None)
        if cause is not None and cause.fix is not None and cause.state is not State.DONE:
            choices = cause.fix.act(choices)
    return choices
