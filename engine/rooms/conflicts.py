"""What makes a placement impossible, said by name: the smallest set of rules that clash."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import Need, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.bed_count import BedCount, count_beds
from engine.rooms.formulation import Attributes, RoomLayout, lay_out, survey_column

RuleEntry = tuple[str, Any]  # field of RoomRules, entry
Link = tuple[tuple[RuleEntry, ...], int, int]  # the rules that hold two students together, and who
Entry = TypeVar("Entry")
SHOWN = 6  # ids in a sentence
HARD = ("locks", "single", "assigned", "designations", "needs", "closed", "kept", "same")


@dataclass(frozen=True, slots=True)
class RoomConflict:
    """One reason for which not everybody can have a room.

    Parameters
    ----------
    kind : str
        too_few_beds, too_many_beds, contradiction (about a few people), clash (about how many
        beds there are for whom), or unproved (nobody knows whether a placement exists).
    sentence : str, for people, naming ids.
    students : tuple of student indices that take part.
    rooms : tuple of room indices that take part.
    rules : tuple of (field of RoomRules, its entry)
        The rules that clash. Of a contradiction any one may be left out; of a clash, all of any one
        kind.
    n_left : int, how many are left without a room at least; 0 for contradictions.
    """

    kind: str
    sentence: str
    students: tuple[int, ...] = ()
    rooms: tuple[int, ...] = ()
    rules: tuple[RuleEntry, ...] = ()
    n_left: int = 0

    @property
    def is_lack_of_beds(self) -> bool:
        """Whether some can be placed and others not, rather than rules contradicting each other."""
        return self.kind != "contradiction"


def check_room_rules(
    n_students: int,
    rooms: Rooms,
    rules: RoomRules,
    attributes: Attributes,
    *,
    ids: Sequence[str],
) -> tuple[RoomConflict, ...]:
    """Return what makes a placement of everybody impossible; empty when nothing was found.

    Contradictions about few people come first; beds are only counted where there are none. What is
    found is proved; not found is no proof that a placement exists, since who may not live with whom
    is not part of the count.

    Raises
    ------
    InvalidProblemError
        If a rule names a student, room or column that is not there.
    """
    _check_references(n_students, rooms, rules, attributes)
    case = _Case(n_students, rooms, attributes, tuple(ids))
    found = tuple(case.contradictions(rules))
    if found or not n_students:
        return found
    count = case.count(rules)
    return () if count.n_left == 0 else (case.explain_lack(rules, count),)


def name_crowding(
    n_students: int,
    rooms: Rooms,
    rules: RoomRules,
    attributes: Attributes,
    *,
    ids: Sequence[str],
    unplaced: Sequence[int],
    is_short: Callable[[RoomRules], bool],
) -> RoomConflict:
    """Name why a search left people out although the beds suffice by number.

    ``is_short`` says whether rules are proved to leave somebody out. Where not even all of them
    are, the conflict is ``unproved``: nothing was found, and more time may help.
    """
    case = _Case(n_students, rooms, attributes, tuple(ids))
    return case.explain_crowding(replace(rules, preferences=()), unplaced, is_short)


def _check_references(n: int, rooms: Rooms, rules: RoomRules, attributes: Attributes) -> None:
    students = [s for lock in rules.locks for s in lock] + [s for p in rules.forbids for s in p]
    students += [*rules.single, *(s for s, _ in rules.assigned)]
    told: list[Any] = [*rules.needs, *rules.preferences, *rules.requests]
    students += [x.student for x in told]
    students += [request.wants for request in rules.requests]
    unknown = [s for s in students if not 0 <= s < n]
    if unknown:
        raise InvalidProblemError(f"A rule names student {unknown[0]}, who is not among the {n}.")
    named = [room for _, room in rules.assigned] + [*rules.closed, *rules.kept]
    missing = [room for room in named if not 0 <= room < rooms.n_rooms]
    if missing:
        raise InvalidProblemError(
            f"A rule names room {missing[0]}, which is not among the {rooms.n_rooms}."
        )
    for x in told:
        if not isinstance(x, Request):
            rooms.column(x.column)
    for designation in rules.designations:
        rooms.column(designation.room_column)
        survey_column(attributes, designation.student_column)
    for name in (*rules.same, *(name for name, _ in rules.alike)):
        survey_column(attributes, name)
    weights = [x.weight for x in told if not isinstance(x, Need)]
    if not np.isfinite(np.array([*weights, *(w for _, w in rules.alike)])).all():
        raise InvalidProblemError("The weights of wishes and preferences are to be finite numbers.")


@dataclass(frozen=True, slots=True)
class _Case:
    """The people and rooms that rules are tried on."""

    n: int
    rooms: Rooms
    attributes: Attributes
    ids: tuple[str, ...]

    def contradictions(self, rules: RoomRules) -> Iterator[RoomConflict]:
        """Yield the rules about one or a few people that cannot hold together."""
        links = _links(rules)
        for kind, i, j, entry in _separations(self.n, rules, self.attributes, links):
            path = _path(links, i, j)
            if path is None:
                continue
            chain = " and ".join(sorted({self.ids[s] for _, a, b in path for s in (a, b)}))
            text = f"{chain} are to share a room, but {self._name(kind, i, j)}."
            held = tuple(dict.fromkeys(entry for link, _, _ in path for entry in link))
            yield RoomConflict("contradiction", text, (i, j), (), (*held, *entry))
        whole = self._lay_out(rules)
        stuck = np.flatnonzero(~whole.choices.any(axis=0))
        for atom in stuck.tolist():
            yield self._explain_stuck(rules, np.flatnonzero(whole.atom_of == atom))

    def _name(self, kind: str, i: int, j: int) -> str:
        if kind == "single":
            return f"{self.ids[i]} is to live alone"
        if kind == "forbids":
            return f"{self.ids[i]} and {self.ids[j]} are never to"
        return f"{self.ids[i]} and {self.ids[j]} differ in {kind}"

    def _explain_stuck(self, rules: RoomRules, members: IntArray) -> RoomConflict:
        """Name the smallest set of rules for which these people have no room at all."""
        mine = set(members.tolist())
        entries = [e for e in _entries(rules) if _concerns(e, mine)]

        def is_stuck(kept: list[RuleEntry]) -> bool:
            trial = self._lay_out(_only(rules, kept))
            atoms = np.unique(trial.atom_of[members])
            return not bool(trial.choices[:, atoms].any(axis=0).all())

        needed = _shrink(entries, is_stuck)
        names = ", ".join(self.ids[s] for s in members[:SHOWN])
        text = f"No room fits {names}: {self._describe(needed)}."
        return RoomConflict("contradiction", text, tuple(sorted(mine)), (), tuple(needed))

    def count(self, rules: RoomRules) -> BedCount:
        """Count for how many there are beds."""
        whole = self._lay_out(rules)
        keys = np.zeros(self.n, dtype=np.int64)
        for name in rules.same:
            own = np.unique(survey_column(self.attributes, name), return_inverse=True)[1]
            keys = np.unique(keys * (own.max() + 1) + own, return_inverse=True)[1]
        alone = np.zeros(self.n, dtype=bool)
        alone[list(rules.single)] = True
        return count_beds(whole, keys, alone)

    def explain_lack(self, rules: RoomRules, count: BedCount) -> RoomConflict:
        """Name the kinds of rules without any of which there would be beds for more."""
        kinds = _families(rules)

        def is_short(kept: list[tuple[RuleEntry, ...]]) -> bool:
            held = [entry for family in kept for entry in family]
            return self.count(_only(rules, held)).n_left > 0

        needed = [entry for family in _shrink(kinds, is_short) for entry in family]
        if any(field == "must_fill" for field, _ in needed):
            kind = "too_many_beds"
        else:
            kind = "clash" if needed else "too_few_beds"
        who, beds = count.short_students, count.short_beds
        text = f"{len(who):,} students need a bed, and the rooms that they may have hold {beds:,}"
        if kind == "too_many_beds":
            text = f"{count.n_left:,} of {self.n:,} students cannot be part of a full room"
        because = f": {self._describe(needed)}" if needed else ""
        left = "1 is" if count.n_left == 1 else f"{count.n_left:,} are"
        return RoomConflict(
            kind,
            f"{text}{because}; at least {left} left without a room.",
            tuple(who),
            tuple(np.flatnonzero(np.isin(self._lay_out(rules).kind_of, count.short_kinds))),
            tuple(needed),
            count.n_left,
        )

    def explain_crowding(
        self, rules: RoomRules, unplaced: Sequence[int], is_short: Callable[[RoomRules], bool]
    ) -> RoomConflict:
        """Name the smallest set of rules that leaves somebody out, never-pairs one by one."""
        names = ", ".join(self.ids[s] for s in unplaced[:SHOWN])
        if len(unplaced) > SHOWN:
            names += f" and {len(unplaced) - SHOWN} more"
        if not is_short(rules):
            text = f"No room was found for {names} in the time given; more time may help."
            return RoomConflict("unproved", text, tuple(unplaced), n_left=len(unplaced))
        parts = _families(rules) + [(("forbids", pair),) for pair in rules.forbids]

        def is_still_short(kept: list[tuple[RuleEntry, ...]]) -> bool:
            return is_short(_only(rules, [entry for part in kept for entry in part]))

        needed = [entry for part in _shrink(parts, is_still_short) for entry in part]
        text = (
            f"The beds suffice by number, but no placement gives everybody one: "
            f"{self._describe(needed)}. {names} would be left without a room."
        )
        students = tuple(unplaced)
        return RoomConflict("clash", text, students, (), tuple(needed), n_left=1)

    def _lay_out(self, rules: RoomRules) -> RoomLayout:
        return lay_out(self.n, self.attributes, self.rooms, replace(rules, preferences=()))

    def _describe(self, entries: Sequence[RuleEntry]) -> str:
        """Say rules in a few words, those of one kind together."""
        by_kind: dict[str, list[Any]] = {}
        for field, entry in entries:
            name = field
            if field == "needs":
                name = f"needs {entry.column} = {entry.value}"
            elif field == "designations":
                name = f"designations {entry.room_column}"
            elif field == "same":
                name = f"same {entry}"
            by_kind.setdefault(name, []).append(entry)
        parts = [self._phrase(name, rows) for name, rows in by_kind.items()]
        return ", ".join(parts) or "no room is open"

    def _phrase(self, name: str, rows: list[Any]) -> str:
        field, _, rest = name.partition(" ")
        n = len(rows)
        if field == "needs":
            return f"{n} {_word(n, 'need')} {rest}"
        if field == "designations":
            return f"rooms are designated by {rest}"
        if field == "forbids":
            who = [f"{self.ids[a]} and {self.ids[b]}" for a, b in rows[:SHOWN]]
            more = f" and {n - SHOWN} more pairs" if n > SHOWN else ""
            return f"never together: {'; '.join(who)}{more}"
        if field == "same":
            return f"roommates agree in {rest}"
        if field == "assigned":
            who = [f"{self.ids[s]} in {self.rooms.ids[r]}" for s, r in rows[:SHOWN]]
            return f"assigned: {', '.join(who)}"
        if field in {"closed", "kept"}:
            shown = ", ".join(self.rooms.ids[r] for r in rows[:SHOWN])
            return f"{n} {_word(n, 'room')} {'offline' if field == 'closed' else 'kept'} ({shown})"
        if field == "must_fill":
            return "no room may have a free bed"
        words = {"locks": "lock", "requests": "request", "single": "person living alone"}
        return f"{n} {_word(n, words.get(field, field))}"


def _word(count: int, noun: str) -> str:
    return noun if count == 1 or " " in noun else f"{noun}s"


def _links(rules: RoomRules) -> list[Link]:
    """List what holds two people together: also that both are assigned to one room."""
    links: list[Link] = []
    for lock in rules.locks:
        links += [((("locks", lock),), lock[0], other) for other in lock[1:]]
    links += [((("requests", r),), r.student, r.wants) for r in rules.requests if r.is_must]
    first: dict[int, int] = {}
    for student, room in rules.assigned:
        one = first.setdefault(room, student)
        if one != student:
            entries = (("assigned", (one, room)), ("assigned", (student, room)))
            links.append((entries, one, student))
    return links


def _separations(
    n: int,
    rules: RoomRules,
    attributes: Attributes,
    links: list[Link],
) -> Iterator[tuple[str, int, int, tuple[RuleEntry, ...]]]:
    """Yield (what, i, j, rules) for people that a rule keeps apart and a lock may hold together."""
    for pair in rules.forbids:
        yield "forbids", pair[0], pair[1], (("forbids", pair),)
    for name in rules.same:
        column = survey_column(attributes, name)
        for _, i, j in links:
            if column[i] != column[j]:
                yield name, i, j, (("same", name),)
    alone = set(rules.single)
    for _, i, j in links:
        for a, b in ((i, j), (j, i)):
            if a in alone and a != b:
                yield "single", a, b, (("single", a),)


def _path(links: list[Link], start: int, end: int) -> list[Link] | None:
    """Return the shortest chain of links between two people, None when there is none."""
    came: dict[int, Link | None] = {start: None}
    neighbours: dict[int, list[Link]] = {}
    for entry, a, b in links:
        neighbours.setdefault(a, []).append((entry, a, b))
        neighbours.setdefault(b, []).append((entry, b, a))
    waiting = deque([start])
    while waiting and end not in came:
        here = waiting.popleft()
        for entry, _, there in neighbours.get(here, []):
            if there not in came:
                came[there] = (entry, here, there)
                waiting.append(there)
    if end not in came or start == end:
        return None
    path = []
    step = came[end]
    while step is not None:
        path.append(step)
        step = came[step[1]]
    return path


def _entries(rules: RoomRules) -> list[RuleEntry]:
    """List the hard rules that say who may live where, one by one."""
    entries: list[RuleEntry] = [
        (field.name, entry)
        for field in fields(rules)
        if field.name in HARD
        for entry in getattr(rules, field.name)
    ]
    entries += [("requests", r) for r in rules.requests if r.is_must]
    return [*entries, ("must_fill", True)] if rules.must_fill else entries


def _families(rules: RoomRules) -> list[tuple[RuleEntry, ...]]:
    """Sort hard rules into those that staff would relax together."""
    families: dict[object, list[RuleEntry]] = {}
    for field, entry in _entries(rules):
        key: object = field
        if field in {"designations", "same"}:
            key = (field, entry)
        elif field == "needs":
            key = (field, entry.column, entry.value)
        families.setdefault(key, []).append((field, entry))
    return [tuple(family) for family in families.values()]


def _concerns(entry: RuleEntry, students: set[int]) -> bool:
    field, value = entry
    if field == "locks":
        return bool(students & set(value))
    if field in {"needs", "requests"}:
        return value.student in students
    if field == "assigned":
        return value[0] in students
    return field != "single" or value in students


def _only(rules: RoomRules, kept: Sequence[RuleEntry]) -> RoomRules:
    """Return the rules with no hard entries but the given ones."""
    lists: dict[str, list[Any]] = {}
    for field, entry in kept:
        lists.setdefault(field, []).append(entry)
    hard = {*HARD, "forbids"}
    changes: dict[str, Any] = {name: tuple(lists.get(name, ())) for name in hard}
    changes["requests"] = tuple(lists.get("requests", ()))
    changes["must_fill"] = "must_fill" in lists
    changes["preferences"] = ()
    return replace(rules, **changes)


def _shrink(entries: Sequence[Entry], is_impossible: Callable[[list[Entry]], bool]) -> list[Entry]:
    """Leave out whatever does not take part: the deletion filter of Chinneck and Dravnieks (1991).

    Halves are tried before single entries, so that a few among many are found fast.
    """
    kept = list(entries)
    size = max(len(kept) // 2, 1)
    while True:
        start = 0
        while start < len(kept):
            trial = kept[:start] + kept[start + size :]
            if is_impossible(trial):
                kept = trial
            else:
                start += size
        if size == 1:
            return kept
        size = max(size // 2, 1)
