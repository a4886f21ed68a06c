"""Beds for the waiting list: students who may live in a room, and the change of the score."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from webapp.housing.models import Room
from webapp.housing.rules import broken_rule
from webapp.housing.scores import Scores
from webapp.housing.selectors.placements import PlacementRooms, RoomCard
from webapp.housing.services.checks import forbidden_numbers, rooms_taken_elsewhere
from webapp.housing.stays import ALWAYS

OFFERED = 3
MOST_WAITING = 200  # students of a waiting list that are tried for a bed


@dataclass(frozen=True, slots=True)
class BedOffer:
    """A free bed for a waiting student; ``gain`` is the change of the total score."""

    number: int
    room: Room
    gain: float

    @property
    def label(self) -> str:
        """The student's id on screen."""
        return f"S-{self.number}"


def bed_offers(rooms: PlacementRooms, card: RoomCard, scores: Scores) -> list[BedOffer]:
    """Return the first students of the waiting list, in order, who break no rule in a room."""
    if not (card.free or card.free_extra) or not rooms.homeless:
        return []
    if rooms_taken_elsewhere(rooms.placement, [card.room.pk]):
        return []
    found = []
    for number, refusal in candidates(rooms, card, MOST_WAITING):
        if not refusal:
            found.append(BedOffer(number, card.room, _gain(scores, card, number)))
        if len(found) == OFFERED:
            break
    return found


def candidates(
    rooms: PlacementRooms,
    card: RoomCard,
    most: int | None = None,
    movers: Sequence[int] = (),
) -> Iterator[tuple[int, str]]:
    """Yield the students of the waiting list in order, with the rule that a bed would break.

    The rule is "" for a student who may live in the room with its people and those to whom its
    other beds are offered. ``movers`` are students with a bed who want this one; they come last.
    """
    offered = {offer.student.number for held in rooms.offers.values() for offer in held}
    waiting = [*rooms.homeless[:most], *movers]
    inside = [person.number for person in card.people]
    beside = rooms.beside(card.room.pk)
    students = rooms.students([*waiting, *inside, *beside])
    forbidden = forbidden_numbers(rooms.placement)
    living = [*(students[n] for n in inside), *(offer.student for offer in card.offers)]
    for number in waiting:
        if number in offered:
            yield number, _("S-%(number)s has an offer already.") % {"number": number}
            continue
        members = [students[number], *living]
        refusal = rooms.parting(number, card.room.pk) or broken_rule(
            card.room,
            members,
            rooms.rules,
            forbidden,
            rooms.stays,
            [students[n] for n in beside if n != number],
        )
        if not refusal and not rooms.has_bed(card.room, number):
            refusal = _("No bed of %(room)s is free on all days.") % {"room": card.room}
        yield number, refusal


def beds_for(
    rooms: PlacementRooms, numbers: list[int], scores: Scores
) -> dict[int, list[BedOffer]]:
    """Return up to three free beds for each waiting student, best first; extra beds come last."""
    students = rooms.students(numbers)
    taken = rooms_taken_elsewhere(rooms.placement)
    free = [
        card
        for card in rooms.cards()
        if card.room.is_open
        and (card.free or card.free_extra or any(person.stay for person in card.people))
        and card.room.pk not in taken
    ]
    is_extra = {card.room.pk: not card.free for card in free}
    beside = {card.room.pk: rooms.beside(card.room.pk) for card in free}
    living = [p.number for card in free for p in card.people]
    inside = rooms.students([*living, *(n for mates in beside.values() for n in mates)])
    forbidden = forbidden_numbers(rooms.placement)
    found: dict[int, list[BedOffer]] = {}
    for number in numbers:
        fits = [
            BedOffer(number, card.room, _gain(scores, card, number))
            for card in free
            if card.has_bed_for(rooms.stays.get(number, ALWAYS))
            and rooms.has_bed(card.room, number)
            and not rooms.parting(number, card.room.pk)
            and not broken_rule(
                card.room,
                [
                    students[number],
                    *(inside[p.number] for p in card.people),
                    *(offer.student for offer in card.offers),
                ],
                rooms.rules,
                forbidden,
                rooms.stays,
                [inside[n] for n in beside[card.room.pk]],
            )
        ]
        fits.sort(key=lambda offer: (is_extra[offer.room.pk], -offer.gain))
        found[number] = fits[:OFFERED]
    return found


def _gain(scores: Scores, card: RoomCard, number: int) -> float:
    """Return the gain of the total score when a student moves into a free bed."""
    inside = [person.number for person in card.people]
    if not inside:
        return 0.0
    before = sum(p.score for p in card.people if p.score is not None) / 2
    after = scores.of_members([*inside, number])
    return sum(score for score in after.values() if score is not None) / 2 - before
