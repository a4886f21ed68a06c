"""Free rooms that may take a whole group, with the learned match to the students there.

A room is offered only if the checks of every decision would let the group in: the same functions
decide here and when the group chooses.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from webapp.cohorts.models import Student
from webapp.housing.models import Room, RoomState
from webapp.housing.rules import PlacementRules, broken_rule
from webapp.housing.scores import Scores
from webapp.housing.selectors.suites import suite_mates
from webapp.housing.services.checks import forbidden_numbers, musts, rooms_taken_elsewhere
from webapp.room_choice.selectors.turns import StudentTurn

SAMPLED_PAIRS = 1_000  # pairs of the cohort that a match is compared with
SHOWN = 60  # rooms of a page
WHO = ("empty", "shared")  # filter by whether students of other groups live there
GOOD, FAIR = 67, 33  # per cent of pairs; from here on a match is called good, or fair


@dataclass(frozen=True, slots=True)
class Offer:
    """A room that may take the group.

    ``size`` counts the group, ``inside`` the students of other groups there. ``match`` is the share
    of pairs of the cohort with a lower learned score than the group has with them, in per cent;
    None in an empty room.
    """

    room: Room
    size: int
    inside: int
    free: int
    match: int | None

    @property
    def left(self) -> int:
        """Beds that stay free for others once the group lives there."""
        return self.free - self.size

    @property
    def match_word(self) -> str:
        """The match in one word: "good", "fair" or "low"; "" in an empty room."""
        if self.match is None:
            return ""
        return "good" if self.match >= GOOD else "fair" if self.match >= FAIR else "low"


def offers_of(turn: StudentTurn, room_id: int | None = None) -> list[Offer]:
    """Return the rooms that may take a whole group now, in the order of the building list.

    The beds of the group's present room count as free for it. ``room_id`` asks for one room alone.
    """
    placement, members = turn.placement, turn.members
    rules = PlacementRules.from_json(placement.rules)
    taken = rooms_taken_elsewhere(placement)
    forbidden = forbidden_numbers(placement)
    bound = bound_rooms(turn)
    spaces = _rooms_with_space(turn, room_id)
    beside = suite_mates(placement, [room for room, _ in spaces], {})
    fitting = [
        (room, people)
        for room, people in spaces
        if room.pk not in taken
        and bound <= {room.pk}
        and not broken_rule(
            room,
            [*members, *people],
            rules,
            forbidden,
            beside=[one for one in beside.get(room.pk, ()) if one.number not in turn.numbers],
        )
    ]
    matches = _matches(turn, dict(fitting))
    return [
        Offer(room, len(members), len(people), room.capacity - len(people), matches.get(room.pk))
        for room, people in fitting
    ]


def bound_rooms(turn: StudentTurn) -> set[int]:
    """Return the rooms of other students with whom a member must live, by requests that are a must.

    With one, the group can only go there; with several, nowhere.
    """
    numbers = set(turn.numbers)
    others = {n for pair in musts(turn.placement, numbers) for n in pair} - numbers
    if not others:
        return set()
    places = turn.placement.places.with_bed().filter(number__in=others)
    return {room for room in places.values_list("room_id", flat=True) if room is not None}


def _rooms_with_space(turn: StudentTurn, room_id: int | None) -> list[tuple[Room, list[Student]]]:
    """Return the open rooms with a bed for each of the group, and the students of others there."""
    placement, size = turn.placement, len(turn.members)
    places = placement.places.with_bed().exclude(number__in=turn.numbers)
    inside: dict[int | None, list[int]] = defaultdict(list)
    for number, key in places.values_list("number", "room_id"):
        inside[key].append(number)
    rooms = Room.objects.filter(buildings=placement.buildings_id, state=RoomState.OPEN)
    if room_id is not None:
        rooms = rooms.filter(pk=room_id)
    found = [room for room in rooms if room.capacity - len(inside[room.pk]) >= size]
    numbers = {number for room in found for number in inside[room.pk]}
    students = placement.cohort.students.filter(number__in=numbers)
    known = {s.number: s for s in students.only("number", "attributes", "cohort")}
    return [(room, [known[n] for n in inside[room.pk]]) for room in found]


def _matches(turn: StudentTurn, rooms: Mapping[Room, Sequence[Student]]) -> dict[int, int]:
    """Return the match of a group with the students of each room that has some, in per cent."""
    numbers = [student.number for people in rooms.values() for student in people]
    scores = Scores(turn.placement)
    if not numbers or not turn.placement.model.is_learned:
        return {}
    table = scores.between(turn.numbers, numbers).mean(axis=0)
    mean_of = dict(zip(numbers, table, strict=True))
    levels = _sampled_scores(scores)
    return {
        room.pk: _per_cent(levels, float(np.mean([mean_of[s.number] for s in people])))
        for room, people in rooms.items()
        if people
    }


def _sampled_scores(scores: Scores) -> NDArray[np.float64]:
    """Return the scores of a sample of the cohort's pairs, smallest first; always the same one."""
    numbers = np.array(sorted(scores.position))
    drawn = np.random.default_rng(0).integers(0, len(numbers), size=(SAMPLED_PAIRS, 2))
    pairs = numbers[drawn[drawn[:, 0] != drawn[:, 1]]]
    return np.sort(scores.of_pairs([(int(a), int(b)) for a, b in pairs]))


def _per_cent(levels: NDArray[np.float64], score: float) -> int:
    return round(100 * float(np.searchsorted(levels, score)) / max(1, len(levels)))


@dataclass(frozen=True, slots=True)
class OfferList:
    """The offers of a page: those that pass its filters, and the halls to choose from."""

    shown: list[Offer]
    n_fitting: int
    n_all: int
    halls: list[str]
    hall: str
    who: str


def offer_list(turn: StudentTurn, parameters: Mapping[str, str]) -> OfferList:
    """Return the offers of a page, best match first, then empty rooms."""
    offers = offers_of(turn)
    halls = list(dict.fromkeys(offer.room.hall for offer in offers))
    hall = parameters.get("hall", "")
    who = parameters.get("who", "")
    found = [
        offer
        for offer in offers
        if (hall not in halls or offer.room.hall == hall)
        and (who not in WHO or (who == "empty") == (offer.inside == 0))
    ]
    found.sort(key=lambda offer: -1 if offer.match is None else offer.match, reverse=True)
    return OfferList(found[:SHOWN], len(found), len(offers), halls, hall, who)
