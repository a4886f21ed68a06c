"""Check of a file of past roommates against a cohort: every row is judged, none guessed."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.tabular.pair_choices import PairChoices, in_row
from engine.tabular.person_search import Near, People
from engine.tabular.personal import says_apart
from engine.tabular.problems import Problem, Severity
from engine.tabular.table import Table
from engine.tabular.words import counted, listed

MAX_LISTED = 20
NO_ROOM = frozenset({"", "-", "none", "unplaced", "n/a", "na"})
_ON_SCREEN = re.compile(r"S-\d+")
_BED = re.compile(r"(?<=\d)(?:[-_ /.]?[A-H]|[-_/.][1-8])$", re.I)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A cell that matches nobody for sure, with its row and the near matches or namesakes.

    ``key`` is the key of its solution: the cell, or the cell of this row for namesakes.
    """

    cell: str
    row: int
    key: str
    near: Near | None = None
    namesakes: tuple[int, ...] = ()
    name: str = ""  # of the namesakes, as the cohort writes it

    @property
    def question(self) -> str:
        """Return the question for staff; empty if nobody has a similar name."""
        if not self.namesakes:
            return ""
        return f"{len(self.namesakes)} students are called {self.name[:60]}. Which one?"


@dataclass(frozen=True, slots=True)
class PairsPreview:
    """Content to import, as positions in the cohort in file order, and the problems.

    ``rooms`` are the rooms of a roster, or of rows of more than two people, with their residents; a
    room of two is a pair as well. ``unknown`` are the cells that match nobody for sure. ``zeros``
    are ids that differ from those of the cohort by zeros only: {cell: position}.
    """

    pairs: tuple[tuple[int, int], ...]
    problems: tuple[Problem, ...]
    n_left_over: int
    rooms: tuple[tuple[str, tuple[int, ...]], ...] = ()
    unknown: tuple[Unknown, ...] = ()
    zeros: Mapping[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Return the problems that stop the import."""
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def sure(self) -> dict[str, int]:
        """Return the cells that are one letter apart from exactly one student: {cell: position}."""
        return {one.key: one.near.position for one in self.unknown if one.near and one.near.is_sure}

    @property
    def can_import(self) -> bool:
        """Return True if there is something to import and nothing stops it."""
        return not self.errors and bool(self.pairs or self.shared_rooms)

    @property
    def why_nothing(self) -> str:
        """Return why the file holds nothing to import, in one sentence."""
        if self.rooms:
            return "Nobody in this roster has a roommate."
        return "The file holds no pair of this cohort."

    @property
    def shared_rooms(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the rooms with at least two residents."""
        return tuple(room for room in self.rooms if len(room[1]) > 1)

    @property
    def words(self) -> str:
        """Return the content to import in words: '3 pairs', or '3 shared rooms' of a roster."""
        if self.rooms:
            return counted(len(self.shared_rooms), "shared room")
        return counted(len(self.pairs), "pair")

    @property
    def room_sizes(self) -> list[tuple[int, int]]:
        """Return [(residents, number of rooms with that many)], small rooms first."""
        return sorted(Counter(len(residents) for _, residents in self.rooms).items())


def check_pairs(table: Table, people: People, choices: PairChoices) -> PairsPreview:
    """Judge every row: unknown people, blanks, self pairs, repeated pairs, people paired twice.

    A row that repeats an earlier pair is a warning and counts once; every other fault is
    an error naming the row.
    """
    found = _Matcher(people, choices)
    used = choices.columns[:1] if choices.is_roster else choices.columns
    cells = {row[column] for row in table.rows for column in used if row[column]}
    zeros = people.differing_by_zeros(cells - choices.same.keys())
    found.zeros = frozenset(zeros)
    problems = [
        *_no_header(table, people, used),
        *_keeps_apart(table, choices.columns),
        *_wrong_ids(cells, people, zeros),
    ]
    checked = _check_roster(table, found) if choices.is_roster else _check_rows(table, found)
    return replace(
        checked,
        problems=tuple(_shortened([*problems, *checked.problems])),
        unknown=found.nobody(),
        zeros=zeros,
    )


class _Matcher:
    """Matcher from cells of a file to people of the cohort; each cell is looked up once."""

    def __init__(self, people: People, choices: PairChoices) -> None:
        self.people, self.choices = people, choices
        self.zeros: frozenset[str] = frozenset()
        self._unknown: dict[str, Unknown] = {}

    def find(self, cell: str, row: int) -> int | None:
        """Return the person that a cell means; remember it with its row if there is no sure one."""
        same = self.choices.same
        settled = same.get(in_row(cell, row), same.get(cell))
        if settled is not None:
            return settled
        found = self.people.find(cell)
        if found is None and cell and cell not in self.zeros:
            namesakes = self.people.namesakes(cell)
            key = in_row(cell, row) if namesakes else cell
            if key not in self._unknown:
                name = self.people.names[namesakes[0]] if namesakes else ""
                self._unknown[key] = Unknown(cell, row, key, None, namesakes, name or cell)
        return found

    def question(self, cell: str, row: int) -> str:
        """Return the problem with a cell that matches nobody for sure."""
        asked = self._unknown.get(in_row(cell, row))
        return asked.question if asked else f"{cell[:60]} is not a student of this cohort."

    def nobody(self) -> tuple[Unknown, ...]:
        """Return the cells that match nobody, with near matches; namesakes first."""
        found = [
            one if one.namesakes else replace(one, near=self.people.near(one.cell))
            for one in self._unknown.values()
        ]
        return tuple(sorted(found, key=lambda one: not one.namesakes))


def _check_rows(table: Table, found: _Matcher) -> PairsPreview:
    """Judge rows of people who share a room: two, or more if the file has more columns."""
    columns = found.choices.columns
    rooms: dict[frozenset[int], tuple[int, tuple[int, ...]]] = {}
    first_row: dict[int, int] = {}
    problems: list[Problem] = []
    for number, row in zip(table.row_numbers, table.rows, strict=True):
        named = [row[column] for column in columns if row[column]]
        cells = named if len(named) > 1 else [row[column] for column in columns[:2]]
        people = [found.find(cell, number) for cell in cells]
        known = [one for one in people if one is not None]
        if len(known) < len(cells) or len(set(known)) < len(cells):
            problem = _fault(number, cells, people, found)
            problems += [problem] if problem else []
            continue
        room = frozenset(known)
        if room in rooms:
            what, first = "pair" if len(room) == 2 else "room", rooms[room][0]
            sentence = f"Row {number:,} repeats the {what} of row {first:,}; it counts once."
            problems.append(Problem(Severity.WARNING, sentence, row=number))
            continue
        twice = [(cell, k) for cell, k in zip(cells, known, strict=True) if k in first_row]
        if twice:
            problems.append(_paired_twice(number, twice[0][0], first_row[twice[0][1]]))
            continue
        rooms[room] = (number, tuple(known))
        first_row.update(dict.fromkeys(room, number))
    left_over = len(found.people) - len(first_row)
    if left_over:
        problems.append(_left_over(left_over, len(found.people)))
    pairs = tuple((room[0], room[1]) for _, room in rooms.values() if len(room) == 2)
    has_more = any(len(room) > 2 for room in rooms)
    named_rooms = tuple((f"Row {number}", room) for number, room in rooms.values())
    return PairsPreview(pairs, tuple(problems), left_over, named_rooms if has_more else ())


def _check_roster(table: Table, found: _Matcher) -> PairsPreview:
    person, *room = found.choices.columns
    residents: dict[str, list[int]] = defaultdict(list)
    first_row: dict[int, int] = {}
    names = [" ".join(row[k] for k in room if row[k]) for row in table.rows]
    problems: list[Problem] = []
    beds = _rooms_of_beds([n for n, row in zip(names, table.rows, strict=True) if row[person]])
    if beds:
        problems.append(_read_as_beds(beds))
    known: dict[str, str] = {}
    for number, row, said in zip(table.row_numbers, table.rows, names, strict=True):
        name = beds.get(said, said)
        name = known.setdefault(name.casefold(), name)
        cell, one = row[person], found.find(row[person], number)
        if not cell:
            continue  # a free bed
        if one is None:
            problem = _fault(number, [cell], [None], found)
            problems += [problem] if problem else []
        elif row[room[-1]].casefold() in NO_ROOM:
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
    return PairsPreview(pairs, tuple(problems), left_over, rooms)


def _rooms_of_beds(names: Sequence[str]) -> dict[str, str]:
    """Return {bed: room} if each row has a bed of its own, such as 101-A and 101-B; else none."""
    rooms = {name: _BED.sub("", name) for name in names}
    times = Counter(room.casefold() for room in rooms.values())
    n_shared = sum(n for n in times.values() if n > 1)
    is_alone = len({name.casefold() for name in names}) == len(names)
    return rooms if is_alone and 2 * n_shared >= len(names) > 0 else {}


def _read_as_beds(beds: Mapping[str, str]) -> Problem:
    times = Counter(room.casefold() for room in beds.values())
    shared = next(room.casefold() for room in beds.values() if times[room.casefold()] > 1)
    one, other = [bed for bed, room in beds.items() if room.casefold() == shared][:2]
    return Problem(
        Severity.WARNING,
        f"{one[:40]} and {other[:40]} are read as beds of one room: no room has two rows.",
        "If they are rooms of their own, nobody in this file has a roommate.",
    )


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


def _no_header(table: Table, people: People, columns: Sequence[int]) -> list[Problem]:
    """Refuse a header that names students, from a choice of staff or from an older upload."""
    named = [table.header[k] for k in columns]
    if not table.layout.header_row or any(people.find(name) is None for name in named):
        return []
    row = table.layout.header_row
    return [
        Problem(
            Severity.ERROR,
            f"Row {row} is read as the header, but {listed(named, quoted=False)} are students.",
            "Upload the file again: a first row of students is read as one.",
            row=row,
        )
    ]


def _keeps_apart(table: Table, columns: Sequence[int]) -> list[Problem]:
    """Refuse a column of people who must not live together, which is no choice of roommates."""
    return [
        Problem(
            Severity.ERROR,
            f"“{table.header[k][:60]}” names people who must not live together.",
            "Roommates are expected here. Keep people apart in the rules of a placement.",
            column=k,
        )
        for k in columns
        if says_apart(table.header[k])
    ]


def _wrong_ids(cells: set[str], people: People, zeros: Mapping[str, int]) -> list[Problem]:
    """Explain once why many ids are unknown, if the file as a whole shows it."""
    if zeros:
        cell, position = next(iter(zeros.items()))
        return [
            Problem(
                Severity.ERROR,
                f"{counted(len(zeros), 'id differs', 'ids differ')} from those of the survey by "
                "leading zeros only.",
                f"Spreadsheets remove them: {cell[:40]} is likely to be "
                f"{people.labels[position][:40]}.",
                kind="zeros",
            )
        ]
    known = set(people.labels)
    on_screen = sorted(cell for cell in cells - known if _ON_SCREEN.fullmatch(cell))
    if on_screen and not any(_ON_SCREEN.fullmatch(label) for label in known):
        return [
            Problem(
                Severity.ERROR,
                f"{on_screen[0]} is an id on screen; the ids that the survey used are needed.",
            )
        ]
    return []


def _fault(
    number: int, cells: Sequence[str], people: Sequence[int | None], found: _Matcher
) -> Problem | None:
    """Return the problem of a row; None if staff leave out rows with unknown people."""
    unknown = [cell for cell, one in zip(cells, people, strict=True) if one is None]
    if not all(cells):
        sentence = f"Row {number:,}: one of the two ids is blank."
    elif unknown:
        if found.choices.without or found.zeros.issuperset(unknown):
            return None
        missing = next(cell for cell in unknown if cell not in found.zeros)
        sentence = f"Row {number:,}: {found.question(missing, number)}"
    else:
        repeated = next(
            cell for cell, one in zip(cells, people, strict=True) if people.count(one) > 1
        )
        sentence = f"Row {number:,}: {repeated[:60]} is paired with themselves."
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
