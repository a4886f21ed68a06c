"""Swaps of roommates: an offer with both new pairs and the cost, then the swap."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import ActKind, PairState, PlacedPair, Placement, PlacementEvent
from webapp.housing.pairs.decisions import check_draft, lock_pairs, pairs_record
from webapp.housing.pairs.numbers import PairNumbers
from webapp.housing.pairs.placing import read_answers
from webapp.housing.pairs.records import pair_row, replace_pairs, student_keys
from webapp.housing.pairs.table import current_pairs
from webapp.matching.models import ForbiddenPair


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

    old: tuple[PlacedPair, PlacedPair]
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
    placement: Placement, student: int, partner: int, numbers: PairNumbers | None = None
) -> PairSwap:
    """Return the two pairs that result from pairing two students of different pairs.

    A caller that has ``numbers`` passes them: reading a cohort's answers takes most of the time.

    Raises HousingError naming the lock or rule that forbids it.
    """
    if student == partner:
        raise HousingError(
            _("S-%(student)s cannot be paired with themselves.") % {"student": student}
        )
    now = current_pairs(placement, [student, partner])
    for number in (student, partner):
        if number not in now:
            raise HousingError(
                _("S-%(number)s is in no pair of this placement.") % {"number": number}
            )
    first, second = now[student], now[partner]
    if first.pk == second.pk:
        raise HousingError(
            _("S-%(student)s and S-%(partner)s are a pair already.")
            % {"student": student, "partner": partner}
        )
    for pair in (first, second):
        if pair.state == PairState.LOCKED:
            raise HousingError(
                _("%(pair)s is locked. Release the lock first.") % {"pair": pair.label}
            )
    left = [_other(first, student), _other(second, partner)]
    numbers = numbers or PairNumbers(placement)
    (a, b), (c, d) = sorted((student, partner)), sorted(left)
    for low, high in ((a, b), (c, d)):
        _check_allowed(placement, numbers, low, high)
    return PairSwap((first, second), (_new_pair(numbers, a, b), _new_pair(numbers, c, d)))


def _other(pair: PlacedPair, number: int) -> int:
    return pair.second_number if pair.first_number == number else pair.first_number


def _check_allowed(placement: Placement, numbers: PairNumbers, a: int, b: int) -> None:
    for column in placement.same:
        values = numbers.survey.attributes[column]
        if values[numbers.position[a]] != values[numbers.position[b]]:
            raise HousingError(
                _("S-%(a)s + S-%(b)s would not have the same %(column)s.")
                % {"a": a, "b": b, "column": column}
            )
    forbidden = ForbiddenPair.objects.filter(
        cohort_id=placement.cohort_id, first__number=a, second__number=b
    )
    for rule in forbidden:
        if rule.placement_id is None:
            raise HousingError(
                _("S-%(a)s + S-%(b)s are never to be paired. Allow them first.") % {"a": a, "b": b}
            )
        if rule.placement_id == placement.pk:
            raise HousingError(
                _("S-%(a)s + S-%(b)s were rejected in this placement. Allow them first.")
                % {"a": a, "b": b}
            )


def _new_pair(numbers: PairNumbers, a: int, b: int) -> NewPair:
    values = numbers.pair_values(a, b)
    return NewPair(a, b, values["score"], values["probability"], values["multiple"])


def pairs_swap(
    *, user: User, placement: Placement, student: int, partner: int, versions: dict[int, int]
) -> PlacementEvent:
    """Pair two students and their roommates with each other.

    Parameters
    ----------
    versions : dict
        {key of the pair: version} of both pairs, as on the user's page.

    Raises
    ------
    PlacesChangedError
        If one of the pairs has changed since.
    HousingError
        If a lock or rule forbids it.
    """
    read_answers(placement.cohort, placement.model)
    return _swap(user, placement, student, partner, versions)


@transaction.atomic
def _swap(
    user: User, placement: Placement, student: int, partner: int, versions: dict[int, int]
) -> PlacementEvent:
    placement = lock_pairs(placement)
    check_draft(placement)
    numbers = PairNumbers(placement)
    offer = swap_offer(placement, student, partner, numbers)
    if {pair.pk for pair in offer.old} != set(versions):
        raise PlacesChangedError(_("One of the two pairs changed meanwhile. Nothing was changed."))
    before = [pair_row(pair) for pair in offer.old]
    rows = {
        old.pk: _row_after(user, placement, numbers, old, new)
        for old, new in zip(offer.old, offer.new, strict=True)
    }
    pairs = replace_pairs(placement, rows, versions)
    one, other = pairs
    sentence = _("Swapped: %(pair)s and %(other)s.") % {"pair": one.label, "other": other.label}
    return pairs_record(
        user=user,
        placement=placement,
        kind=ActKind.MOVED,
        sentence=sentence,
        before=before,
        pairs=pairs,
        rules={},
        verb="swapped",
        unsettles=True,
    )


def _row_after(
    user: User, placement: Placement, numbers: PairNumbers, old: PlacedPair, new: NewPair
) -> dict[str, Any]:
    keys = student_keys(placement, (new.first, new.second))
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
