"""Effective cells of every column, of the file or made of others, in the chosen rows."""

from collections import Counter
from collections.abc import Mapping, Sequence

from engine.tabular.choices import Choices, Keep, Role
from engine.tabular.dates import read_times
from engine.tabular.facts import facts_of
from engine.tabular.ids import is_no_id
from engine.tabular.makers import LIMESURVEY, Own
from engine.tabular.survey_table import is_blank
from engine.tabular.table import Table
from engine.tabular.text import fold_id, fold_title

# Spreadsheet programs write a cell of "False" in the language of the person who saved the file.
_NO = {
    "false", "0", "no", "falsch", "nein", "faux", "non", "falso", "onwaar", "nee", "falsk",
    "falskt", "usann", "falsz", "nieprawda", "nepravda", "hamis", "epatosi", "fals", "yanlıs",
    "ложь", "假", "incomplete", "unvollstandig", "incompleto", "incompleta", "incomplet", "partial",
    "partiell", "parcial", "partiel", "disqualified", "inprogress",
}  # fmt: skip
_SUBMITTED = ("submitdate", "datesubmitted")  # blank for people who did not reach the end
_LATEST_TIMES = ("recordeddate", "enddate", "completion", "datemodified", "timestamp")


def n_columns(choices: Choices) -> int:
    """Return the number of columns, including those made of others."""
    return len(choices.columns)


def name_of(table: Table, choices: Choices, index: int) -> str:
    """Return the name of a column: the name that staff gave it, else that of the header."""
    return choices.columns[index].name or table.header[index]


def wording_of(table: Table, choices: Choices, index: int) -> str:
    """Return the full text of a question, if it says more than the name."""
    part = choices.columns[index].part
    if part is not None:
        return f"{name_of(table, choices, part.parent)}: {part.option}"
    wording = table.wordings[index] if index < len(table.wordings) else ""
    return wording or (table.header[index] if choices.columns[index].name else "")


def cells_of_file(table: Table, choices: Choices, index: int) -> Sequence[str]:
    """Return all cells of a column before meanings; a column made of another reads that one."""
    part = choices.columns[index].part
    return table.column(index if part is None else part.parent)


def column_cells(
    table: Table, choices: Choices, index: int, kept: Sequence[int] | None
) -> list[str]:
    """Return the effective cells of a column: groups and meanings applied, blanks empty.

    ``kept`` are positions of rows; None means all rows.
    """
    raw = cells_of_file(table, choices, index)
    cells = raw if kept is None else [raw[position] for position in kept]
    if choices.keep is Keep.JOINED and kept is not None:
        cells = _joined(table, choices, raw, kept)
    read = {cell: _read(choices, index, cell) for cell in set(cells)}  # few cells differ
    return [read[cell] for cell in cells]


def _joined(table: Table, choices: Choices, raw: Sequence[str], kept: Sequence[int]) -> list[str]:
    """Return the first cell that is not blank among the rows of each person."""
    rows = {min(found): found for found in repeats(table, choices).values()}
    return [
        next((raw[k] for k in rows.get(position, ()) if not is_blank(raw[k])), raw[position])
        for position in kept
    ]


def _read(choices: Choices, index: int, cell: str) -> str:
    choice = choices.columns[index]
    if choice.part is not None:
        cell = choice.part.answer("" if is_blank(cell) else cell)
    if choice.groups is not None:
        cell = choice.groups.level_of(cell)
    meant = choices.meanings.get(index, {}).get(cell, cell)
    if choice.role is Role.ID:
        return "" if is_no_id(meant) else meant
    return "" if is_blank(meant) else meant


def repeats(table: Table, choices: Choices) -> dict[str, list[int]]:
    """Return {person: positions of their rows} for people with several of the kept rows."""
    ids = [k for k, column in enumerate(choices.columns) if column.role is Role.ID]
    if len(ids) != 1:
        return {}
    key = ("repeats", ids[0], tuple(choices.left_out), _meanings_key(choices, ids[0]))
    found = table.memo.get(key)
    if found is None:
        found = table.memo[key] = _repeats(table, choices, ids[0])
    return found


def _meanings_key(choices: Choices, index: int) -> tuple[tuple[str, str], ...]:
    return tuple(choices.meanings.get(index, {}).items())


def _repeats(table: Table, choices: Choices, index: int) -> dict[str, list[int]]:
    cells = column_cells(table, choices, index, None)
    times = Counter(map(fold_id, cells))
    rows: dict[str, list[int]] = {}
    for position, (number, cell) in enumerate(zip(table.row_numbers, cells, strict=True)):
        key = fold_id(cell)
        if cell and times[key] > 1 and number not in choices.left_out:
            rows.setdefault(key, []).append(position)
    return {person: found for person, found in rows.items() if len(found) > 1}


def latest_of(table: Table, positions: Sequence[int]) -> int:
    """Return the latest of a person's rows: finished rows come last, then later times.

    If the file has no times, rows count as in the order of the answers.
    """
    order = table.memo.get("order")
    if order is None:
        order = table.memo["order"] = _order(table)
    return max(positions, key=lambda position: (order[position], position))


def _order(table: Table) -> list[tuple[bool, float]]:
    n = table.n_rows
    finished, times = [True] * n, [0.0] * n
    column = time_column(table)
    if column is not None:
        read = read_times(table.column(column)) or [None] * n
        times = [0.0 if time is None else time.timestamp() for time in read]
    for one in facts_of(table):
        if one.own is Own.FINISHED:
            finished = [
                so_far and fold_title(cell) not in _NO
                for so_far, cell in zip(finished, table.column(one.index), strict=True)
            ]
    return list(zip(finished, times, strict=True))


def unfinished_rows(table: Table) -> list[int]:
    """Return the numbers of the rows that the survey program marks as not finished."""
    found: list[int] | None = table.memo.get("unfinished")
    if found is None:
        marks = [table.column(one.index) for one in facts_of(table) if one.own is Own.FINISHED]
        stamps = [
            table.column(index)
            for index, name in enumerate(table.header)
            if table.layout.maker == LIMESURVEY and fold_title(name).startswith(_SUBMITTED)
        ]
        rows = enumerate(table.row_numbers)
        found = [
            n
            for position, n in rows
            if any(fold_title(column[position]) in _NO for column in marks)
            or any(not column[position] for column in stamps)
        ]
        table.memo["unfinished"] = found
    return found


def spelled_apart(table: Table, choices: Choices, index: int) -> list[tuple[str, str]]:
    """Return [(id, spelling in the last row)] for ids of a column that differ in capitals only.

    E-mails are left out: capitals do not matter there.
    """
    key = ("spelled apart", index, _meanings_key(choices, index))
    found: list[tuple[str, str]] | None = table.memo.get(key)
    if found is None:
        cells = column_cells(table, choices, index, None)
        last = {cell.casefold(): cell for cell in cells}
        pairs = [(cell, last[cell.casefold()]) for cell in dict.fromkeys(cells)]
        found = [(cell, one) for cell, one in pairs if fold_id(cell) != fold_id(one)]
        table.memo[key] = found
    return found


def event_column(table: Table) -> int | None:
    """Return the column that names the event of a row; None if all rows are of one event."""
    for one in facts_of(table):
        if one.own is Own.EVENT and len(set(table.column(one.index))) > 1:
            return one.index
    return None


def time_column(table: Table) -> int | None:
    """Return the column with the time of an answer: its end rather than its start."""
    if "times" not in table.memo:
        table.memo["times"] = _time_column(table)
    found: int | None = table.memo["times"]
    return found


def _time_column(table: Table) -> int | None:
    candidates = []
    for one in facts_of(table):
        plain = "".join(one.name.casefold().split())
        is_time = one.own is Own.TIME
        if (is_time or plain in _LATEST_TIMES) and read_times(table.column(one.index)):
            late = any(plain.startswith(word) for word in _LATEST_TIMES)
            candidates.append((late, is_time, one.index))
    return max(candidates)[2] if candidates else None


def dropped_rows(table: Table, choices: Choices) -> Mapping[int, str]:
    """Return {row number: reason} of all rows that become no student."""
    if choices.keep is Keep.ALL:
        return choices.left_out
    dropped = dict(choices.left_out)
    for found in repeats(table, choices).values():
        one = latest_of(table, found) if choices.keep is Keep.LATEST else min(found)
        why = "joined" if choices.keep is Keep.JOINED else "repeat"
        for position in found:
            if position != one:
                dropped[table.row_numbers[position]] = why
    return dropped
