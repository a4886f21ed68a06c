"""Snapshots of a proposal's rules, and their differences, from which undo works."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from webapp.accounts.models import User
from webapp.matching.models import ForbiddenPair, LockRule, Proposal

Change = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """Rules of a proposal at one time; students by key, in ``singles`` by number."""

    locks: list[list[int]]
    forbidden: list[list[Any]]  # [is for ever, first, second]
    singles: list[int]
    same: list[str]

    def changes_to(self, after: "RuleRecord") -> dict[str, Change]:
        """Return {rule: {"removed": [...], "added": [...]}}, as a DecisionEvent keeps it."""
        names = ("locks", "forbidden", "singles", "same")
        return {name: _change(getattr(self, name), getattr(after, name)) for name in names}


def record_rules(proposal: Proposal) -> RuleRecord:
    """Return the current rules of a proposal in the database."""
    fresh = Proposal.objects.get(pk=proposal.pk)
    forbidden = ForbiddenPair.objects.filter(
        Q(proposal=None) | Q(proposal=fresh), cohort_id=fresh.cohort_id
    )
    return RuleRecord(
        locks=[[rule.first_id, rule.second_id] for rule in fresh.locks.all()],
        forbidden=[[f.proposal_id is None, f.first_id, f.second_id] for f in forbidden],
        singles=list(fresh.singles),
        same=list(fresh.same),
    )


def restore_rules(user: User, proposal: Proposal, changes: dict[str, Change]) -> None:
    """Undo changes of locks, singles and columns that must be equal; others' changes stay."""
    for first, second in changes["locks"]["added"]:
        LockRule.objects.filter(proposal=proposal, first_id=first, second_id=second).delete()
    for first, second in changes["locks"]["removed"]:
        LockRule.objects.get_or_create(
            proposal=proposal,
            first_id=first,
            second_id=second,
            defaults={"created_by": user.get_username()},
        )
    Proposal.objects.filter(pk=proposal.pk).update(
        singles=sorted(_without(proposal.singles, changes["singles"])),
        same=_without(proposal.same, changes["same"]),
    )


def _change(before: list[Any], after: list[Any]) -> Change:
    return {
        "removed": [rule for rule in before if rule not in after],
        "added": [rule for rule in after if rule not in before],
    }


def _without(present: list[Any], change: Change) -> list[Any]:
    kept = [rule for rule in present if rule not in change["added"]]
    return kept + [rule for rule in change["removed"] if rule not in kept]
