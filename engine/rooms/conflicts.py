"""Explanation of infeasible placements: the smallest set of rules that clash, by name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import Need, Request, RoomRules
from engine.crf.rooms import Rooms, plain_value
from engine.rooms.bed_plan import BedDemand, BedPlanner
from engine.rooms.clock import SearchClock
from engine.rooms.formulation import Attributes, RoomLayout, lay_out, survey_column
from engine.rooms.rule_entries import (
    DROPPABLE,
    RuleEntry,
    concerns,
    family_keys,
    keep_only,
    list_entries,
    list_families,
    renumber,
    shrink,
)
from engine.rooms.rule_links import find_path, list_links, list_separations

SHOWN = 6  # largest number of ids in a sentence


@dataclass(frozen=True, slots=True)
class RoomConflict:
    """Reason why not everybody can have a room.

    Parameters
    ----------
    kind : str
        too_few_beds, too_many_beds, contradiction (of rules that hold people together or in a
        room), no_room (no room fits these people), clash (about the number of beds for some
        people), or unproved (unknown whether a placement exists).
    sentence : str, for people, naming ids.
    students : tuple of student indices that take part.
    rooms : tuple of room indices that take part.
    rules : tuple of (field of RoomRules, its entry)
        The rules that clash. Dropping any one resolves a contradiction; dropping all of one kind
        resolves a clash; dropping any one of each student resolves no_room.
    n_left : int, least number of people left without a room; 0 for contradictions.
    """

    kind: str
    sentence: str
    students: tuple[int, ...] = ()
    rooms: tuple[int, ...] = ()
    rules: tuple[RuleEntry, ...] = ()
    n_left: int = 0

    @property
    def is_lack_of_beds(self) -> bool:
        """Return True if some people can be placed, False if rules contradict each other."""
        return self.kind != "contradiction"


def check_room_rules(
    n_students: int,
    rooms: Rooms,
    rules: RoomRules,
    attributes: Attributes,
    *,
    ids: Sequence[str],
) -> tuple[RoomConflict, ...]:
    """Return the conflicts that make a placement of everybody impossible; empty if none is found.

    Contradictions about few people come first; beds are counted only if there are none. Every
    conflict is proved. Finding none does not prove that a placement exists, because the count
    ignores who may live with whom.

    Raises
    ------
    InvalidProblemError
        If a rule names a student, room or column that is not there.
    """
    check_references(n_students, rooms, rules, attributes)
    case = _Case(n_students, rooms, attributes, tuple(ids))
    found = tuple(case.contradictions(rules))
    if any(not conflict.is_lack_of_beds for conflict in found) or not n_students:
        return found
    stuck = frozenset(s for conflict in found for s in conflict.students)
    n_left = case.n_left(rules, stuck)
    if n_left > 0:
        found = (*found, case.explain_lack(rules, n_left, stuck))
    return found


def find_contradictions(
    n_students: int,
    rooms: Rooms,
    rules: RoomRules,
    attributes: Attributes,
    *,
    ids: Sequence[str],
) -> tuple[RoomConflict, ...]:
    """Return contradictions about few people and people whom no room fits; ignore bed counts."""
    return tuple(_Case(n_students, rooms, attributes, tuple(ids)).contradictions(rules))


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
    """Return the conflict that makes a search leave people out although there are enough beds.

    ``is_short`` returns whether rules provably leave somebody out. If not even all rules do, the
    conflict is ``unproved``: no placement was found, and more time may help.
    """
    case = _Case(n_students, rooms, attributes, tuple(ids))
    return case.explain_crowding(replace(rules, preferences=()), unplaced, is_short)


def more_left_out(n_left: int, is_proved: bool) -> RoomConflict:
    """Return a conflict for people left out by a search beyond those in other conflicts."""
    who = "1 more student is" if n_left == 1 else f"{n_left:,} more students are"
    if is_proved:
        text = f"{who} left without a room: pairs who never share, or locks, leave no way."
        return RoomConflict("clash", text, n_left=n_left)
    text = f"{who} left without a room after the time given; more time may help."
    return RoomConflict("unproved", text, n_left=n_left)


def check_references(n: int, rooms: Rooms, rules: RoomRules, attributes: Attributes) -> None:
    """Raise InvalidProblemError if a rule names an unknown student, room or column."""
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
    """People and rooms on which rules are tested."""

    n: int
    rooms: Rooms
    attributes: Attributes
    ids: tuple[str, ...]

    def contradictions(self, rules: RoomRules) -> Iterator[RoomConflict]:
        """Yield the rules about one or a few people that cannot hold together."""
        links = list_links(rules)
        for kind, i, j, entry in list_separations(self.n, rules, self.attributes, links):
            path = find_path(links, i, j)
            if path is None:
                continue
            chain = " and ".join(sorted({self.ids[s] for _, a, b in path for s in (a, b)}))
            text = f"{chain} are to share a room, but {self._name(kind, i, j)}."
            held = tuple(dict.fromkeys(entry for link, _, _ in path for entry in link))
            yield RoomConflict("contradiction", text, (i, j), (), (*held, *entry))
        whole = self._lay_out(rules)
        stuck = np.flatnonzero(~whole.choices.any(axis=0))
        yield from self._explain_stuck(rules, whole, stuck)

    def _name(self, kind: str, i: int, j: int) -> str:
        if kind == "single":
            return f"{self.ids[i]} is to live alone"
        if kind == "forbids":
            return f"{self.ids[i]} and {self.ids[j]} are never to"
        return f"{self.ids[i]} and {self.ids[j]} differ in {kind}"

    def _explain_stuck(
        self, rules: RoomRules, whole: RoomLayout, atoms: IntArray
    ) -> Iterator[RoomConflict]:
        """Yield the smallest sets of rules that leave atoms without a room, like ones grouped."""
        order = np.argsort(whole.atom_of, kind="stable")
        start = np.searchsorted(whole.atom_of[order], np.append(atoms, atoms + 1)).reshape(2, -1)
        alike: dict[object, list[tuple[int, list[RuleEntry]]]] = {}
        for first, last in start.T.tolist():
            members = order[first:last]
            students, needed = self._needed(rules, members)
            lone = students[0] if len(students) == 1 else None
            if lone is None or any(field in DROPPABLE for field, _ in needed):
                yield self._contradiction(rules, students, needed)
            else:
                alike.setdefault(family_keys(needed), []).append((lone, needed))
        for found in alike.values():
            yield self._no_room([lone for lone, _ in found], [e for _, part in found for e in part])

    def _needed(
        self, rules: RoomRules, members: IntArray
    ) -> tuple[tuple[int, ...], list[RuleEntry]]:
        """Return the students left without a room and the smallest set of rules behind it."""
        small = replace(
            self,
            n=len(members),
            attributes={
                name: tuple(self.attributes[name][k] for k in members.tolist())
                for name in {d.student_column for d in rules.designations}
            },
        )
        number = {k: place for place, k in enumerate(members.tolist())}
        homes = {("kept", room) for student, room in rules.assigned if student in number}
        entries = [e for e in list_entries(rules) if concerns(e, set(number)) and e not in homes]
        entries = [e for e in entries if e[0] != "same"]

        def stuck(kept: list[RuleEntry]) -> IntArray:
            layout = small._lay_out(keep_only(rules, [renumber(e, number) for e in kept]))
            is_stuck = ~layout.choices.any(axis=0)
            return np.flatnonzero(layout.atom_of == np.argmax(is_stuck)) if is_stuck.any() else none

        none = np.empty(0, dtype=np.int64)
        needed = shrink(entries, lambda kept: len(stuck(kept)) > 0)
        return tuple(members[stuck(needed)].tolist()), needed

    def _contradiction(
        self, rules: RoomRules, students: tuple[int, ...], needed: list[RuleEntry]
    ) -> RoomConflict:
        names = _few([self.ids[s] for s in students])
        text = f"No room fits {names}: {self._describe(needed)}."
        closed = {entry for field, entry in needed if field == "closed"}
        is_open = ~np.isin(np.arange(self.rooms.n_rooms), list(closed))
        largest = int(self.rooms.max_capacities[is_open].max(initial=0))
        if len(students) > largest > 0:
            text = (
                f"{len(students)} are to share a room, and the largest takes {largest}: "
                f"{names} ({self._describe(needed)})."
            )
        return RoomConflict("contradiction", text, students, (), tuple(needed))

    def _no_room(self, students: list[int], needed: list[RuleEntry]) -> RoomConflict:
        """Return the conflict of single students whom no room fits, for the same kinds of rules."""
        names, n = _few([self.ids[s] for s in students]), len(students)
        needed = list(dict.fromkeys(needed))
        needs = {(e.column, e.value) for field, e in needed if field == "needs"}
        text = f"No room fits {names}: {self._describe(needed)}."
        if n > 1 and len(needs) == 1 and all(field == "needs" for field, _ in needed):
            (column, value), *_ = needs
            wanted = column if plain_value(value) == "yes" else f"{column} = {value}"
            text = f"{n:,} students need {wanted}, and no open room has it: {names}."
        elif n > 1:
            text = f"No room fits {n:,} students ({names}): {self._describe(needed)}."
        return RoomConflict("no_room", text, tuple(students), (), tuple(needed), n)

    def demand(self, rules: RoomRules, stuck: frozenset[int]) -> tuple[BedDemand, IntArray]:
        """Return the demand for beds, and each student's atom, -1 if no room fits the student."""
        whole = self._lay_out(rules)
        keys = np.zeros(self.n, dtype=np.int64)
        for name in rules.same:
            own = np.unique(survey_column(self.attributes, name), return_inverse=True)[1]
            keys = np.unique(keys * (own.max() + 1) + own, return_inverse=True)[1]
        with_needs = np.zeros(self.n, dtype=np.int64)
        with_needs[[need.student for need in rules.needs]] = 1
        needy = np.bincount(whole.atom_of, weights=with_needs, minlength=len(whole.sizes))
        alone = np.zeros(self.n, dtype=bool)
        alone[list(rules.single)] = True
        first = np.unique(whole.atom_of, return_index=True)[1]
        counted = np.ones(len(first), dtype=bool)
        counted[whole.atom_of[list(stuck)]] = False
        found = BedDemand(
            whole.sizes[counted],
            keys[first][counted],
            alone[first][counted],
            needy.astype(np.int64)[counted],
            whole.choices[:, counted],
            whole.capacity,
            whole.count,
            whole.must_fill,
        )
        number = np.where(counted, np.cumsum(counted) - 1, -1)
        return found, number[whole.atom_of]

    def n_left(self, rules: RoomRules, stuck: frozenset[int]) -> int:
        """Return the shortage of beds, in people, not counting people whom no room fits."""
        demand, _ = self.demand(rules, stuck)
        return int(demand.sizes.sum()) - BedPlanner(demand, SearchClock(None)).most().most_people

    def explain_lack(self, rules: RoomRules, n_left: int, stuck: frozenset[int]) -> RoomConflict:
        """Return the conflict with the smallest set of kinds of rules that causes the shortage."""

        def is_short(kept: list[tuple[RuleEntry, ...]]) -> bool:
            held = [entry for family in kept for entry in family]
            return self.n_left(keep_only(rules, held), stuck) > 0

        kinds = list_families(rules)
        needed = [entry for family in shrink(kinds, is_short) for entry in family]
        if any(field == "must_fill" for field, _ in needed):
            kind = "too_many_beds"
        else:
            kind = "clash" if needed else "too_few_beds"
        demand, atom_of = self.demand(rules, stuck)
        short = BedPlanner(demand, SearchClock(None)).shortage()
        who = np.flatnonzero(np.isin(atom_of, short.atoms))
        beds, n = int((demand.capacity * demand.count)[short.kinds].sum()), self.n - len(stuck)
        text = f"{len(who):,} students need a bed, and the rooms that they may have hold {beds:,}"
        if kind == "too_many_beds":
            text = f"{n_left:,} of {n:,} students cannot be part of a full room"
        elif len(who) <= beds:  # beds that nobody else may use, or that are never filled by some
            text = f"At most {n - n_left:,} of {n:,} students can have a bed"
        because = f": {self._describe(needed)}" if needed else ""
        rooms = np.flatnonzero(np.isin(self._lay_out(rules).kind_of, short.kinds))
        left = "1 is" if n_left == 1 else f"{n_left:,} are"
        return RoomConflict(
            kind,
            f"{text}{because}; at least {left} left without a room.",
            tuple(who.tolist()),
            tuple(rooms.tolist()),
            tuple(needed),
            n_left,
        )

    def explain_crowding(
        self, rules: RoomRules, unplaced: Sequence[int], is_short: Callable[[RoomRules], bool]
    ) -> RoomConflict:
        """Return the smallest set of rules that leaves somebody out, pair by forbidden pair."""
        names = _few([self.ids[s] for s in unplaced])
        if not is_short(rules):
            text = f"No room was found for {names} in the time given; more time may help."
            return RoomConflict("unproved", text, tuple(unplaced), n_left=len(unplaced))
        parts = list_families(rules) + [(("forbids", pair),) for pair in rules.forbids]

        def is_still_short(kept: list[tuple[RuleEntry, ...]]) -> bool:
            return is_short(keep_only(rules, [entry for part in kept for entry in part]))

        needed = [entry for part in shrink(parts, is_still_short) for entry in part]
        text = (
            f"The beds suffice by number, but no placement gives everybody one: "
            f"{self._describe(needed)}. {names} would be left without a room."
        )
        students = tuple(unplaced)
        return RoomConflict("clash", text, students, (), tuple(needed), n_left=1)

    def _lay_out(self, rules: RoomRules) -> RoomLayout:
        return lay_out(self.n, self.attributes, self.rooms, replace(rules, preferences=()))

    def _describe(self, entries: Sequence[RuleEntry]) -> str:
        """Describe rules in a few words, grouped by kind."""
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
            return f"assigned: {_few([f'{self.ids[s]} in {self.rooms.ids[r]}' for s, r in rows])}"
        if field in {"closed", "kept"}:
            shown = _few([self.rooms.ids[r] for r in rows])
            return f"{n} {_word(n, 'room')} {'offline' if field == 'closed' else 'kept'} ({shown})"
        if field == "single":
            return f"{_few([self.ids[k] for k in rows])} {'lives' if n == 1 else 'live'} alone"
        if field == "must_fill":
            return "no room may have a free bed"
        words = {"locks": "lock", "requests": "request"}
        return f"{n} {_word(n, words.get(field, field))}"


def _few(names: Sequence[str]) -> str:
    """Join the first names, and the number of the remaining ones."""
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _word(count: int, noun: str) -> str:
    return noun if count == 1 or " " in noun else f"{noun}s"
