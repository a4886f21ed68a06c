"""The pair card: the drawer's figures about two students, which add up as printed."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from webapp.housing.models import PlacedPair, Placement
from webapp.housing.pairs.numbers import Candidate, PairNumbers
from webapp.housing.pairs.table import current_pairs

SHOWN = 7
DIGITS = 2


@dataclass(frozen=True, slots=True)
class Reason:
    """One question of the card: both answers in words and its part of the score."""

    question: str
    answers: str
    amount: float
    bar: float

    @property
    def is_for(self) -> bool:
        """Return True if the question speaks for the pair."""
        return self.amount > 0


@dataclass(frozen=True, slots=True)
class NextPartner:
    """A next-best partner and that student's current roommate."""

    number: int
    score: float
    probability: float
    partner_now: int | None


@dataclass(frozen=True, slots=True)
class PairCard:
    """One pair as shown: ``average`` + ``in_favour`` - ``against`` = ``score`` as printed."""

    pair: PlacedPair
    reasons: tuple[Reason, ...]
    n_smaller: int
    smaller: float
    average: float
    in_favour: float
    against: float
    score: float
    next_of_first: tuple[NextPartner, ...]
    next_of_second: tuple[NextPartner, ...]


def pair_card(numbers: PairNumbers, pair: PlacedPair) -> PairCard:
    """Return the card of a pair; exact contributions, rounded so that the sums hold."""
    explanation = numbers.explain(pair.first_number, pair.second_number)
    score = round(explanation.score, DIGITS)
    in_favour = round(explanation.in_favour, DIGITS)
    against = round(explanation.against, DIGITS)
    largest = max((abs(c.amount) for c in explanation.contributions), default=0.0) or 1.0
    shown = [
        Reason(c.question, _in_words(c.answers), round(c.amount, DIGITS), c.amount / largest)
        for c in explanation.contributions[:SHOWN]
    ]
    rest = in_favour - against - sum(reason.amount for reason in shown)
    firsts = numbers.next_best(pair.first_number, pair.second_number)
    seconds = numbers.next_best(pair.second_number, pair.first_number)
    now = current_pairs(numbers.placement, [c.number for c in firsts + seconds])
    return PairCard(
        pair=pair,
        reasons=tuple(shown),
        n_smaller=max(0, len(explanation.contributions) - SHOWN),
        smaller=round(rest, DIGITS),
        average=round(score - in_favour + against, DIGITS),
        in_favour=in_favour,
        against=against,
        score=score,
        next_of_first=tuple(_next(c, now) for c in firsts),
        next_of_second=tuple(_next(c, now) for c in seconds),
    )


def swap_partners(placement: Placement, number: int) -> tuple[NextPartner, ...]:
    """Return the three most probable other partners of a student, with their current roommates."""
    pair = current_pairs(placement, [number]).get(number)
    if pair is None:
        return ()
    numbers = PairNumbers(placement)
    partner = pair.second_number if pair.first_number == number else pair.first_number
    found = numbers.next_best(number, partner)
    now = current_pairs(placement, [c.number for c in found])
    return tuple(_next(c, now) for c in found)


def _next(candidate: Candidate, now: dict[int, PlacedPair]) -> NextPartner:
    pair = now.get(candidate.number)
    partner = None
    if pair is not None:
        is_first = pair.first_number == candidate.number
        partner = pair.second_number if is_first else pair.first_number
    return NextPartner(candidate.number, candidate.score, candidate.probability, partner)


def _in_words(answers: tuple[str | None, str | None]) -> str:
    first, second = (f"“{answer}”" if answer is not None else "blank" for answer in answers)
    if answers[0] == answers[1]:
        return _("both %(first)s") % {"first": first}
    return f"{first}, {second}"
