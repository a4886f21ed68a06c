"""Other rooms for one student: free beds and swaps that break no rule, with their effects."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from django.utils.translation import gettext as _

from webapp.housing.errors import HousingError
from webapp.housing.rules import broken_rule
from webapp.housing.scores import Scores
from webapp.housing.selectors.placements import PlacementRooms, RoomCard
from webapp.housing.selectors.rooms import RoomSwap, swap_offers
from webapp.housing.selectors.suite_terms import SuiteTerms
from webapp.housing.services.checks import forbidden_numbers, rooms_taken_elsewhere
from webapp.housing.stays import ALWAYS

SHOWN = 12  # rooms that a choice lists


@dataclass(frozen=True, slots=True)
class RoomChoice:
    """A room that a student could move to.

    ``own`` is the student's score there (None alone), ``total`` the gain of all rooms and suites
    together, and ``reason`` the rule that the move would break; "" when it breaks none.
    """

    card: RoomCard
    own: float | None
    total: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """The rooms where a student could live instead, best first, then the best swaps."""

    number: int
    card: RoomCard | None
    own: float | None
    rooms: list[RoomChoice]
    n_rooms: int
    refused: list[RoomChoice]
    swaps: list[RoomSwap]
    has_suites: bool

    @property
    def label(self) -> str:
        """The student's id on screen."""
        return f"S-{self.number}"


def choices_of(rooms: PlacementRooms, number: int, query: str = "") -> Choices:
    """Return rooms with a free bed and swaps for one student of a placement.

    ``query`` limits rooms to those whose hall and name contain its words; rooms that it names and
    that would break a rule are listed with that rule.

    Raises HousingError for a student who is not in the placement, or who is locked.
    """
    place = next((p for p in rooms.places if p["number"] == number), None)
    if place is None:
        raise HousingError(_("S-%(number)s is not in this placement.") % {"number": number})
    card = next((c for c in rooms.cards() if c.room.pk == place["room_id"]), None)
    if place["is_locked"] and card is not None:
        raise HousingError(
            _("S-%(number)s is locked into %(room)s. Release it first.")
            % {"number": number, "room": card.room}
        )
    scores = Scores(rooms.placement)
    words = query.casefold().split()
    found = _free_rooms(rooms, scores, number, card, words)
    fits = sorted((c for c in found if not c.reason), key=lambda choice: -choice.total)
    refused = [choice for choice in found if choice.reason] if words else []
    swaps = [] if card is None or words else swap_offers(rooms, scores, card, number)
    return Choices(
        number,
        card,
        place["score"],
        fits[:SHOWN],
        len(fits),
        refused[:SHOWN],
        swaps,
        bool(rooms.suites),
    )


def _free_rooms(
    rooms: PlacementRooms,
    scores: Scores,
    number: int,
    own: RoomCard | None,
    words: list[str],
) -> list[RoomChoice]:
    """Return the rooms with a free bed, each with the first rule that a move would break."""
    taken = rooms_taken_elsewhere(rooms.placement)
    free = [
        card
        for card in rooms.cards()
        if card is not own
        and (words or _has_bed(rooms, card, number))
        and card.room.pk not in taken
        and all(word in card.room.label.casefold() for word in words)
    ]
    inside = [person.number for card in free for person in card.people]
    here = [p.number for p in own.people if p.number != number] if own is not None else []
    together = [*here, *inside]
    pairs = dict(zip(together, scores.between([number], together)[0], strict=True))
    leaving = _after_leaving(own, here, pairs)
    terms = SuiteTerms(rooms, scores)
    beside = {card.room.pk: rooms.beside(card.room.pk, (number,)) for card in free}
    students = rooms.students([number, *inside, *(n for mates in beside.values() for n in mates)])
    forbidden = forbidden_numbers(rooms.placement)
    found = []
    for card in free:
        members = [students[number], *(students[p.number] for p in card.people)]
        reason = rooms.parting(number, card.room.pk)
        mates = [students[n] for n in beside[card.room.pk]]
        reason = reason or broken_rule(
            card.room, members, rooms.rules, forbidden, rooms.stays, mates
        )
        if not reason and not rooms.has_bed(card.room, number):
            reason = _("No bed of %(room)s is free on all days.") % {"room": card.room}
        if rooms.has_dates(number, card.room) or (own and rooms.has_dates(number, own.room)):
            choice = _dated_choice(scores, number, own, card, reason)
        else:
            choice = _choice(card, pairs, leaving, reason)
        suites = terms.change({number: card.room.pk})
        found.append(replace(choice, total=choice.total + suites))
    return found


def _has_bed(rooms: PlacementRooms, card: RoomCard, number: int) -> bool:
    """Return True if a room has a bed on all days of a student's stay."""
    stay = rooms.stays.get(number, ALWAYS)
    return card.has_bed_for(stay) and rooms.has_bed(card.room, number)


def _dated_choice(
    scores: Scores, number: int, own: RoomCard | None, card: RoomCard, reason: str
) -> RoomChoice:
    """Return a room with its scores where some people are there on a part of the days only."""
    here = [person.number for person in own.people] if own is not None else []
    there = [person.number for person in card.people]
    leaving = scores.total_of([n for n in here if n != number]) - scores.total_of(here)
    after = scores.of_members([*there, number])
    change = scores.total_of([*there, number]) - scores.total_of(there)
    return RoomChoice(card, after[number], leaving + change, reason)


def _after_leaving(
    own: RoomCard | None, here: list[int], pairs: Mapping[int, np.floating]
) -> float:
    """Return the gain of a room when a student leaves: the mean is over fewer pairs."""
    if own is None or not here:
        return 0.0
    before = sum(p.score for p in own.people if p.score is not None) / 2
    rest = before * len(here) - float(sum(pairs[n] for n in here))
    return (rest / (len(here) - 1) if len(here) > 1 else 0.0) - before


def _choice(
    card: RoomCard, pairs: Mapping[int, np.floating], leaving: float, reason: str
) -> RoomChoice:
    """Return a room with its exact scores once the student lives there."""
    people = [person.number for person in card.people]
    if not people:
        return RoomChoice(card, None, leaving, reason)
    added = float(sum(pairs[n] for n in people))
    before = sum(p.score for p in card.people if p.score is not None) / 2
    after = (before * (len(people) - 1) + added) / len(people)
    return RoomChoice(card, added / len(people), leaving + after - before, reason)
