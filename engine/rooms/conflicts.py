"""What makes a placement impossible, said by name: the smallest set of rules that clash."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import Need, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.bed_count import BedCount, count_beds
from engine.rooms.formulation import Attributes, RoomLayout, lay_out, survey_column
from engine.rooms.rule_entries import (
    RuleEntry,
    concerns,
    keep_only,
    list_entries,
    list_families,
    shrink,
)
from engine.rooms.rule_links import find_path, list_links, list_separations

SHOWN = 6  # ids in a sentence


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
        entries = [e for e in list_entries(rules) if concerns(e, mine)]

        def is_stuck(kept: list[RuleEntry]) -> bool:
            trial = self._lay_out(keep_only(rules, kept))
            atoms = np.unique(trial.atom_of[members])
            return not bool(trial.choices[:, atoms].any(axis=0).all())

        needed = shrink(entries, is_stuck)
        found = self._lay_out(keep_only(rules, needed))
        atoms = np.unique(found.atom_of[members])
        atom = atoms[~found.choices[:, atoms].any(axis=0)][0]
        group = np.flatnonzero(found.atom_of == atom)
        names = _few([self.ids[s] for s in group])
        text = f"No room fits {names}: {self._describe(needed)}."
        largest = int(found.capacity.max(initial=0))
        if len(group) > largest > 0:
            text = (
                f"{len(group)} are to share a room, and the largest takes {largest}: "
                f"{names} ({self._describe(needed)})."
            )
        return RoomConflict("contradiction", text, tuple(group.tolist()), (), tuple(needed))

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
        kinds = list_families(rules)

        def is_short(kept: list[tuple[RuleEntry, ...]]) -> bool:
            held = [entry for family in kept for entry in family]
            return self.count(keep_only(rules, held)).n_left > 0

        needed = [entry for family in shrink(kinds, is_short) for entry in family]
        if any(field == "must_fill" for field, _ in needed):
            kind = "too_many_beds"
        else:
            kind = "clash" if needed else "too_few_beds"
        who, beds = count.short_students, count.short_beds
        text = f"{len(who):,} students need a bed, and the rooms that they may have hold {beds:,}"
        if kind == "too_many_beds":
            text = f"{count.n_left:,} of {self.n:,} students cannot be part of a full room"
        elif len(who) <= beds:  # beds that nobody else may use, or that are never filled by some
            text = f"At most {self.n - count.n_left:,} of {self.n:,} students can have a bed"
        because = f": {self._describe(needed)}" if needed else ""
        rooms = np.flatnonzero(np.isin(self._lay_out(rules).kind_of, count.short_kinds))
        left = "1 is" if count.n_left == 1 else f"{count.n_left:,} are"
        return RoomConflict(
            kind,
            f"{text}{because}; at least {left} left without a room.",
            tuple(who),
            tuple(rooms.tolist()),
            tuple(needed),
            count.n_left,
        )

    def explain_crowding(
        self, rules: RoomRules, unplaced: Sequence[int], is_short: Callable[[RoomRules], bool]
    ) -> RoomConflict:
        """Name the smallest set of rules that leaves somebody out, never-pairs one by one."""
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
    """Return the first names, and how many more there are."""
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _word(count: int, noun: str) -> str:
    return noun if count == 1 or " " in noun else f"{noun}s"
