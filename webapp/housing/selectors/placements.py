"""The page of a placement: halls, floors and rooms, with their students and points to check."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, cast

from django.db.models import Case, When
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.common.formats import counted
from webapp.common.listing import Listing, light, list_page
from webapp.common.selectors import owned_by
from webapp.housing.models import Place, Placement, Room, WaitingOffer
from webapp.housing.rules import MUST, PlacementRules, needs_of_student
from webapp.housing.scores import room_score
from webapp.housing.selectors.suites import suite_neighbours
from webapp.housing.selectors.waiting import held_beds, in_order
from webapp.housing.selectors.wishes import CohortWishes
from webapp.housing.stays import ALWAYS, Stay, first_free_bed, most_at_once, stay_of

SHOWN_A_FLOOR = 9  # rooms, on the page of one hall
SHOWN_OF_MANY = 3  # rooms, on the page of all halls
LOW = -0.05  # score relative to the room's mean, below which a student "pulls it down"


@dataclass(frozen=True, slots=True)
class Person:
    """One student in a room card."""

    number: int
    score: float | None
    is_locked: bool
    is_honoured: bool
    pulls_down: bool
    doubt: float | None = None
    stay: Stay | None = None  # the days of the bed, of a student with dates of their own

    @property
    def label(self) -> str:
        """The id on screen."""
        return f"S-{self.number}"

    @property
    def dates(self) -> str:
        """The days of the bed in words, of a student with dates of their own; else ""."""
        return self.stay.words if self.stay is not None else ""


@dataclass(slots=True)
class RoomCard:
    """One room as shown on its card."""

    room: Room
    people: list[Person]
    score: float | None
    n_asked: int
    n_honoured: int
    is_accepted: bool = False
    offers: Sequence[WaitingOffer] = ()  # open ones: each holds a bed

    @property
    def doubt(self) -> float | None:
        """The mean uncertainty of its people; None alone."""
        known = [p.doubt for p in self.people if p.doubt is not None]
        return sum(known) / len(known) if known and len(self.people) > 1 else None

    @property
    def free(self) -> int:
        """Free beds of an open room, without extra beds and those held for an offer."""
        return max(self.room.capacity - self.n_taken, 0) if self.room.is_open else 0

    @property
    def n_taken(self) -> int:
        """Beds with people and beds held for an offer; one of people who follow each other."""
        return self.n_at_once + len(self.offers)

    @property
    def n_at_once(self) -> int:
        """The largest number of its people who are there on the same day."""
        return most_at_once(person.stay or ALWAYS for person in self.people)

    def has_bed_for(self, stay: Stay) -> bool:
        """Return True if an open room has a bed or an extra bed on all days of a stay."""
        days = [person.stay or ALWAYS for person in self.people]
        at_once = most_at_once([stay, *(one for one in days if one.overlaps(stay))])
        return self.room.is_open and at_once + len(self.offers) <= self.room.max_capacity

    @property
    def free_extra(self) -> int:
        """Free extra beds of an open room."""
        taken = max(self.n_taken, self.room.capacity)
        return self.room.max_capacity - taken if self.room.is_open else 0

    @property
    def extra_taken(self) -> int:
        """People in extra beds."""
        return max(self.n_at_once - self.room.capacity, 0)

    @property
    def free_in_words(self) -> str:
        """Free beds in words, such as "1 bed and 1 extra bed free"; "" if there are none."""
        if not self.free and not self.free_extra:
            return ""
        if not self.free:
            return _("%(beds)s free") % {"beds": counted(self.free_extra, "extra bed")}
        return _("%(beds)s free") % {"beds": beds_in_words(self.free, self.free_extra)}

    @property
    def is_locked(self) -> bool:
        """Return True if all its people are locked."""
        return bool(self.people) and all(person.is_locked for person in self.people)

    @property
    def concern(self) -> tuple[float, float]:
        """Sort key of "worth a look first": missed requests, then low scores."""
        missed = self.n_asked - self.n_honoured
        return (-missed, self.score if self.score is not None else float("inf"))


class CardGroup:
    """Rooms of one floor or hall, and their sums: extra beds are never mixed with normal ones."""

    __slots__ = ()
    cards: list[RoomCard]

    @property
    def n_beds(self) -> int:
        """Open beds without extra beds."""
        return sum(card.room.capacity for card in self.cards if card.room.is_open)

    @property
    def n_extra(self) -> int:
        """Open extra beds."""
        return sum(card.room.extra_beds for card in self.cards if card.room.is_open)

    @property
    def n_taken(self) -> int:
        """Beds taken on one day, extra beds included."""
        return sum(card.n_at_once for card in self.cards)

    @property
    def n_extra_taken(self) -> int:
        """People in extra beds."""
        return sum(card.extra_taken for card in self.cards)

    @property
    def n_free(self) -> int:
        """Free open beds, without extra beds and those held for an offer."""
        return sum(card.free for card in self.cards)

    @property
    def n_free_extra(self) -> int:
        """Free open extra beds."""
        return sum(card.free_extra for card in self.cards)

    @property
    def beds_in_words(self) -> str:
        """Open beds, such as "8 beds and 4 extra beds"."""
        return beds_in_words(self.n_beds, self.n_extra)

    @property
    def taken_in_words(self) -> str:
        """Beds taken, such as "24 of 24 beds and 4 of 8 extra beds"."""
        return taken_in_words(self.n_taken, self.n_extra_taken, self.n_beds, self.n_extra)

    @property
    def mean(self) -> float | None:
        """The mean score of all students with roommates."""
        scores = [p.score for card in self.cards for p in card.people if p.score is not None]
        return sum(scores) / len(scores) if scores else None


def beds_in_words(beds: int, extra: int) -> str:
    """Return numbers of beds in words, such as "8 beds and 4 extra beds"."""
    words = counted(beds, "bed")
    if not extra:
        return words
    return _("%(beds)s and %(extra)s") % {"beds": words, "extra": counted(extra, "extra bed")}


def free_in_words(cards: Iterable[RoomCard]) -> str:
    """Return the free beds of rooms in words, such as "3 beds and 12 extra beds free"."""
    found = list(cards)
    beds, extra = sum(card.free for card in found), sum(card.free_extra for card in found)
    return _("%(beds)s free") % {"beds": beds_in_words(beds, extra)}


def taken_in_words(taken: int, extra_taken: int, beds: int, extra: int) -> str:
    """Return the beds taken in words, such as "24 of 24 beds and 4 of 8 extra beds".

    ``taken`` counts all beds taken, ``extra_taken`` the extra beds among them.
    """
    words = _("%(taken)s of %(beds)s") % {
        "taken": f"{taken - extra_taken:,}",
        "beds": counted(beds, "bed"),
    }
    if not (extra or extra_taken):
        return words
    return ngettext(
        "%(beds)s and %(extra_taken)s of %(count)s extra bed",
        "%(beds)s and %(extra_taken)s of %(count)s extra beds",
        extra,
    ) % {"beds": words, "extra_taken": f"{extra_taken:,}", "count": f"{extra:,}"}


@dataclass(slots=True)
class FloorCards(CardGroup):
    """One floor of a hall."""

    hall: str
    name: str
    cards: list[RoomCard] = field(default_factory=list)
    is_whole: bool = False
    at_most: int = SHOWN_A_FLOOR

    @property
    def title(self) -> str:
        """Hall and floor in words, such as "Alder, floor 2"."""
        return (
            _("%(hall)s, floor %(name)s") % {"hall": self.hall, "name": self.name}
            if self.name
            else self.hall
        )

    @property
    def shown(self) -> list[RoomCard]:
        """The rooms worth a look first, or all on request."""
        if self.is_whole or len(self.cards) <= self.at_most:
            return self.cards
        worth = sorted(self.cards, key=lambda card: card.concern)[: self.at_most]
        keys = {card.room.pk for card in worth}
        return [card for card in self.cards if card.room.pk in keys]

    @property
    def key(self) -> str:
        """Hall and floor as written in the address."""
        return f"{self.hall}|{self.name}"


@dataclass(frozen=True, slots=True)
class HallFill:
    """Beds taken in one hall; ``taken`` counts extra beds too, ``beds`` and ``extra`` are open."""

    name: str
    taken: int
    beds: int
    extra: int


def placement_listing(user: User, parameters: Mapping[str, str]) -> Listing[Placement]:
    """Return a page of the placements."""
    placements = light(owned_by(Placement, user), "cohort", "model", "job", "buildings")
    return list_page(placements, parameters)


class PlacementRooms:
    """Rooms, people and requests of one placement, read once for a page.

    Placements shown side by side share the ``wishes`` of their cohort and the ``rooms`` of their
    building list.
    """

    def __init__(
        self,
        placement: Placement,
        wishes: CohortWishes | None = None,
        rooms: list[Room] | None = None,
    ) -> None:
        self.placement = placement
        self.rules = PlacementRules.from_json(placement.rules)
        self.rooms = list(placement.buildings.rooms.all()) if rooms is None else rooms
        self.wishes = wishes or CohortWishes(placement.cohort_id)
        rows = placement.places.present().values(
            "number", "room_id", "bed", "is_locked", "score", "doubt", "turn",
            "arrives_on", "leaves_on",
            # For the order of those without a bed; times of thousands are slow to read.
            since=Case(When(room__isnull=True, then="added_at")),
        )  # fmt: skip
        self.places = cast("list[dict[str, Any]]", list(rows))
        self._accepted: dict[int, list[int]] = dict(
            placement.accepted_rooms.values_list("room_id", "members")
        )
        self.requests = self.wishes.requests
        self._where = {place["number"]: place["room_id"] for place in self.places}
        self._asked: dict[int, list[int]] = defaultdict(list)
        for a, b in [*self.requests.one_sided, *self.requests.mutual]:
            self._asked[a].append(b)
        for a, b in self.requests.mutual:
            self._asked[b].append(a)

    def once_moved(
        self, rooms: Mapping[int, int | None], scores: Mapping[int, float | None]
    ) -> "PlacementRooms":
        """Return the placement after everybody has moved to the given rooms, by number.

        Students in ``rooms`` who are not in the placement yet are added; beds are renumbered.
        """
        moved = copy(self)
        for kept in ("_cards", "_homeless", "_beds", "_living"):
            moved.__dict__.pop(kept, None)
        known = {place["number"]: place for place in self.places}
        blank: dict[str, Any] = {
            "is_locked": False,
            "doubt": None,
            "turn": 0,
            "since": timezone.now(),
            "arrives_on": None,
            "leaves_on": None,
        }
        moved.places = [
            {
                **known.get(number, blank),
                "number": number,
                "room_id": room,
                "bed": None if room is None else k + 1,
                "score": scores.get(number),
            }
            for k, (number, room) in enumerate(sorted(rooms.items()))
        ]
        moved._where = {place["number"]: place["room_id"] for place in moved.places}
        return moved

    @cached_property
    def stays(self) -> dict[int, Stay]:
        """The days of the students with dates of their own, by number."""
        return {
            place["number"]: stay_of(self.placement.term, place["arrives_on"], place["leaves_on"])
            for place in self.places
            if place["arrives_on"] or place["leaves_on"]
        }

    @cached_property
    def suites(self) -> dict[int, tuple[int, ...]]:
        """The keys of the other rooms of the suite, by the key of each room that has some."""
        return suite_neighbours(self.rooms)

    @cached_property
    def _living(self) -> dict[int, list[int]]:
        """The numbers of the people of each room, by its key."""
        found: dict[int, list[int]] = defaultdict(list)
        for place in self.places:
            if place["room_id"] is not None:
                found[place["room_id"]].append(place["number"])
        return found

    def living(self, room: int) -> list[int]:
        """Return the numbers of the people of a room, by its key."""
        return self._living.get(room, [])

    def beside(self, room: int, leaving: Collection[int] = ()) -> list[int]:
        """Return the numbers of the people in other rooms of the suite of a room, by its key.

        ``leaving`` are people who do not live there any more.
        """
        others = self.suites.get(room, ())
        return [n for key in others for n in self._living.get(key, ()) if n not in leaving]

    @property
    def where(self) -> Mapping[int, int | None]:
        """The key of everybody's room, or None, by number."""
        return self._where

    @property
    def homeless(self) -> list[int]:
        """Numbers of the people without a room, in the order of the waiting list."""
        return self._homeless

    @cached_property
    def _homeless(self) -> list[int]:
        waiting = {p["number"]: p for p in self.places if p["room_id"] is None}
        if moved := [number for number, place in waiting.items() if place["since"] is None]:
            # Those who lose their bed only once everybody has moved.
            rows = self.placement.places.filter(number__in=moved).values_list("number", "added_at")
            waiting |= {number: waiting[number] | {"since": added} for number, added in rows}
        return in_order(self.placement, list(waiting.values()))

    @cached_property
    def offers(self) -> dict[int, list[WaitingOffer]]:
        """The open offers to students on the waiting list, by the key of their room."""
        return held_beds(self.placement) if self.placement.is_published else {}

    @property
    def n_placed(self) -> int:
        """Number of people with a room."""
        return sum(place["room_id"] is not None for place in self.places)

    @property
    def n_beds(self) -> int:
        """Number of open beds in all halls."""
        return sum(room.capacity for room in self.rooms if room.is_open)

    @property
    def n_extra(self) -> int:
        """Number of open extra beds in all halls."""
        return sum(room.extra_beds for room in self.rooms if room.is_open)

    @property
    def open_beds_in_words(self) -> str:
        """Open beds of all halls, such as "300 open beds and 12 extra beds"."""
        words = counted(self.n_beds, "open bed")
        return (
            ngettext(
                "%(words)s and %(count)s extra bed",
                "%(words)s and %(count)s extra beds",
                self.n_extra,
            )
            % {"words": words, "count": f"{self.n_extra:,}"}
            if self.n_extra
            else words
        )

    @property
    def free_in_words(self) -> str:
        """Free beds of all halls in words, such as "3 beds and 12 extra beds free"."""
        return free_in_words(self.cards())

    def students(self, numbers: Sequence[int]) -> dict[int, Student]:
        """Return some students of the cohort by their number, without their answers."""
        students = self.placement.cohort.students.only("number", "attributes", "cohort")
        return {s.number: s for s in students.filter(number__in=set(numbers))}

    def is_together(self, a: int, b: int) -> bool:
        """Return True if two people share a room on at least one day."""
        days = self.stays
        return self.has_same_room(a, b) and days.get(a, ALWAYS).overlaps(days.get(b, ALWAYS))

    def has_same_room(self, a: int, b: int) -> bool:
        """Return True if two people have beds in one room, maybe one after the other."""
        return self._where.get(a) is not None and self._where.get(a) == self._where.get(b)

    @cached_property
    def _beds(self) -> dict[int, list[tuple[int, int, Stay]]]:
        """The people of each room: number, bed and days, by the key of the room."""
        found: dict[int, list[tuple[int, int, Stay]]] = defaultdict(list)
        for place in self.places:
            if place["room_id"] is not None:
                number = place["number"]
                found[place["room_id"]].append(
                    (number, place["bed"], self.stays.get(number, ALWAYS))
                )
        return found

    def has_dates(self, number: int, room: Room) -> bool:
        """Return True if a student, or somebody in a room, has dates of their own."""
        stays = self.stays
        return number in stays or any(one in stays for one, *_ in self._beds.get(room.pk, ()))

    def has_bed(self, room: Room, number: int, leaving: Collection[int] = ()) -> bool:
        """Return True if one bed of a room is free on all days of a student's stay.

        ``leaving`` are people who give up their beds there.
        """
        people = self._beds.get(room.pk, ())
        taken = [(bed, stay) for other, bed, stay in people if other not in leaving]
        return first_free_bed(self.stays.get(number, ALWAYS), taken) <= room.max_capacity

    @cached_property
    def _musts(self) -> dict[int, set[int]]:
        """The students whom each student has to live with, by the requests that are a must here."""
        found: dict[int, set[int]] = defaultdict(set)
        graph = self.requests
        for pairs, counts in (
            (graph.mutual, self.rules.mutual),
            (graph.one_sided, self.rules.one_sided),
        ):
            for a, b in pairs if counts == MUST else ():
                found[a].add(b)
                found[b].add(a)
        return found

    def musts_apart(self) -> list[tuple[int, int]]:
        """Return the pairs who must live together here and do not, each once, by number.

        A request that is counted again later, or imported, is a must that no run has used yet.
        """
        return sorted(
            (a, b)
            for a, others in self._musts.items()
            for b in others
            if a < b and {a, b} <= self._where.keys() and not self.has_same_room(a, b)
        )

    def parting(self, number: int, room: int | None, moving: Collection[int] = ()) -> str:
        """Return why a student cannot live in a room: a pair who must live together would part.

        "" if no request that is a must would break. ``moving`` are people who leave their rooms.
        """
        for other in sorted(self._musts.get(number, ())):
            where = self._where.get(other)
            if other not in moving and where is not None and where != room:
                return _(
                    "S-%(number)s and S-%(other)s asked to live together, which is a must here."
                ) % {"number": number, "other": other}
        return ""

    def must_share(self, one: int, other: int) -> bool:
        """Return True if two students asked for each other and must live together."""
        return other in self._musts.get(one, ())

    def halls(self) -> list[HallFill]:
        """Return the beds taken in each hall, in the order of the list."""
        groups: dict[str, list[RoomCard]] = {}
        for card in self.cards():
            groups.setdefault(card.room.hall, []).append(card)
        return [
            HallFill(
                name,
                sum(card.n_at_once for card in cards),
                sum(card.room.capacity for card in cards if card.room.is_open),
                sum(card.room.extra_beds for card in cards if card.room.is_open),
            )
            for name, cards in groups.items()
        ]

    @cached_property
    def _cards(self) -> list[RoomCard]:
        people: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for place in self.places:
            if place["room_id"] is not None:
                people[place["room_id"]].append(place)
        return [self._card(room, people[room.pk]) for room in self.rooms]

    def cards(self) -> list[RoomCard]:
        """Return a card for every room, in the order of the list."""
        return self._cards

    def _card(self, room: Room, places: Sequence[dict[str, Any]]) -> RoomCard:
        numbers = {place["number"] for place in places}
        score = room_score([place["score"] for place in places])
        lowest = min((p["score"] for p in places if p["score"] is not None), default=0.0)
        persons, n_asked, n_honoured = [], 0, 0
        for place in sorted(places, key=itemgetter("bed")):
            asked = self._asked.get(place["number"], ())
            met = bool(asked) and any(self.is_together(place["number"], one) for one in asked)
            n_asked += bool(asked)
            n_honoured += met
            pulls = (
                len(places) > 2
                and score is not None
                and place["score"] == lowest
                and place["score"] < score + LOW
            )
            persons.append(
                Person(
                    place["number"],
                    place["score"],
                    place["is_locked"],
                    met,
                    pulls,
                    place["doubt"],
                    self.stays.get(place["number"]),
                )
            )
        is_accepted = bool(numbers) and self._accepted.get(room.pk) == sorted(numbers)
        held = self.offers.get(room.pk, ())
        return RoomCard(room, persons, score, n_asked, n_honoured, is_accepted, held)


def floors_of(cards: Sequence[RoomCard], whole: str, *, is_whole: bool) -> list[FloorCards]:
    """Return rooms by floor; ``whole`` names a floor that is shown whole, ``is_whole`` shows all.

    With many halls each floor shows fewer rooms, so that the page needs little scrolling.
    """
    at_most = SHOWN_A_FLOOR if len({card.room.hall for card in cards}) <= 3 else SHOWN_OF_MANY
    floors: dict[tuple[str, str], FloorCards] = {}
    for card in cards:
        key = (card.room.hall, card.room.floor)
        floor = floors.setdefault(key, FloorCards(*key, at_most=at_most))
        floor.is_whole = is_whole or whole == floor.key
        floor.cards.append(card)
    return list(floors.values())


def unplaced_reasons(rooms: PlacementRooms) -> Mapping[int, str]:
    """Return the needs of each person without a room, in words; "" if there are none."""
    students = rooms.placement.cohort.students.filter(number__in=rooms.homeless)
    return {s.number: ", ".join(needs_of_student(s, rooms.rules.needs)).lower() for s in students}


def find_place(placement: Placement, number: int) -> Place | None:
    """Return a student's place in a placement."""
    return placement.places.filter(number=number).select_related("room", "student").first()
