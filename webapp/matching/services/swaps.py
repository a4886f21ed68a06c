"""Swaps of roommates: an offer with both new pairs and the cost, then the swap."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.matching.errors import DecisionError, PairsChangedError
from webapp.matching.models import (
    Decision,
    DecisionEvent,
    ForbiddenPair,
    PairState,
    Proposal,
    ProposedPair,
)
from webapp.matching.numbers import ProposalNumbers
from webapp.matching.selectors.proposals import current_pairs
from webapp.matching.services.decisions import (
    lock_proposal,
    pair_row,
    record_event,
    replace_pairs,
)
from webapp.matching.services.proposals import read_answers


@dataclass(frozen=True, slots=True)
class NewPair:
    """One pair that a swap would make."""

    first: int
    second: int
    score: float
    probability: float
    multiple: float

    @property
    def label(self) -> str:
        """Both students as on screen."""
        return f"S-{self.first} + S-{self.second}"


@dataclass(frozen=True, slots=True)
class PairSwap:
    """Two pairs before and after a swap, and the change of the total score (nats)."""

    old: tuple[ProposedPair, ProposedPair]
    new: tuple[NewPair, NewPair]

    @property
    def change(self) -> float:
        """New total score minus old, nats."""
        return sum(pair.score for pair in self.new) - sum(pair.score for pair in self.old)

    @property
    def cost(self) -> float:
        """Loss of total score, nats."""
        return -self.change

    @property
    def costs(self) -> bool:
        """Return True if the total score falls."""
        return self.change < 0


def swap_offer(
    proposal: Proposal, student: int, partner: int, numbers: ProposalNumbers | None = None
) -> PairSwap:
    """Return the two pairs that result from pairing two students of different pairs.

    A caller that has ``numbers`` passes them: reading a cohort's answers takes most of the time.

    Raises DecisionError naming the lock or rule that forbids it.
    """
    if student == partner:
        raise DecisionError(f"S-{student} cannot be paired with themselves.")
    now = current_pairs(proposal, [student, partner])
    for number in (student, partner):
        if number not in now:
            raise DecisionError(f"S-{number} is in no pair of this proposal.")
    first, second = now[student], now[partner]
    if first.pk == second.pk:
        raise DecisionError(f"S-{student} and S-{partner} are a pair already.")
    for pair in (first, second):
        if pair.state == PairState.LOCKED:
            raise DecisionError(f"{pair.label} is locked. Release the lock first.")
    left = [_other(first, student), _other(second, partner)]
    numbers = numbers or ProposalNumbers(proposal)
    (a, b), (c, d) = sorted((student, partner)), sorted(left)
    for low, high in ((a, b), (c, d)):
        _check_allowed(proposal, numbers, low, high)
    return PairSwap((first, second), (_new_pair(numbers, a, b), _new_pair(numbers, c, d)))


def _other(pair: ProposedPair, number: int) -> int:
    return pair.second_number if pair.first_number == number else pair.first_number


def _check_allowed(proposal: Proposal, numbers: ProposalNumbers, a: int, b: int) -> None:
    for column in proposal.same:
        values = numbers.survey.attributes[column]
        if values[numbers.position[a]] != values[numbers.position[b]]:
            raise DecisionError(f"S-{a} + S-{b} would not have the same {column}.")
    forbidden = ForbiddenPair.objects.filter(
        cohort_id=proposal.cohort_id, first__number=a, second__number=b
    )
    for rule in forbidden:
        if rule.proposal_id is None:
            raise DecisionError(f"S-{a} + S-{b} are never to be paired. Allow them first.")
        if rule.proposal_id == proposal.pk:
            raise DecisionError(f"S-{a} + S-{b} were rejected in this proposal. Allow them first.")


def _new_pair(numbers: ProposalNumbers, a: int, b: int) -> NewPair:
    values = numbers.pair_values(a, b)
    return NewPair(a, b, values["score"], values["probability"], values["multiple"])


def pairs_swap(
    *, user: User, proposal: Proposal, student: int, partner: int, versions: dict[int, int]
) -> DecisionEvent:
    """Pair two students and their roommates with each other.

    Parameters
    ----------
    versions : dict
        {key of the pair: version} of both pairs, as on the user's page.

    Raises
    ------
    PairsChangedError
        If one of the pairs has changed since.
    DecisionError
        If a lock or rule forbids it.
    """
    read_answers(proposal.cohort, proposal.model)
    return _swap(user, proposal, student, partner, versions)


@transaction.atomic
def _swap(
    user: User, proposal: Proposal, student: int, partner: int, versions: dict[int, int]
) -> DecisionEvent:
    proposal = lock_proposal(proposal)
    numbers = ProposalNumbers(proposal)
    offer = swap_offer(proposal, student, partner, numbers)
    if {pair.pk for pair in offer.old} != set(versions):
        raise PairsChangedError("One of the two pairs changed meanwhile. Nothing was changed.")
    before = [pair_row(pair) for pair in offer.old]
    rows = {
        old.pk: _row_after(user, proposal, numbers, old, new)
        for old, new in zip(offer.old, offer.new, strict=True)
    }
    pairs = replace_pairs(proposal, rows, versions)
    labels = " and ".join(pair.label for pair in pairs)
    return record_event(
        user=user,
        proposal=proposal,
        decision=Decision.SWAP,
        sentence=f"Swapped: {labels}.",
        before=before,
        pairs=pairs,
        forbidden={"removed": [], "added": []},
        verb="swapped",
        unsettles=True,
    )


def _row_after(
    user: User, proposal: Proposal, numbers: ProposalNumbers, old: ProposedPair, new: NewPair
) -> dict[str, Any]:
    keys = dict(
        Student.objects.filter(
            cohort_id=proposal.cohort_id, number__in=(new.first, new.second)
        ).values_list("number", "pk")
    )
    row = pair_row(old)
    row.update(numbers.pair_values(new.first, new.second))
    row.update(
        first_number=new.first,
        second_number=new.second,
        first_id=keys[new.first],
        second_id=keys[new.second],
        state=PairState.SWAPPED,
        decided_by=user.get_username(),
        decided_at=timezone.now(),
    )
    return row
