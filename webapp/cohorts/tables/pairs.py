"""Check a table of past pairs against the ids of a cohort: every row is judged, none guessed."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from webapp.cohorts.tables.problems import Problem, Severity
from webapp.cohorts.tables.table import Table
from webapp.common.formats import counted

MAX_LISTED = 20
_ON_SCREEN = re.compile(r"S-\d+")


@dataclass(frozen=True, slots=True)
class PairsPreview:
    """The pairs that would be imported, as positions in the cohort, and what is wrong."""

    pairs: tuple[tuple[int, int], ...]
    problems: tuple[Problem, ...]
    n_left_over: int

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems that stop the import."""
        return tuple(problem for problem in self.problems if problem.is_error)


def choose_id_columns(table: Table, known: Mapping[str, int]) -> tuple[int, int]:
    """Return the two columns that hold most known ids; the first two when none does."""
    hits = [sum(cell in known for cell in table.column(index)) for index in range(table.n_columns)]
    order = sorted(range(table.n_columns), key=lambda index: (-hits[index], index))
    first, second = sorted(order[:2])
    return first, second


def check_pairs(table: Table, known: Mapping[str, int], columns: tuple[int, int]) -> PairsPreview:
    """Judge every row: unknown ids, blanks, self pairs, repeated pairs, persons paired twice.

    ``known`` maps an id to its position in the cohort. A row that repeats an earlier pair is a
    warning and counts once; everything else that is wrong is an error naming the row.
    """
    pairs: dict[tuple[int, int], int] = {}
    partner_row: dict[int, int] = {}
    problems: list[Problem] = []
    header = [table.header[column] for column in columns]
    if all(name in known for name in header):
        problems.append(_no_header(header))
    problems += _wrong_ids({row[column] for row in table.rows for column in columns}, known)
    for number, row in zip(table.row_numbers, table.rows, strict=True):
        a, b = row[columns[0]], row[columns[1]]
        fault = _fault(number, a, b, known)
        if fault is not None:
            problems.append(fault)
            continue
        pair = (min(known[a], known[b]), max(known[a], known[b]))
        if pair in pairs:
            sentence = f"Row {number:,} repeats the pair of row {pairs[pair]:,}; it counts once."
            problems.append(Problem(Severity.WARNING, sentence, row=number))
            continue
        twice = [label for label in (a, b) if known[label] in partner_row]
        if twice:
            problems.append(_paired_twice(number, twice[0], partner_row[known[twice[0]]]))
            continue
        pairs[pair] = number
        partner_row.update({pair[0]: number, pair[1]: number})
    left_over = len(known) - len(partner_row)
    if left_over:
        problems.append(_left_over(left_over, len(known)))
    return PairsPreview(tuple(pairs), tuple(_shortened(problems)), left_over)


def _no_header(ids: list[str]) -> Problem:
    return Problem(
        Severity.ERROR,
        f"Row 1 is read as the header, but {ids[0][:60]} and {ids[1][:60]} are students.",
        "Add a row above it that names the columns.",
        row=1,
    )


def _wrong_ids(cells: set[str], known: Mapping[str, int]) -> list[Problem]:
    """Say once why many ids are unknown, where the file as a whole tells."""
    unknown = cells - known.keys() - {""}
    bare = {label.lstrip("0") for label in known if label.startswith("0")}
    if any(cell.isdecimal() and cell.lstrip("0") in bare for cell in unknown):
        return [
            Problem(
                Severity.ERROR,
                "Ids of the survey begin with zeros that this file has lost.",
                "Spreadsheets remove them. Format the columns of ids as text, then enter the ids.",
            )
        ]
    on_screen = sorted(cell for cell in unknown if _ON_SCREEN.fullmatch(cell))
    if on_screen and not any(_ON_SCREEN.fullmatch(label) for label in known):
        return [
            Problem(
                Severity.ERROR,
                f"{on_screen[0]} is an id on screen; the ids that the survey used are needed.",
            )
        ]
    return []


def _fault(number: int, a: str, b: str, known: Mapping[str, int]) -> Problem | None:
    if not a or not b:
        sentence = f"Row {number:,}: one of the two ids is blank."
    elif a not in known or b not in known:
        missing = a if a not in known else b
        sentence = f"Row {number:,}: {missing[:60]} is not a student of this cohort."
    elif a == b:
        sentence = f"Row {number:,}: {a[:60]} is paired with themselves."
    else:
        return None
    return Problem(Severity.ERROR, sentence, row=number)


def _paired_twice(number: int, label: str, first: int) -> Problem:
    return Problem(
        Severity.ERROR,
        f"Row {number:,}: {label[:60]} is paired twice, first in row {first:,}.",
        "Leave one of the two rows out of the file.",
        row=number,
    )


def _left_over(count: int, total: int) -> Problem:
    return Problem(
        Severity.WARNING,
        f"{counted(count, 'student')} of {total:,} {'is' if count == 1 else 'are'} in no pair.",
        "They are left out when the model learns, as it learns only from those who chose.",
    )


def _shortened(problems: list[Problem]) -> list[Problem]:
    kept: list[Problem] = []
    hidden: Counter[Severity] = Counter()
    shown: Counter[Severity] = Counter()
    for problem in problems:
        if shown[problem.severity] < MAX_LISTED:
            shown[problem.severity] += 1
            kept.append(problem)
        else:
            hidden[problem.severity] += 1
    for severity, count in hidden.items():
        kept.append(Problem(severity, f"{counted(count, 'more row')} with such problems."))
    kept.sort(key=lambda problem: not problem.is_error)
    return kept
