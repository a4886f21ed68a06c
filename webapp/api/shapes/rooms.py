"""Shapes of rooms with residents, alternatives of a student, scenarios and the waiting list."""

from typing import Any

from pydantic import Field

from webapp.api.shapes.base import Answer, Key, Paging, Time
from webapp.api.shapes.housing import Rules, State
from webapp.cohorts.naming import ShownNames
from webapp.housing.models import Placement as PlacementRow
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.choices import Choices as FoundChoices
from webapp.housing.selectors.choices import RoomChoice as FoundChoice
from webapp.housing.selectors.offers import BedOffer
from webapp.housing.selectors.placements import RoomCard
from webapp.housing.selectors.rooms import BedEvent, RoomSwap


class Resident(Answer):
    """A student in a room."""

    student: str = Field(validation_alias="label", description="the id on screen")
    score: float | None = Field(description="mean of the pairs with the roommates; null alone")
    doubt: float | None = Field(description="roommates about as likely, as a share")
    is_locked: bool
    is_honoured: bool | None = Field(
        description="lives with somebody whom they asked for; null for viewers"
    )
    name: str | None = Field(None, description="null for those who do not see names")


class PlacedRoom(Answer):
    """A room of a placement with its residents."""

    room: int = Field(description="the room's id")
    hall: str
    floor: str
    name: str
    beds: int
    max_beds: int = Field(description="beds with extra beds, which are used last")
    free: int = Field(description="beds that nobody has, of a room that is open")
    free_extra: int = Field(description="extra beds that nobody has, of a room that is open")
    state: State
    score: float | None
    doubt: float | None
    asked: int | None = Field(description="people in it who asked for somebody; null for viewers")
    honoured: int | None = Field(
        description="of these, people who live with one whom they asked for; null for viewers"
    )
    is_accepted: bool
    is_locked: bool
    people: list[Resident]

    @classmethod
    def of(cls, card: RoomCard, names: ShownNames, *, with_requests: bool) -> "PlacedRoom":
        """Return the answer for the card of a room, as one person may see it."""
        room = card.room
        people = [Resident.model_validate(person) for person in card.people]
        for person, one in zip(people, card.people, strict=True):
            person.name = names.name(one.number) or None
            if not with_requests:
                person.is_honoured = None
        return cls(
            room=room.pk,
            hall=room.hall,
            floor=room.floor,
            name=room.name,
            beds=room.capacity,
            max_beds=room.max_capacity,
            free=card.free,
            free_extra=card.free_extra,
            state=room.state,
            score=card.score,
            doubt=card.doubt,
            asked=card.n_asked if with_requests else None,
            honoured=card.n_honoured if with_requests else None,
            is_accepted=card.is_accepted,
            is_locked=card.is_locked,
            people=people,
        )


class PlacedRoomQuery(Paging):
    """Query for the rooms of a placement; the filters of its page."""

    hall: str = Field("", description="of this hall only")
    floor: str = Field("", description="of this floor of the hall only")
    q: str = Field("", description="whose name, or whose people's ids, hold these words")
    kind: str = Field("", description="with this number of beds")
    look: str = Field(
        "",
        description="undecided, accepted, locked, missed, doubtful, pulled, free, empty or shut",
    )
    designation: str = Field("", description="for these only, or anybody")


class BedChange(Answer):
    """A student who moved into a room or out of it, in one event."""

    event: int
    at: Time
    by: str
    came: list[str]
    left: list[str]

    @classmethod
    def of(cls, found: BedEvent) -> "BedChange":
        """Return the answer for one line of a room's history."""
        event = found.event
        return cls(
            event=event.pk,
            at=event.created_at,
            by=event.user.get_username() if event.user else "",
            came=found.came,
            left=found.left,
        )


class RoomChoice(Answer):
    """A room that a student could move to."""

    room: int
    name: str
    people: list[str]
    own_score: float | None = Field(description="the student's score there; null alone")
    total: float = Field(description="what the learned score of all rooms gains or loses")
    refused: str = Field(
        description="the rule that the move would break; blank when it breaks none"
    )

    @classmethod
    def of(cls, choice: FoundChoice) -> "RoomChoice":
        """Return the answer for a room that a student could move to."""
        return cls(
            room=choice.card.room.pk,
            name=choice.card.room.label,
            people=[person.label for person in choice.card.people],
            own_score=choice.own,
            total=choice.total,
            refused=choice.reason,
        )


class SwapChoice(Answer):
    """A student to swap rooms with."""

    student: str
    room: int
    name: str
    here: float = Field(description="what the student's room gains or loses")
    there: float = Field(description="what the other room gains or loses")
    suites: float = Field(description="what pairs in different rooms of a suite gain or lose")
    total: float

    @classmethod
    def of(cls, offer: RoomSwap) -> "SwapChoice":
        """Return the answer for a swap."""
        return cls(
            student=f"S-{offer.number}",
            room=offer.room.pk,
            name=offer.room.label,
            here=offer.here,
            there=offer.there,
            suites=offer.suites,
            total=offer.total,
        )


class Choices(Answer):
    """Alternatives of a student: best rooms first, then the best swaps."""

    student: str
    room: int | None
    own_score: float | None
    rooms: list[RoomChoice]
    total: int = Field(description="rooms that break no rule, listed or not")
    refused: list[RoomChoice] = Field(description="rooms that were named and break a rule")
    swaps: list[SwapChoice]

    @classmethod
    def of(cls, found: FoundChoices) -> "Choices":
        """Return the answer for a student's alternatives."""
        return cls(
            student=found.label,
            room=found.card.room.pk if found.card else None,
            own_score=found.own,
            rooms=[RoomChoice.of(choice) for choice in found.rooms],
            total=found.n_rooms,
            refused=[RoomChoice.of(choice) for choice in found.refused],
            swaps=[SwapChoice.of(offer) for offer in found.swaps],
        )


class ChoiceQuery(Paging):
    """Query for a student's alternatives."""

    q: str = Field("", description="hall and name hold these words; the answer lists broken rules")


class OfferedBed(Answer):
    """A free bed that breaks no rule."""

    room: int
    name: str
    total: float = Field(description="what the learned score of all rooms gains or loses")


class Waiting(Answer):
    """A student without a bed, in the order of the waiting list."""

    student: str
    needs: str = Field(description="what the rules say that they need, in words")
    beds: list[OfferedBed]

    @classmethod
    def of(cls, number: int, needs: str, offers: list[BedOffer]) -> "Waiting":
        """Return the answer for a student on the waiting list."""
        beds = [OfferedBed(room=o.room.pk, name=o.room.label, total=o.gain) for o in offers]
        return cls(student=f"S-{number}", needs=needs, beds=beds)


class Part(Answer):
    """A count with its total."""

    met: int
    of: int


class Outcome(Answer):
    """The figures by which placements are compared."""

    people: int
    placed: int
    total: float = Field(description="learned score of all rooms")
    mean: float | None = Field(description="mean score of who lives with somebody")
    mutual: Part
    one_sided: Part
    first_choice: Part
    any_choice: Part
    needs: Part
    low: float | None = Field(description="the score below which a room counts as low")
    rooms_below: int
    rooms_shared: int
    beds_free: int
    extra_taken: int = Field(description="people in extra beds, above a room's usual number")

    @classmethod
    def of_figures(cls, figures: dict[str, Any]) -> "Outcome":
        """Return the answer for a selector's figures."""
        parts = ("mutual", "one_sided", "first_choice", "any_choice", "needs")
        return cls.model_validate(
            {
                name: Part(met=value[0], of=value[1]) if name in parts else value
                for name, value in figures.items()
            }
        )


class Scenario(Answer):
    """One placement of a cohort beside the others."""

    placement: Key
    name: str
    is_published: bool
    best_at: Time | None
    model: Key
    is_set_by_hand: bool = Field(description="whether its weights were set by staff, not learned")
    rules: Rules
    relative_gap: float | None = Field(description="of the optimisation; null before it is known")
    moved: int | None = Field(description="people who live elsewhere in the published placement")
    outcome: Outcome

    @classmethod
    def of_row(cls, row: PlacementRow, figures: dict[str, Any], moved: int | None) -> "Scenario":
        """Return the answer for a placement with its figures."""
        return cls(
            placement=row.pk,
            name=row.name,
            is_published=row.is_published,
            best_at=row.best_at,
            model=row.model_id,
            is_set_by_hand=row.model.is_set_by_hand,
            rules=Rules.of_rules(PlacementRules.from_json(row.rules)),
            relative_gap=row.figures.get("relative_gap"),
            moved=moved,
            outcome=Outcome.of_figures(figures),
        )
