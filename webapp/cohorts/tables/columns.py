"""The cells of every column as they count: of the file or made of others, rows chosen."""

from collections import Counter
from collections.abc import Mapping, Sequence

from engine.datasets.survey_table import is_blank
from webapp.cohorts.tables.choices import Choices, Keep, Role
from webapp.cohorts.tables.dates import read_times
from webapp.cohorts.tables.makers import Own, folded, own_column
from webapp.cohorts.tables.table import Table

# Spreadsheet programs write a cell of "False" in the language of whoever saved the file.
_NO = {
    "false", "0", "no", "falsch", "nein", "faux", "non", "falso", "onwaar", "nee", "falsk",
    "falskt", "usann", "falsz", "nieprawda", "nepravda", "hamis", "epatosi", "fals", "yanlıs",
    "ложь", "假",
}  # fmt: skip
_LATEST_TIMES = ("recordeddate", "enddate", "completion", "datemodified", "timestamp")


def n_columns(choices: Choices) -> int:
    """Return how many columns there are, those made of others included."""
    return len(choices.columns)


def name_of(table: Table, choices: Choices, index: int) -> str:
    """Return the name of a column: the one that was given to it, else that of the header."""
    return choices.columns[index].name or table.header[index]


def wording_of(table: Table, choices: Choices, index: int) -> str:
    """Return the question as asked, where it says more than the name."""
    part = choices.columns[index].part
    if part is not None:
        return f"{name_of(table, choices, part.parent)}: {part.option}"
    wording = table.wordings[index] if index < len(table.wordings) else ""
    return wording or (table.header[index] if choices.columns[index].name else "")


def cells_of_file(table: Table, choices: Choices, index: int) -> Sequence[str]:
    """Return all cells of a column before any meaning; a column made of another reads that one."""
    part = choices.columns[index].part
    return table.column(index if part is None else part.parent)


def column_cells(
    table: Table, choices: Choices, index: int, kept: Sequence[int] | None
) -> list[str]:
    """Return cells of a column as they count: groups and meanings applied, blanks empty.

    ``kept`` are positions of rows; all rows where it is None.
    """
    raw = cells_of_file(table, choices, index)
    cells = raw if kept is None else [raw[position] for position in kept]
    read = {cell: _read(choices, index, cell) for cell in set(cells)}  # few differ among many
    return [read[cell] for cell in cells]


def _read(choices: Choices, index: int, cell: str) -> str:
    choice = choices.columns[index]
    if choice.part is not None:
        cell = choice.part.answer("" if is_blank(cell) else cell)
    if choice.groups is not None:
        cell = choice.groups.level_of(cell)
    meant = choices.meanings.get(index, {}).get(cell, cell)
    if choice.role is Role.ID:
        return meant
    return "" if is_blank(meant) else meant


def person_key(text: str) -> str:
    """Return by what an id is compared: e-mails do not differ by capitals."""
    return text.casefold() if "@" in text else text


def repeats(table: Table, choices: Choices) -> dict[str, list[int]]:
    """Return {person: positions of their rows} for who answered more than once, among rows kept."""
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
    times = Counter(map(person_key, cells))
    rows: dict[str, list[int]] = {}
    for position, (number, cell) in enumerate(zip(table.row_numbers, cells, strict=True)):
        key = person_key(cell)
        if cell and times[key] > 1 and number not in choices.left_out:
            rows.setdefault(key, []).append(position)
    return {person: found for person, found in rows.items() if len(found) > 1}


def latest_of(table: Table, positions: Sequence[int]) -> int:
    """Return which of a person's rows is the latest: finished before not, then by its time.

    Where the file tells no times, rows come in the order in which they were given.
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
    for index, name in enumerate(table.header):
        if own_column(table.layout.maker, name, index) is Own.FINISHED:
            finished = [folded(cell) not in _NO for cell in table.column(index)]
    return list(zip(finished, times, strict=True))


def unfinished_rows(table: Table) -> list[int]:
    """Return the numbers of the rows that their maker marks as not finished."""
    found: list[int] | None = table.memo.get("unfinished")
    if found is None:
        marks = [
            table.column(index)
            for index, name in enumerate(table.header)
            if own_column(table.layout.maker, name, index) is Own.FINISHED
        ]
        rows = enumerate(table.row_numbers)
        found = [n for position, n in rows if any(folded(c[position]) in _NO for c in marks)]
        table.memo["unfinished"] = found
    return found


def spelled_apart(table: Table, choices: Choices, index: int) -> list[tuple[str, str]]:
    """Return [(id, how the last row writes it)] for ids of a column that differ in capitals only.

    E-mails are not among them: those are one however they are written.
    """
    key = ("spelled apart", index, _meanings_key(choices, index))
    found: list[tuple[str, str]] | None = table.memo.get(key)
    if found is None:
        cells = column_cells(table, choices, index, None)
        last = {cell.casefold(): cell for cell in cells}
        pairs = [(cell, last[cell.casefold()]) for cell in dict.fromkeys(cells)]
        found = [(cell, one) for cell, one in pairs if person_key(cell) != person_key(one)]
        table.memo[key] = found
    return found


def time_column(table: Table) -> int | None:
    """Return the column that tells when an answer was given; its end rather than its start."""
    if "times" not in table.memo:
        table.memo["times"] = _time_column(table)
    found: int | None = table.memo["times"]
    return found


def _time_column(table: Table) -> int | None:
    candidates = []
    for index, name in enumerate(table.header):
        plain = "".join(name.casefold().split())
        is_time = own_column(table.layout.maker, name, index) is Own.TIME
        if (is_time or plain in _LATEST_TIMES) and read_times(table.column(index)):
            late = any(plain.startswith(word) for word in _LATEST_TIMES)
            candidates.append((late, is_time, index))
    return max(candidates)[2] if candidates else None


def dropped_rows(table: Table, choices: Choices) -> Mapping[int, str]:
    """Return {row number: why} of all rows that become no student."""
    if choices.keep is Keep.ALL:
        return choices.left_out
    dropped = dict(choices.left_out)
    for found in repeats(table, choices).values():
        one = latest_of(table, found) if choices.keep is Keep.LATEST else min(found)
        for position in found:
            if position != one:
                dropped[table.row_numbers[position]] = "repeat"
    return dropped


def kept_positions(table: Table, choices: Choices) -> list[int]:
    """Return the positions of the rows that become students."""
    dropped = dropped_rows(table, choices)
    return [k for k, number in enumerate(table.row_numbers) if number not in dropped]
