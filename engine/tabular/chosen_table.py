"""A table under the choices: the rows that count, and the effective cells of every column."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.tabular.choices import Choices, ColumnChoice, Keep, Role
from engine.tabular.facts import facts_of
from engine.tabular.ids import is_no_id
from engine.tabular.responses import responses_of
from engine.tabular.survey_table import is_blank
from engine.tabular.table import Table
from engine.tabular.text import fold_id


@dataclass(frozen=True)
class ChosenColumn:
    """One column under the choices, of the file or made of another one, in the rows that count.

    Parameters
    ----------
    chosen : the table, whose cells are read when they are needed.
    index : its position; columns made of others come after those of the file.
    name : the name that staff gave it, else that of the header.
    header : its name in the file; empty for a column made of another one.
    wording : the full text of its question, if it says more than the name.
    choice : its use.
    made_dates : {cell: range} of dates that staff neither restored to ranges nor kept as dates.
    """

    chosen: "ChosenTable"
    index: int
    name: str
    header: str
    wording: str
    choice: ColumnChoice
    made_dates: Mapping[str, str]

    @property
    def rows(self) -> Sequence[int]:
        """The numbers of the rows that count."""
        return self.chosen.rows

    @cached_property
    def cells(self) -> Sequence[str]:
        """Its effective cells in these rows: groups and meanings applied, blanks empty."""
        return self.chosen.cells(self.index)

    @cached_property
    def counts(self) -> Counter[str]:
        """The count of each cell that is not blank."""
        counts = Counter(self.cells)
        del counts[""]
        return counts

    @cached_property
    def n_blank(self) -> int:
        """The number of blank cells."""
        return len(self.cells) - self.counts.total()


@dataclass(frozen=True)
class ChosenTable:
    """A table under the choices.

    Columns are counted with those made of others, which come after those of the file.
    """

    table: Table
    choices: Choices

    @cached_property
    def dropped(self) -> Mapping[int, str]:
        """{row number: reason} of all rows that become no student."""
        keep = self.choices.keep
        if keep is Keep.ALL:
            return self.choices.left_out
        dropped = dict(self.choices.left_out)
        for found in self.repeats.values():
            one = responses_of(self.table).latest(found) if keep is Keep.LATEST else min(found)
            why = "joined" if keep is Keep.JOINED else "repeat"
            for position in found:
                if position != one:
                    dropped[self.table.row_numbers[position]] = why
        return dropped

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The positions of the rows that become students."""
        rows = enumerate(self.table.row_numbers)
        return tuple(position for position, number in rows if number not in self.dropped)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The numbers of the rows that become students."""
        return tuple(self.table.row_numbers[position] for position in self.kept)

    @cached_property
    def repeats(self) -> Mapping[str, list[int]]:
        """{person: positions of their rows} for people with several rows that are not left out."""
        ids = [k for k, column in enumerate(self.choices.columns) if column.role is Role.ID]
        if len(ids) != 1:
            return {}
        key = ("repeats", ids[0], tuple(self.choices.left_out), self._meanings_key(ids[0]))
        memo = self.table.memo
        if key not in memo:
            memo[key] = self._repeats(ids[0])
        found: Mapping[str, list[int]] = memo[key]
        return found

    def _repeats(self, index: int) -> dict[str, list[int]]:
        cells = self.all_cells(index)
        times = Counter(map(fold_id, cells))
        rows: dict[str, list[int]] = {}
        for position, (number, cell) in enumerate(zip(self.table.row_numbers, cells, strict=True)):
            key = fold_id(cell)
            if cell and times[key] > 1 and number not in self.choices.left_out:
                rows.setdefault(key, []).append(position)
        return {person: found for person, found in rows.items() if len(found) > 1}

    def spelled_apart(self, index: int) -> list[tuple[str, str]]:
        """Return [(id, spelling in the last row)] for ids of a column that differ in capitals only.

        E-mails are left out: capitals do not matter there.
        """
        key = ("spelled apart", index, self._meanings_key(index))
        found: list[tuple[str, str]] | None = self.table.memo.get(key)
        if found is None:
            cells = self.all_cells(index)
            last = {cell.casefold(): cell for cell in cells}
            pairs = [(cell, last[cell.casefold()]) for cell in dict.fromkeys(cells)]
            found = [(cell, one) for cell, one in pairs if fold_id(cell) != fold_id(one)]
            self.table.memo[key] = found
        return found

    def _meanings_key(self, index: int) -> tuple[tuple[str, str], ...]:
        return tuple(self.choices.meanings.get(index, {}).items())

    def name(self, index: int) -> str:
        """Return the name of a column: the name that staff gave it, else that of the header."""
        return self.choices.columns[index].name or self.table.header[index]

    def wording(self, index: int) -> str:
        """Return the full text of a question, if it says more than the name."""
        choice, wordings = self.choices.columns[index], self.table.wordings
        if choice.part is not None:
            return f"{self.name(choice.part.parent)}: {choice.part.option}"
        wording = wordings[index] if index < len(wordings) else ""
        return wording or (self.table.header[index] if choice.name else "")

    def file_cells(self, index: int) -> Sequence[str]:
        """Return all cells of a column before meanings; a column made of another has its cells."""
        part = self.choices.columns[index].part
        return self.table.column(index if part is None else part.parent)

    def all_cells(self, index: int) -> list[str]:
        """Return the effective cells of a column in all rows of the file."""
        return self._read(index, self.file_cells(index))

    def cells(self, index: int) -> list[str]:
        """Return the effective cells of a column in the rows that become students."""
        raw = self.file_cells(index)
        if self.choices.keep is Keep.JOINED:
            return self._read(index, self._joined(raw))
        return self._read(index, [raw[position] for position in self.kept])

    def _joined(self, raw: Sequence[str]) -> list[str]:
        """Return the first cell that is not blank among the rows of each person."""
        rows = {min(found): found for found in self.repeats.values()}
        return [
            next((raw[k] for k in rows.get(position, ()) if not is_blank(raw[k])), raw[position])
            for position in self.kept
        ]

    def _read(self, index: int, cells: Sequence[str]) -> list[str]:
        choice = self.choices.columns[index]
        is_nothing = is_no_id if choice.role is Role.ID else is_blank
        meanings = self.choices.meanings.get(index, {})
        read = {}
        for cell in set(cells):  # few cells differ
            meant = cell
            if choice.part is not None:
                meant = choice.part.answer("" if is_blank(cell) else cell)
            if choice.groups is not None:
                meant = choice.groups.level_of(meant)
            meant = meanings.get(meant, meant)
            read[cell] = "" if is_nothing(meant) else meant
        return [read[cell] for cell in cells]

    def made_dates(self, index: int) -> dict[str, str]:
        """Return {cell: range} of dates that staff neither restored to ranges nor kept as dates."""
        table, choices = self.table, self.choices
        if index >= table.n_columns or f"made dates {table.header[index]}" in choices.settled:
            return {}
        meant = choices.meanings.get(index, {})
        made = facts_of(table)[index].made_dates
        return {cell: typed for cell, typed in made.items() if cell not in meant}

    def column(self, index: int) -> ChosenColumn:
        """Return a column in the rows that become students."""
        choice = self.choices.columns[index]
        is_question = choice.role is Role.QUESTION
        return ChosenColumn(
            self,
            index,
            self.name(index),
            self.table.header[index] if index < self.table.n_columns else "",
            self.wording(index),
            choice,
            self.made_dates(index) if is_question else {},
        )
