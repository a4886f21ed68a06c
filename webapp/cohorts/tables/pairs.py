"""Check a file of past roommates against a cohort: every row is judged, none guessed."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from webapp.cohorts.tables.pair_choices import PairChoices
from webapp.cohorts.tables.people import Near, People
from webapp.cohorts.tables.problems import Problem, Severity
from webapp.cohorts.tables.table import Table
from webapp.common.formats import counted

MAX_LISTED = 20
_ON_SCREEN = re.compile(r"S-\d+")


@dataclass(frozen=True, slots=True)
class PairsPreview:
    """What would be imported, as positions in the cohort, and what is wrong.

    ``rooms`` are the rooms of a roster with their residents, of any size; a room of two is a pair
    as well. ``unknown`` are the cells that mean nobody, with the rows and who is nearly called so.
    """

    pairs: tuple[tuple[int, int], ...]
    problems: tuple[Problem, ...]
    n_left_over: int
    rooms: tuple[tuple[str, tuple[int, ...]], ...] = ()
    unknown: tuple[tuple[str, int, Near | None], ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems that stop the import."""
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def sure(self) -> dict[str, int]:
        """Cells that are one letter apart from one student: {cell: position}."""
        return {cell: near.position for cell, _, near in self.unknown if near and near.is_sure}

    @property
    def can_import(self) -> bool:
        """Whether something can be imported and nothing stops it."""
        return not self.errors and bool(self.pairs or self.shared_rooms)

    @property
    def shared_rooms(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The rooms with at least two residents."""
        return tuple(room for room in self.rooms if len(room[1]) > 1)

    @property
    def words(self) -> str:
        """What would be imported: '3 pairs', or '3 shared rooms' of a roster."""
        if self.rooms:
            return counted(len(self.shared_rooms), "shared room")
        return counted(len(self.pairs), "pair")

    @property
    def room_sizes(self) -> list[tuple[int, int]]:
        """[(residents, rooms of that many)], small rooms first."""
        return sorted(Counter(len(residents) for _, residents in self.rooms).items())


def check_pairs(table: Table, people: People, choices: PairChoices) -> PairsPreview:
    """Judge every row: unknown people, blanks, self pairs, repeated pairs, people paired twice.

    A row that repeats an earlier pair is a warning and counts once; everything else that is wrong
    is an error naming the row.
    """
    found = _Matcher(people, choices)
    if choices.is_roster:
        return _check_roster(table, found)
    return _check_rows(table, found)


class _Matcher:
    """Whom the cells of a file mean, looked up once each."""

    def __init__(self, people: People, choices: PairChoices) -> None:
        self.people, self.choices = people, choices
        self.unknown: dict[str, int] = {}

    def find(self, cell: str, row: int) -> int | None:
        """Return whom a cell means; remember it with its row where it means nobody."""
        if cell in self.choices.same:
            return self.choices.same[cell]
        found = self.people.find(cell)
        if found is None and cell:
            self.unknown.setdefault(cell, row)
        return found

    def nobody(self) -> tuple[tuple[str, int, Near | None], ...]:
        """Return the cells that mean nobody, with who is nearly called so."""
        return tuple((cell, row, self.people.near(cell)) for cell, row in self.unknown.items())


def _check_rows(table: Table, found: _Matcher) -> PairsPreview:
    columns, people = found.choices.columns, found.people
    pairs: dict[tuple[int, int], int] = {}
    partner_row: dict[int, int] = {}
    problems: list[Problem] = []
    header = [table.header[column] for column in columns]
    if all(people.find(name) is not None for name in header):
        problems.append(_no_header(header))
    problems += _wrong_ids({row[column] for row in table.rows for column in columns}, people)
    for number, row in zip(table.row_numbers, table.rows, strict=True):
        cells = (row[columns[0]], row[columns[1]])
        one, other = (found.find(cell, number) for cell in cells)
        if one is None or other is None or one == other:
            problem = _fault(number, cells, (one, other), found.choices)
            problems += [problem] if problem else []
            continue
        pair = (min(one, other), max(one, other))
        if pair in pairs:
            sentence = f"Row {number:,} repeats the pair of row {pairs[pair]:,}; it counts once."
            problems.append(Problem(Severity.WARNING, sentence, row=number))
            continue
        twice = [(cell, k) for cell, k in zip(cells, (one, other), strict=True) if k in partner_row]
        if twice:
            problems.append(_paired_twice(number, twice[0][0], partner_row[twice[0][1]]))
            continue
        pairs[pair] = number
        partner_row.update({pair[0]: number, pair[1]: number})
    left_over = len(people) - len(partner_row)
    if left_over:
        problems.append(_left_over(left_over, len(people)))
    return PairsPreview(tuple(pairs), tuple(_shortened(problems)), left_over, (), found.nobody())


def _check_roster(table: Table, found: _Matcher) -> PairsPreview:
    person, *room = found.choices.columns
    residents: dict[str, list[int]] = defaultdict(list)
    first_row: dict[int, int] = {}
    problems = _wrong_ids(set(table.column(person)), found.people)
    for number, row in zip(table.row_numbers, table.rows, strict=True):
        name = " ".join(row[k] for k in room if row[k])
        cell, one = row[person], found.find(row[person], number)
        if not cell:
            continue  # a free bed
        if one is None:
            problem = _fault(number, (cell, cell), (None, None), found.choices)
            problems += [problem] if problem else []
        elif not row[room[-1]]:
            sentence = f"Row {number:,}: {cell[:60]} has no room; nothing is learned from them."
            problems.append(Problem(Severity.WARNING, sentence, row=number))
        elif one in first_row:
            problems.append(_housed_twice(number, cell, first_row[one], one in residents[name]))
        else:
            first_row[one] = number
            residents[name].append(one)
    rooms = tuple((name, tuple(sorted(one))) for name, one in residents.items() if one)
    pairs = tuple((one[0], one[1]) for _, one in rooms if len(one) == 2)
    shared = sum(len(one) for _, one in rooms if len(one) > 1)
    left_over = len(found.people) - shared
    if left_over:
        problems.append(_left_over(left_over, len(found.people), where="share no room"))
    return PairsPreview(pairs, tuple(_shortened(problems)), left_over, rooms, found.nobody())


def _housed_twice(number: int, cell: str, first: int, is_same_room: bool) -> Problem:
    if is_same_room:
        sentence = f"Row {number:,} repeats {cell[:60]} of row {first:,}; they count once."
        return Problem(Severity.WARNING, sentence, row=number)
    return Problem(
        Severity.ERROR,
        f"Row {number:,}: {cell[:60]} is in two rooms, first in row {first:,}.",
        "Leave one of the two rows out of the file.",
        row=number,
    )


def _no_header(ids: list[str]) -> Problem:
    return Problem(
        Severity.ERROR,
        f"Row 1 is read as the header, but {ids[0][:60]} and {ids[1][:60]} are students.",
        "Add a row above it that names the columns.",
        row=1,
    )


def _wrong_ids(cells: set[str], people: People) -> list[Problem]:
    """Say once why many ids are unknown, where the file as a whole tells."""
    known = set(people.labels)
    unknown = {cell for cell in cells - known - {""} if people.find(cell) is None}
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


def _fault(
    number: int,
    cells: tuple[str, str],
    found: tuple[int | None, int | None],
    choices: PairChoices,
) -> Problem | None:
    """Return what is wrong with a row; None where staff leave out rows with unknown people."""
    if not all(cells):
        sentence = f"Row {number:,}: one of the two ids is blank."
    elif None in found:
        if choices.without:
            return None
        missing = cells[0] if found[0] is None else cells[1]
        sentence = f"Row {number:,}: {missing[:60]} is not a student of this cohort."
    else:
        sentence = f"Row {number:,}: {cells[0][:60]} is paired with themselves."
    return Problem(Severity.ERROR, sentence, row=number)


def _paired_twice(number: int, label: str, first: int) -> Problem:
    return Problem(
        Severity.ERROR,
        f"Row {number:,}: {label[:60]} is paired twice, first in row {first:,}.",
        "Leave one of the two rows out of the file.",
        row=number,
    )


def _left_over(count: int, total: int, where: str = "") -> Problem:
    return Problem(
        Severity.WARNING,
        f"{counted(count, 'student')} of {total:,} "
        f"{where or ('is' if count == 1 else 'are') + ' in no pair'}.",
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
