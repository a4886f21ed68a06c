"""Shapes of rules and swaps of a proposal of pairs, and of decisions about it."""

from typing import Annotated

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, OneOf, RowNumber, SentKey
from webapp.housing.pairs.cards import NextPartner
from webapp.housing.pairs.rule_changes import ACTIONS
from webapp.housing.pairs.swaps import NewPair as NewPairRow
from webapp.housing.pairs.swaps import PairSwap

STUDENT = "id on screen, such as S-1121"


class NewRule(Body):
    """A change of a rule, as on the page of a proposal."""

    action: Annotated[str, OneOf(ACTIONS)]
    first: str = Field("", description=STUDENT, max_length=20)
    second: str = Field("", description=STUDENT, max_length=20)
    column: str = Field("", description="for relax and require: a rule column", max_length=200)


class NewCheck(Body):
    """A later cohort with pairs, which the model was not trained on."""

    cohort: SentKey


class PartnerQuery(Body):
    """Query for the partner of a student."""

    partner: str = Field(description=STUDENT, max_length=20)


class PairVersion(Body):
    """A pair with the version that was shown."""

    id: RowNumber
    version: RowNumber


class NewSwap(Body):
    """A swap: two students of different pairs become one pair, and so do their roommates."""

    student: str = Field(description=STUDENT, max_length=20)
    partner: str = Field(description=STUDENT, max_length=20)
    now: list[PairVersion] = Field(description="the two pairs as they were looked at")


class NewPair(Answer):
    """A pair that a swap would make."""

    first: str
    second: str
    score: float = Field(description="nats")
    probability: float
    multiple: float = Field(description="of an even draw")

    @classmethod
    def of(cls, pair: NewPairRow) -> "NewPair":
        """Return the answer for a pair that a swap would make."""
        return cls(
            first=f"S-{pair.first}",
            second=f"S-{pair.second}",
            score=pair.score,
            probability=pair.probability,
            multiple=pair.multiple,
        )


class Swap(Answer):
    """The pairs that a swap would make of two pairs."""

    now: list[PairVersion] = Field(description="the two pairs, as a swap is to send them")
    change: float = Field(description="of the total score, nats; negative where it costs")
    pairs: list[NewPair]

    @classmethod
    def of(cls, offer: PairSwap) -> "Swap":
        """Return the answer for the pairs and the cost of a swap."""
        return cls(
            now=[PairVersion(id=pair.pk, version=pair.version) for pair in offer.old],
            change=offer.change,
            pairs=[NewPair.of(pair) for pair in offer.new],
        )


class Partner(Answer):
    """A next-best partner with that student's current roommate."""

    student: str
    score: float = Field(description="nats")
    probability: float
    partner_now: str = Field(description="empty where they are in no pair")

    @classmethod
    def of(cls, found: NextPartner) -> "Partner":
        """Return the answer for a partner."""
        return cls(
            student=f"S-{found.number}",
            score=found.score,
            probability=found.probability,
            partner_now="" if found.partner_now is None else f"S-{found.partner_now}",
        )


class Partners(Answer):
    """The likeliest other partners of a student."""

    items: list[Partner]
