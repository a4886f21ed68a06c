"""What the rules of a proposal are, and what changed between two looks: enough to undo it."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from webapp.accounts.models import User
from webapp.matching.models import ForbiddenPair, LockRule, Proposal

Change = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """The rules at one moment; students by key, in ``singles`` by number."""

    locks: list[list[int]]
    forbidden: list[list[Any]]  # [is for ever, first, second]
    singles: list[int]
    same: list[str]

    def changes_to(self, after: "RuleRecord") -> dict[str, Change]:
        """Return {rule: {"removed": [...], "added": [...]}}, as a DecisionEvent keeps it."""
        names = ("locks", "forbidden", "singles", "same")
        return {name: _change(getattr(self, name), getattr(after, name)) for name in names}


def record_rules(proposal: Proposal) -> RuleRecord:
    """Return the rules of a proposal as the database has them now."""
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
    """Take back changes of locks, singles and what must be the same; others' changes stay."""
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
