"""The rules of a proposal as the engine reads them."""

from dataclasses import dataclass

from engine import Rules, Survey
from webapp.matching.models import ForbiddenPair, PairState, Proposal

HELD_STATES = (PairState.ACCEPTED, PairState.LOCKED, PairState.SWAPPED)


@dataclass(frozen=True, slots=True)
class Lock:
    """Two students who stay together, and why: a decided pair or a rule of its own."""

    first: int
    second: int
    state: str
    pair_id: int | None = None
    rule_id: int | None = None


def number_of(label: str) -> int:
    """Return the number in a label such as S-1001."""
    return int(label.removeprefix("S-"))


def proposal_locks(proposal: Proposal) -> list[Lock]:
    """Return held pairs and lock rules, by the students' numbers."""
    held = proposal.pairs.filter(state__in=HELD_STATES)
    locks = [
        Lock(pair.first_number, pair.second_number, pair.state, pair_id=pair.pk) for pair in held
    ]
    paired = {(lock.first, lock.second) for lock in locks}
    for rule in proposal.locks.select_related("first", "second"):
        first, second = sorted((rule.first.number, rule.second.number))
        if (first, second) not in paired:
            locks.append(Lock(first, second, PairState.LOCKED, rule_id=rule.pk))
    return locks


def proposal_forbids(proposal: Proposal) -> list[ForbiddenPair]:
    """Return what this proposal rejected and what must never be in its cohort."""
    forbidden = ForbiddenPair.objects.filter(cohort_id=proposal.cohort_id)
    mine = forbidden.filter(proposal=None) | forbidden.filter(proposal=proposal)
    return list(mine.select_related("first", "second"))


def proposal_rules(proposal: Proposal, survey: Survey, *, with_locks: bool = True) -> Rules:
    """Return the rules of a proposal as positions in the survey.

    Without locks they say with whom anybody might live: what a pair is compared with.
    """
    position = {label: k for k, label in enumerate(survey.ids)}

    def place(number: int) -> int:
        return position[f"S-{number}"]

    locks = proposal_locks(proposal) if with_locks else []
    return Rules(
        locks=tuple((place(lock.first), place(lock.second)) for lock in locks),
        forbids=tuple(
            (place(f.first.number), place(f.second.number)) for f in proposal_forbids(proposal)
        ),
        same=tuple(proposal.same),
        single=tuple(place(number) for number in proposal.singles),
    )
