"""Check a table against the choices: what every column holds, and what stops the import."""

from collections import Counter
from dataclasses import dataclass, replace

from engine import is_blank
from webapp.cohorts.tables.checks import (
    check_constraint,
    check_ids,
    check_question,
    check_short_rows,
    check_whole,
)
from webapp.cohorts.tables.choices import Choices, ColumnChoice, Kind, Role
from webapp.cohorts.tables.problems import Problem, Severity
from webapp.cohorts.tables.table import Table


@dataclass(frozen=True, slots=True)
class ColumnPreview:
    """One column as the preview shows it. ``counts`` belong to ``choice.levels``."""

    index: int
    name: str
    choice: ColumnChoice
    examples: tuple[str, ...]
    n_blank: int
    n_distinct: int
    counts: tuple[int, ...]
    problems: tuple[Problem, ...]

    @property
    def number(self) -> int:
        """Position as spreadsheets count it."""
        return self.index + 1

    @property
    def n_errors(self) -> int:
        """Number of problems that stop the import."""
        return sum(problem.is_error for problem in self.problems)

    @property
    def n_warnings(self) -> int:
        """Number of warnings."""
        return sum(problem.severity is Severity.WARNING for problem in self.problems)

    @property
    def bars(self) -> tuple[float, ...]:
        """Counts as shares of the largest, for a small chart."""
        largest = max(self.counts, default=0) or 1
        return tuple(count / largest for count in self.counts)

    @property
    def level_rows(self) -> tuple[tuple[str, int], ...]:
        """Answers with their counts, in order."""
        return tuple(zip(self.choice.levels, self.counts, strict=True))


@dataclass(frozen=True, slots=True)
class Preview:
    """All columns, all problems, and the kept rows of the table."""

    table: Table
    choices: Choices
    columns: tuple[ColumnPreview, ...]
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems that stop the import."""
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Problems worth a look that do not stop the import."""
        return tuple(p for p in self.problems if p.severity is Severity.WARNING)

    @property
    def notes(self) -> tuple[Problem, ...]:
        """Facts worth knowing."""
        return tuple(p for p in self.problems if p.severity is Severity.NOTE)

    @property
    def can_import(self) -> bool:
        """Whether nothing stops the import."""
        return not self.errors

    @property
    def n_students(self) -> int:
        """Rows that would become students."""
        return sum(number not in self.choices.left_out for number in self.table.row_numbers)

    def columns_as(self, role: Role) -> tuple[ColumnPreview, ...]:
        """Return the columns used as ``role``."""
        return tuple(column for column in self.columns if column.choice.role is role)

    @property
    def role_counts(self) -> dict[str, int]:
        """Number of columns per role."""
        counts = Counter(column.choice.role.value for column in self.columns)
        return {role.value: counts[role.value] for role in Role}


def build_preview(table: Table, choices: Choices) -> Preview:
    """Return the preview of ``table`` under ``choices``; cost is one pass over the cells."""
    kept = [
        position
        for position, number in enumerate(table.row_numbers)
        if number not in choices.left_out
    ]
    numbers = [table.row_numbers[position] for position in kept]
    columns = []
    for index in range(table.n_columns):
        cells = column_cells(table, choices, index, kept)
        columns.append(_preview_column(table, choices, index, numbers, cells))
    whole = check_whole(table, choices, len(kept)) + check_short_rows(table, choices)
    problems = whole + [problem for column in columns for problem in column.problems]
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    problems.sort(key=lambda problem: order[problem.severity])
    return Preview(table, choices, tuple(columns), tuple(problems))


def column_cells(table: Table, choices: Choices, index: int, kept: list[int]) -> list[str]:
    """Return the kept cells of a column as they count: meanings applied, blanks empty."""
    meanings = choices.meanings.get(index, {})
    cells = [table.rows[position][index] for position in kept]
    read = {cell: meanings.get(cell, cell) for cell in set(cells)}  # few differ among many
    if choices.columns[index].role is not Role.ID:
        read = {cell: "" if is_blank(meant) else meant for cell, meant in read.items()}
    return [read[cell] for cell in cells]


def _preview_column(
    table: Table, choices: Choices, index: int, numbers: list[int], cells: list[str]
) -> ColumnPreview:
    choice = choices.columns[index]
    counter = Counter(cells)
    n_blank = counter.pop("", 0)
    problems: list[Problem] = []
    if choice.role is Role.ID:
        problems = check_ids(table.header[index], index, numbers, cells)
    elif choice.role is Role.QUESTION:
        problems = check_question(table.header[index], index, choice, numbers, cells)
    elif choice.role is Role.CONSTRAINT:
        problems = check_constraint(table.header[index], index, counter, n_blank)
    levels = choice.levels if choice.role is not Role.ID else ()
    return ColumnPreview(
        index=index,
        name=table.header[index],
        choice=replace(choice, levels=levels),
        examples=tuple(value for value, _ in counter.most_common(3)),
        n_blank=n_blank,
        n_distinct=len(counter),
        counts=tuple(counter.get(level, 0) for level in levels),
        problems=tuple(problems),
    )


def most_telling_questions(preview: Preview, count: int) -> list[int]:
    """Return up to ``count`` columns whose answers are spread most evenly and least blank.

    A question on which everyone answers alike separates no pairs; spread is measured by the share
    of two random students who answer differently, times the share that answered.
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
