"""Snapshots of the rules about pairs of a placement, and their differences, which undo reverses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webapp.accounts.models import User
from webapp.housing.models import PairLock, Placement
from webapp.housing.pairs.rules import forbids_of
from webapp.matching.models import ForbiddenPair

Change = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """Rules of a placement at one time; students by key, in ``singles`` by number."""

    locks: list[list[int]]
    forbidden: list[list[Any]]  # [is for ever, first, second]
    singles: list[int]
    same: list[str]

    def changes_to(self, after: "RuleRecord") -> dict[str, Change]:
        """Return {rule: {"removed": [...], "added": [...]}}, as the history keeps it."""
        names = ("locks", "forbidden", "singles", "same")
        return {name: _change(getattr(self, name), getattr(after, name)) for name in names}


def record_rules(placement: Placement) -> RuleRecord:
    """Return the current rules of a placement in the database."""
    fresh = Placement.objects.get(pk=placement.pk)
    return RuleRecord(
        locks=[[rule.first_id, rule.second_id] for rule in fresh.locks.all()],
        forbidden=[
            [rule.placement_id is None, rule.first_id, rule.second_id] for rule in forbids_of(fresh)
        ],
        singles=fresh.singles,
        same=fresh.same,
    )


def reversed_rules(changes: Mapping[str, Change]) -> dict[str, Change]:
    """Return the changes that take these changes back."""
    return {
        name: {"removed": change["added"], "added": change["removed"]}
        for name, change in changes.items()
    }


def restore_rules(user: User, placement: Placement, changes: Mapping[str, Change]) -> None:
    """Undo changes of rules; changes that others made stay."""
    for first, second in changes.get("locks", _NONE)["added"]:
        placement.locks.filter(first_id=first, second_id=second).delete()
    for first, second in changes.get("locks", _NONE)["removed"]:
        PairLock.objects.get_or_create(
            placement=placement,
            first_id=first,
            second_id=second,
            defaults={"created_by": user.get_username()},
        )
    for is_never, first, second in changes.get("forbidden", _NONE)["added"]:
        ForbiddenPair.objects.filter(
            cohort_id=placement.cohort_id,
            placement=None if is_never else placement,
            first_id=first,
            second_id=second,
        ).delete()
    for is_never, first, second in changes.get("forbidden", _NONE)["removed"]:
        ForbiddenPair.objects.get_or_create(
            cohort_id=placement.cohort_id,
            placement=None if is_never else placement,
            first_id=first,
            second_id=second,
            defaults={"created_by": user.get_username()},
        )
    write_rules(
        placement,
        singles=sorted(_without(placement.singles, changes.get("singles", _NONE))),
        same=_without(placement.same, changes.get("same", _NONE)),
    )


def write_rules(placement: Placement, **rules: list[Any]) -> None:
    """Write entries of the rules of a locked placement: ``same`` or ``singles``."""
    placement.rules = {**placement.rules, **rules}
    placement.save(update_fields=["rules"])


_NONE: Change = {"removed": [], "added": []}


def _change(before: list[Any], after: list[Any]) -> Change:
    return {
        "removed": [rule for rule in before if rule not in after],
        "added": [rule for rule in after if rule not in before],
    }


def _without(present: list[Any], change: Change) -> list[Any]:
    kept = [rule for rule in present if rule not in change["added"]]
    return kept + [rule for rule in change["removed"] if rule not in kept]
