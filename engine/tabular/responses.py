"""Responses as the survey program recorded them: their times, events, and which were finished.

All of it follows from the file alone and is found once per table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.tabular.facts import ColumnFacts, facts_of
from engine.tabular.makers import LIMESURVEY, Own
from engine.tabular.table import Table
from engine.tabular.text import fold_title

# Spreadsheet programs write a cell of "False" in the language of the person who saved the file.
_NO = {
    "false", "0", "no", "falsch", "nein", "faux", "non", "falso", "onwaar", "nee", "falsk",
    "falskt", "usann", "falsz", "nieprawda", "nepravda", "hamis", "epatosi", "fals", "yanlıs",
    "ложь", "假", "incomplete", "unvollstandig", "incompleto", "incompleta", "incomplet", "partial",
    "partiell", "parcial", "partiel", "disqualified", "inprogress",
}  # fmt: skip
_SUBMITTED = ("submitdate", "datesubmitted")  # blank for people who did not reach the end
_LATEST_TIMES = ("recordeddate", "enddate", "completion", "datemodified", "timestamp")


@dataclass(frozen=True, eq=False)
class Responses:
    """Responses of a file: one a row, with the records of the survey program."""

    table: Table
    facts: tuple[ColumnFacts, ...]

    @cached_property
    def time_column(self) -> int | None:
        """The column with the time of a response: its end rather than its start."""
        candidates = []
        for one in self.facts:
            plain = "".join(one.name.casefold().split())
            is_time = one.own is Own.TIME
            if (is_time or plain in _LATEST_TIMES) and one.times:
                late = any(plain.startswith(word) for word in _LATEST_TIMES)
                candidates.append((late, is_time, one.index))
        return max(candidates)[2] if candidates else None

    @cached_property
    def event_column(self) -> int | None:
        """The column that names the event of a row; None if all rows are of one event."""
        for one in self.facts:
            if one.own is Own.EVENT and len(set(self.table.column(one.index))) > 1:
                return one.index
        return None

    @cached_property
    def unfinished(self) -> list[int]:
        """The numbers of the rows that the survey program marks as not finished."""
        column = self.table.column
        marks = [column(one.index) for one in self.facts if one.own is Own.FINISHED]
        stamps = [
            column(one.index)
            for one in self.facts
            if self.table.layout.maker == LIMESURVEY and fold_title(one.name).startswith(_SUBMITTED)
        ]
        return [
            number
            for position, number in enumerate(self.table.row_numbers)
            if any(fold_title(cells[position]) in _NO for cells in marks)
            or any(not cells[position] for cells in stamps)
        ]

    def latest(self, positions: Sequence[int]) -> int:
        """Return the latest of a person's rows: finished rows come last, then later times.

        If the file has no times, rows count as in the order of the responses.
        """
        return max(positions, key=lambda position: (self._order[position], position))

    @cached_property
    def _order(self) -> list[tuple[bool, float]]:
        n = self.table.n_rows
        finished, times = [True] * n, [0.0] * n
        if self.time_column is not None:
            read = self.facts[self.time_column].times or [None] * n
            times = [0.0 if time is None else time.timestamp() for time in read]
        for one in self.facts:
            if one.own is Own.FINISHED:
                finished = [
                    so_far and fold_title(cell) not in _NO
                    for so_far, cell in zip(finished, self.table.column(one.index), strict=True)
                ]
        return list(zip(finished, times, strict=True))


def responses_of(table: Table) -> Responses:
    """Return the responses of a file, kept with its table."""
    if "responses" not in table.memo:
        table.memo["responses"] = Responses(table, facts_of(table))
    found: Responses = table.memo["responses"]
    return found
