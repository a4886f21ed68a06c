"""Hard rules one by one: listed, by kind, kept in part, and shrunk to the few that clash."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from engine.crf.room_rules import RoomRules

RuleEntry = tuple[str, Any]  # field of RoomRules, entry
Entry = TypeVar("Entry")
HARD = ("locks", "single", "assigned", "designations", "needs", "closed", "kept", "same")


def list_entries(rules: RoomRules) -> list[RuleEntry]:
    """List the hard rules that say who may live where, one by one."""
    entries: list[RuleEntry] = [
        (field.name, entry)
        for field in fields(rules)
        if field.name in HARD
        for entry in getattr(rules, field.name)
    ]
    entries += [("requests", r) for r in rules.requests if r.is_must]
    return [*entries, ("must_fill", True)] if rules.must_fill else entries


def list_families(rules: RoomRules) -> list[tuple[RuleEntry, ...]]:
    """Sort hard rules into those that staff would relax together."""
    families: dict[object, list[RuleEntry]] = {}
    for field, entry in list_entries(rules):
        key: object = field
        if field in {"designations", "same"}:
            key = (field, entry)
        elif field == "needs":
            key = (field, entry.column, entry.value)
        families.setdefault(key, []).append((field, entry))
    return [tuple(family) for family in families.values()]


def concerns(entry: RuleEntry, students: set[int]) -> bool:
    """Whether a rule is about some of these people, or about nobody by name."""
    field, value = entry
    if field == "locks":
        return bool(students & set(value))
    if field in {"needs", "requests"}:
        return value.student in students
    if field == "assigned":
        return value[0] in students
    return field != "single" or value in students


def keep_only(rules: RoomRules, kept: Sequence[RuleEntry]) -> RoomRules:
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


def shrink(entries: Sequence[Entry], is_impossible: Callable[[list[Entry]], bool]) -> list[Entry]:
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
