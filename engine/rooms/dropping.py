"""Dropping rules that contradict others for a few people, so that everybody else is placed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.conflicts import RoomConflict, find_contradictions
from engine.rooms.formulation import Attributes
from engine.rooms.rule_entries import DROPPABLE, RuleEntry, list_entries


@dataclass(frozen=True, slots=True)
class DroppedRule:
    """Rule that was dropped for some people.

    Parameters
    ----------
    rule : (field of RoomRules, its entry) as given.
    students : tuple of the students for whom it was dropped.
    sentence : str, for people: the rule, the students, and the rules that it contradicts.
    conflict : RoomConflict, the contradiction, with all rules that take part.
    """

    rule: RuleEntry
    students: tuple[int, ...]
    sentence: str
    conflict: RoomConflict


def drop_contradictions(
    rules: RoomRules,
    rooms: Rooms,
    attributes: Attributes,
    ids: Sequence[str],
    may_drop: Collection[str] = DROPPABLE,
) -> tuple[RoomRules, tuple[DroppedRule, ...]]:
    """Drop rules that hold people together or in a room where other rules forbid it.

    One rule of each contradiction is dropped: a request before a lock, a lock before an assigned
    room, and no other kind of rule. A lock of three or more loses only the student concerned.
    Rules that tie others to a student whom no room fits are dropped as well, so others are placed.

    Parameters
    ----------
    may_drop : names of fields of RoomRules that may lose entries.

    Returns
    -------
    rules, dropped : the remaining rules, and the dropped ones, in the order of the rules.
    """
    fields = [field for field in DROPPABLE if field in may_drop]
    dropped: list[DroppedRule] = []
    while True:
        found = find_contradictions(len(ids), rooms, rules, attributes, ids=ids)
        touched: set[RuleEntry] = set()
        for conflict in found:
            if conflict.is_lack_of_beds:
                entry = _tie(conflict, rules, fields)
            else:
                entry = _choose(conflict, fields)
            if entry is None or touched & {entry, *conflict.rules}:
                continue  # checked again in the next round
            touched.add(entry)
            rules, told = _drop(rules, entry, conflict, rooms, ids)
            dropped.append(told)
        if not touched:
            return rules, tuple(dropped)


def _choose(conflict: RoomConflict, fields: Sequence[str]) -> RuleEntry | None:
    """Return the rule to drop: the last one of the kind that is dropped first."""
    for field in fields:
        entries = [entry for entry in conflict.rules if entry[0] == field]
        if entries:
            return entries[-1]
    return None


def _tie(conflict: RoomConflict, rules: RoomRules, fields: Sequence[str]) -> RuleEntry | None:
    """Return a rule that ties others, or a room, to a student whom no room fits."""
    students = set(conflict.students)
    for entry in list_entries(rules):
        if entry[0] in fields and students & set(_concerned(entry)):
            return entry
    return None


def _drop(
    rules: RoomRules, entry: RuleEntry, conflict: RoomConflict, rooms: Rooms, ids: Sequence[str]
) -> tuple[RoomRules, DroppedRule]:
    field, value = entry
    left = list(getattr(rules, field))
    place = left.index(value)
    students: tuple[int, ...] = _concerned(entry)
    shown = _told(entry, rooms, ids)
    if field == "locks" and len(set(value)) > 2:
        out = next((s for s in reversed(conflict.students) if s in value), value[-1])
        left[place], students = tuple(s for s in value if s != out), (out,)
        shown = f"{ids[out]} was left out of the lock of {_names(value, ids)}"
    else:
        del left[place]
    changes: dict[str, Any] = {field: tuple(left)}
    text = f"{shown}. {conflict.sentence}"
    return replace(rules, **changes), DroppedRule(entry, students, text, conflict)


def _concerned(entry: RuleEntry) -> tuple[int, ...]:
    field, value = entry
    if field == "requests":
        return value.student, value.wants
    return tuple(dict.fromkeys(value)) if field == "locks" else (value[0],)


def _told(entry: RuleEntry, rooms: Rooms, ids: Sequence[str]) -> str:
    field, value = entry
    if field == "requests":
        return f"The request of {ids[value.student]} for {ids[value.wants]} was not applied"
    if field == "locks":
        return f"The lock of {_names(value, ids)} was not applied"
    return f"The assignment of {ids[value[0]]} to {rooms.ids[value[1]]} was not applied"


def _names(students: Sequence[int], ids: Sequence[str]) -> str:
    names = [ids[s] for s in dict.fromkeys(students)]
    return " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)
