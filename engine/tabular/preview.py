"""Preview of a table under the choices: the content of every column, and the problems."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.tabular.checks import MAX_QUESTIONS, check_column, check_whole
from engine.tabular.choices import Choices, ColumnChoice, Role
from engine.tabular.chosen_table import ChosenColumn, ChosenTable
from engine.tabular.identity import IDENTITY
from engine.tabular.problems import Problem, Severity
from engine.tabular.short_names import title_of
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
    def title(self) -> str:
        """Return the title of the column, by its header and wording."""
        return title_of(self.header, self.wording)

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
    """Preview of a table under the choices: all columns and all problems."""

    chosen: ChosenTable
    columns: tuple[ColumnPreview, ...]
    problems: tuple[Problem, ...]

    @property
    def table(self) -> Table:
        """The table."""
        return self.chosen.table

    @property
    def choices(self) -> Choices:
        """The choices."""
        return self.chosen.choices

    @property
    def dropped(self) -> Mapping[int, str]:
        """{row number: reason} of the rows that become no student."""
        return self.chosen.dropped

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
        return len(self.chosen.kept)

    def cells(self, index: int) -> tuple[str, ...]:
        """Return the effective cells of a column in the kept rows, blanks empty."""
        return tuple(self.chosen.cells(index))

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
    chosen = ChosenTable(table, choices)
    if len(table.memo) > _MEMO_LIMIT:
        table.memo.clear()
    rows_key = (frozenset(chosen.dropped), choices.keep)
    columns = tuple(_remembered(chosen, index, rows_key) for index in range(len(choices.columns)))
    problems = check_whole(chosen, most_questions)
    problems += [problem for column in columns for problem in column.problems]
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    problems.sort(key=lambda problem: order[problem.severity])
    return Preview(chosen, columns, tuple(problems))


def _remembered(chosen: ChosenTable, index: int, rows_key: object) -> ColumnPreview:
    column, memo = chosen.column(index), chosen.table.memo
    meanings = tuple(chosen.choices.meanings.get(index, {}).items())
    shown = (column.name, column.wording, bool(column.made_dates))
    key = ("preview", index, column.choice, meanings, rows_key, shown)
    found: ColumnPreview | None = memo.get(key)
    if found is None:
        found = memo[key] = _preview_column(column)
    return found


def _preview_column(column: ChosenColumn) -> ColumnPreview:
    choice, counts = column.choice, column.counts
    levels = choice.levels if choice.role is not Role.ID else ()
    is_question = choice.role is Role.QUESTION and levels
    known = set(levels)
    return ColumnPreview(
        index=column.index,
        name=column.name,
        header=column.header,
        wording=column.wording,
        choice=replace(choice, levels=levels),
        examples=tuple(value for value, _ in counts.most_common(3)),
        n_blank=column.n_blank,
        n_distinct=len(counts),
        counts=tuple(counts.get(level, 0) for level in levels),
        problems=tuple(check_column(column)),
        unknown=tuple((v, n) for v, n in counts.items() if v not in known) if is_question else (),
        others=() if is_question else tuple(counts.most_common(50)),
    )


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
