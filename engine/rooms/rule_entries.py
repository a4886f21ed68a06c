"""Hard rules as single entries: listed, grouped by kind, filtered, reduced to those that clash."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from engine.crf.room_rules import RoomRules

RuleEntry = tuple[str, Any]  # field of RoomRules, entry
Entry = TypeVar("Entry")
DROPPABLE = ("requests", "locks", "assigned")  # fields whose entries may be dropped, first to last
HARD = ("locks", "single", "assigned", "designations", "needs", "closed", "kept", "same")


def list_entries(rules: RoomRules) -> list[RuleEntry]:
    """List the hard rules about people and rooms as single entries."""
    entries: list[RuleEntry] = [
        (field.name, entry)
        for field in fields(rules)
        if field.name in HARD
        for entry in getattr(rules, field.name)
    ]
    entries += [("requests", r) for r in rules.requests if r.is_must]
    return [*entries, ("must_fill", True)] if rules.must_fill else entries


def list_families(rules: RoomRules) -> list[tuple[RuleEntry, ...]]:
    """Group the hard rules that staff would relax together."""
    families: dict[object, list[RuleEntry]] = {}
    for entry in list_entries(rules):
        families.setdefault(_family_key(entry), []).append(entry)
    return [tuple(family) for family in families.values()]


def family_keys(entries: Sequence[RuleEntry]) -> frozenset[object]:
    """Return the kinds of the rules, whichever people they concern."""
    return frozenset(_family_key(entry) for entry in entries)


def _family_key(entry: RuleEntry) -> object:
    field, value = entry
    if field in {"designations", "same"}:
        return field, value
    if field == "needs":
        return field, value.column, value.value
    return field


def renumber(entry: RuleEntry, number: Mapping[int, int]) -> RuleEntry:
    """Return a rule with new numbers of its students; students without one leave the locks."""
    field, value = entry
    if field == "locks":
        return field, tuple(number[s] for s in value if s in number)
    if field == "assigned":
        return field, (number[value[0]], value[1])
    if field == "requests":
        return field, replace(value, student=number[value.student], wants=number[value.wants])
    if field == "needs":
        return field, replace(value, student=number[value.student])
    return (field, number[value]) if field == "single" else entry


def concerns(entry: RuleEntry, students: set[int]) -> bool:
    """Return True if a rule concerns some of these people, or nobody by name."""
    field, value = entry
    if field == "locks":
        return bool(students & set(value))
    if field in {"needs", "requests"}:
        return value.student in students
    if field == "assigned":
        return value[0] in students
    return field != "single" or value in students


def keep_only(rules: RoomRules, kept: Sequence[RuleEntry]) -> RoomRules:
    """Return the rules with no hard entries except the given ones."""
    lists: dict[str, list[Any]] = {}
    for field, entry in kept:
        lists.setdefault(field, []).append(entry)
    hard = {*HARD, "forbids"}
    changes: dict[str, Any] = {name: tuple(lists.get(name, ())) for name in hard}
    changes["requests"] = tuple(lists.get("requests", ()))
    changes["must_fill"] = "must_fill" in lists
    changes["preferences"] = changes["order"] = ()
    return replace(rules, **changes)


def shrink(entries: Sequence[Entry], is_impossible: Callable[[list[Entry]], bool]) -> list[Entry]:
    """Remove entries that do not take part: the deletion filter of Chinneck and Dravnieks (1991).

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
