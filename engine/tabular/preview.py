"""Preview of a table under the choices: the content of every column, and the problems."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.tabular.checks import (
    MAX_QUESTIONS,
    check_constraint,
    check_ids,
    check_question,
    check_short_rows,
    check_whole,
)
from engine.tabular.choices import Choices, ColumnChoice, Kind, Role
from engine.tabular.columns import column_cells, dropped_rows, name_of, wording_of
from engine.tabular.facts import facts_of
from engine.tabular.identity import IDENTITY
from engine.tabular.problems import Problem, Severity
from engine.tabular.table import Table
from engine.tabular.words import counted


@dataclass(frozen=True, slots=True)
class ColumnPreview:
    """One column as the preview shows it. ``counts`` belong to ``choice.levels``.

    ``header`` is its name in the file, ``wording`` the full question if it says more. ``unknown``
    are the answers of a question that are none of its levels, ``others`` the most frequent values
    of a column that is no question, each with its rows.
    """

    index: int
    name: str
    header: str
    wording: str
    choice: ColumnChoice
    examples: tuple[str, ...]
    n_blank: int
    n_distinct: int
    counts: tuple[int, ...]
    problems: tuple[Problem, ...]
    unknown: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()

    @property
    def number(self) -> int:
        """Return the position as spreadsheets count it."""
        return self.index + 1

    @property
    def n_errors(self) -> int:
        """Return the number of problems that stop the import."""
        return sum(problem.is_error for problem in self.problems)

    @property
    def n_warnings(self) -> int:
        """Return the number of warnings."""
        return sum(problem.severity is Severity.WARNING for problem in self.problems)

    @property
    def unknown_words(self) -> str:
        """Return the number of cells with no valid answer in words: '3 cells'."""
        return counted(sum(count for _, count in self.unknown), "cell")

    @property
    def error_words(self) -> str:
        """Return the number of problems that stop the import in words: '1 error'."""
        return counted(self.n_errors, "error")

    @property
    def bars(self) -> tuple[float, ...]:
        """Return the counts as shares of the largest, for a small chart."""
        largest = max(self.counts, default=0) or 1
        return tuple(count / largest for count in self.counts)

    @property
    def level_rows(self) -> tuple[tuple[str, int], ...]:
        """Return the answers with their counts, in order."""
        return tuple(zip(self.choice.levels, self.counts, strict=True))


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of a table: all columns, all problems, and which rows become students.

    Parameters
    ----------
    dropped : {row number: reason} of the rows that become no student.
    kept : the positions of all other rows.
    """

    table: Table
    choices: Choices
    columns: tuple[ColumnPreview, ...]
    problems: tuple[Problem, ...]
    dropped: Mapping[int, str]
    kept: tuple[int, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Return the problems that stop the import."""
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Return the problems that need attention but do not stop the import."""
        return tuple(p for p in self.problems if p.severity is Severity.WARNING)

    @property
    def notes(self) -> tuple[Problem, ...]:
        """Return the notes."""
        return tuple(p for p in self.problems if p.severity is Severity.NOTE)

    @property
    def can_import(self) -> bool:
        """Return True if nothing stops the import."""
        return not self.errors

    @property
    def n_students(self) -> int:
        """Return the number of rows that would become students."""
        return len(self.kept)

    def cells(self, index: int) -> tuple[str, ...]:
        """Return the effective cells of a column in the kept rows, blanks empty."""
        return tuple(column_cells(self.table, self.choices, index, self.kept))

    def columns_as(self, role: Role) -> tuple[ColumnPreview, ...]:
        """Return the columns used as ``role``."""
        return tuple(column for column in self.columns if column.choice.role is role)

    @property
    def role_counts(self) -> dict[str, int]:
        """Return the number of columns per role."""
        counts = Counter(column.choice.role.value for column in self.columns)
        return {role.value: counts[role.value] for role in Role}

    @property
    def n_identity(self) -> int:
        """Return the number of columns of names, pronouns and e-mails."""
        return sum(column.choice.role in IDENTITY for column in self.columns)


_MEMO_LIMIT = 4_000  # previews of a column under different choices that are cached per file


def build_preview(
    table: Table, choices: Choices, most_questions: int | None = MAX_QUESTIONS
) -> Preview:
    """Return the preview of ``table`` under ``choices``.

    A column is read once per combination of its choice and the rows' choice:
    a change of one column costs one pass over its cells, not over all.
    """
    dropped = dropped_rows(table, choices)
    kept = tuple(k for k, number in enumerate(table.row_numbers) if number not in dropped)
    if len(table.memo) > _MEMO_LIMIT:
        table.memo.clear()
    rows_key = (frozenset(dropped), choices.keep)
    columns = tuple(
        _remembered(table, choices, index, kept, rows_key) for index in range(len(choices.columns))
    )
    whole = check_whole(table, choices, len(kept), most_questions)
    whole += check_short_rows(table, choices)
    problems = whole + [problem for column in columns for problem in column.problems]
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    problems.sort(key=lambda problem: order[problem.severity])
    return Preview(table, choices, columns, tuple(problems), dropped, kept)


def _remembered(
    table: Table, choices: Choices, index: int, kept: Sequence[int], rows_key: object
) -> ColumnPreview:
    meanings = tuple(choices.meanings.get(index, {}).items())
    parent = choices.columns[index].part
    names = (name_of(table, choices, index), wording_of(table, choices, index))
    key = ("preview", index, choices.columns[index], meanings, rows_key, parent, names)
    found = table.memo.get(key)
    if found is None:
        found = table.memo[key] = _preview_column(table, choices, index, kept)
    return found


def _preview_column(
    table: Table, choices: Choices, index: int, kept: Sequence[int]
) -> ColumnPreview:
    choice, name = choices.columns[index], name_of(table, choices, index)
    cells = column_cells(table, choices, index, kept)
    numbers = [table.row_numbers[position] for position in kept]
    counter = Counter(cells)
    n_blank = counter.pop("", 0)
    problems: list[Problem] = []
    if choice.role is Role.ID:
        problems = check_ids(name, index, numbers, cells)
    elif choice.role is Role.QUESTION:
        problems = check_question(
            name, index, choice, numbers, cells, pending_made_dates(table, choices, index)
        )
    elif choice.role is Role.CONSTRAINT:
        problems = check_constraint(name, index, counter, n_blank)
    levels = choice.levels if choice.role is not Role.ID else ()
    is_question = choice.role is Role.QUESTION and levels
    known = set(levels)
    return ColumnPreview(
        index=index,
        name=name,
        header=table.header[index] if index < table.n_columns else "",
        wording=wording_of(table, choices, index),
        choice=replace(choice, levels=levels),
        examples=tuple(value for value, _ in counter.most_common(3)),
        n_blank=n_blank,
        n_distinct=len(counter),
        counts=tuple(counter.get(level, 0) for level in levels),
        problems=tuple(problems),
        unknown=tuple((v, n) for v, n in counter.items() if v not in known) if is_question else (),
        others=() if is_question else tuple(counter.most_common(50)),
    )


def pending_made_dates(table: Table, choices: Choices, index: int) -> dict[str, str]:
    """Return {cell: range} of dates that staff neither restored to ranges nor kept as dates."""
    if index >= table.n_columns or f"made dates {table.header[index]}" in choices.settled:
        return {}
    meant = choices.meanings.get(index, {})
    made = facts_of(table)[index].made_dates
    return {cell: typed for cell, typed in made.items() if cell not in meant}


def most_telling_questions(preview: Preview, count: int) -> list[int]:
    """Return up to ``count`` columns whose answers are spread most evenly and least blank.

    A question that everyone answers alike separates no pairs. Spread is the
    probability that two random students answer differently, times the share that answered.
    """

    def spread(column: ColumnPreview) -> float:
        answered = sum(column.counts)
        total = answered + column.n_blank
        if not answered:
            return 0.0
        alike = sum((share / answered) ** 2 for share in column.counts)
        chance = 1 - 1 / max(2, len(column.counts))
        return (1 - alike) / chance * answered / total

    usable = [
        column
        for column in preview.columns
        if column.choice.role is not Role.ID and len(column.choice.levels) >= 2
    ]
    best = sorted(usable, key=lambda column: (-spread(column), column.index))[:count]
    return sorted(column.index for column in best)


__all__ = ["ColumnPreview", "Kind", "Preview", "build_preview", "most_telling_questions"]
