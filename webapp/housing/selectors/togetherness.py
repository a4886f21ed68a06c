"""Answers to roommate requests: living together or not, the obstacle, and the cheapest move.

A room of c people counts 1/(c - 1) times the sum of its pairs, so what a swap or a move changes is
read from the pairs of two rooms alone, exactly; with suites, also from those between their rooms.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.cohorts.models import Student
from webapp.housing.models import Room
from webapp.housing.models.building import MAX_BEDS
from webapp.housing.request_graph import Pair
from webapp.housing.rules import PlacementRules, answer_in, broken_rule, needs_of_student
from webapp.housing.scores import Scores
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.suite_terms import SuiteTerms
from webapp.housing.services.checks import forbidden_numbers, rooms_taken_elsewhere
from webapp.housing.stays import ALWAYS

SMALLEST = 0.005  # score: a change that is shown as none


@dataclass(frozen=True, slots=True)
class WayTogether:
    """A move that unites two students: ``mover`` into ``room``, in place of ``other`` if any.

    ``change`` is the gain of the placement's total score, negative if it costs.
    """

    mover: int
    room: Room
    other: int | None
    change: float

    @property
    def words(self) -> str:
        """The text of the button."""
        if self.other is None:
            return _("Move S-%(mover)s") % {"mover": self.mover}
        return _("Swap S-%(mover)s, S-%(other)s") % {"mover": self.mover, "other": self.other}

    @property
    def cost(self) -> str:
        """The cost or gain in score."""
        if abs(self.change) < SMALLEST:
            return _("costs nothing")
        return f"{'costs' if self.change < 0 else 'gains'} {abs(self.change):.2f}"


@dataclass(frozen=True, slots=True)
class AskedPair:
    """A request with the placement's answer: the shared room, or the best uniting move.

    ``suite`` names the suite of students who live in different rooms of it, "" otherwise.
    """

    asker: int
    target: int
    shared: Room | None
    way: WayTogether | None
    suite: str = ""


def split_by_honoured(
    rooms: PlacementRooms, pairs: Iterable[Pair]
) -> tuple[list[Pair], list[Pair]]:
    """Return the requests that a placement does not honour, then those that it honours."""
    apart: list[Pair] = []
    together: list[Pair] = []
    for pair in pairs:
        (together if rooms.is_together(*pair) else apart).append(pair)
    return apart, together


def cheapest_first(asked: Iterable[AskedPair]) -> list[AskedPair]:
    """Return requests by cost, cheapest first; those without a move, then honoured ones, last."""

    def order(pair: AskedPair) -> tuple[bool, bool, float]:
        change = pair.way.change if pair.way else 0.0
        return pair.shared is not None, pair.way is None, -change

    return sorted(asked, key=order)


def asked_pairs(rooms: PlacementRooms, pairs: Sequence[Pair]) -> list[AskedPair]:
    """Return requests with the shared room, or the cheapest act that unites the pair.

    Acts that break a rule, part a must or move a locked student are not offered.
    """
    by_key = {room.pk: room for room in rooms.rooms}
    search = _Search(rooms, pairs)

    def suite_of(a: int, b: int) -> str:
        here, there = rooms.where.get(a), rooms.where.get(b)
        if there is None or there not in rooms.suites.get(here or 0, ()):
            return ""
        return f"{by_key[there].hall}, {by_key[there].suite_in_words}"

    return [
        AskedPair(a, b, by_key[rooms.where[a] or 0], None)
        if rooms.is_together(a, b)
        else AskedPair(a, b, None, search.best(a, b), suite_of(a, b))
        for a, b in pairs
    ]


class _Search:
    """Search for the cheapest act that unites a pair, over data read once for all pairs."""

    def __init__(self, rooms: PlacementRooms, pairs: Sequence[Pair]) -> None:
        self._rooms = rooms
        self._room = {room.pk: room for room in rooms.rooms}
        self._members: dict[int, list[int]] = {}
        self._locked: set[int] = set()
        for place in rooms.places:
            if place["room_id"] is not None:
                self._members.setdefault(place["room_id"], []).append(place["number"])
            if place["is_locked"]:
                self._locked.add(place["number"])
        around = [self._around(*pair) for pair in pairs if not rooms.is_together(*pair)]
        near_rooms = {rooms.where.get(number) for near in around for number in near} - {None}
        beside = [number for key in near_rooms for number in rooms.beside(key or 0)]
        self._students = rooms.students([*(n for near in around for n in near), *beside])
        scores = Scores(rooms.placement)
        nearby = {pair for near in around for pair in combinations(near, 2)}
        needed = [pair for pair in nearby if scores.are_there_together(*pair)]
        weights = scores.of_pairs(needed) if needed else ()
        self._pairs = dict(zip(needed, map(float, weights), strict=True))
        self._forbidden = forbidden_numbers(rooms.placement)
        self._taken = rooms_taken_elsewhere(rooms.placement)
        self._stays = rooms.stays
        self._suites = SuiteTerms(rooms, scores)

    def _around(self, a: int, b: int) -> list[int]:
        """Return two students and the roommates of either, in order."""
        where = self._rooms.where
        near = {m for n in (a, b) for m in (n, *self._members.get(where.get(n) or 0, ()))}
        return sorted(near & where.keys())

    def best(self, a: int, b: int) -> WayTogether | None:
        """Return the act of least cost, or None; nobody is united whose days do not overlap."""
        days = self._stays
        if not days.get(a, ALWAYS).overlaps(days.get(b, ALWAYS)):
            return None
        ways = [*self._into(a, b), *self._into(b, a)]
        return max(ways, key=lambda way: way.change, default=None)

    def _into(self, mover: int, host: int) -> Iterator[WayTogether]:
        """Yield the acts that bring one student into the room of another."""
        where = self._rooms.where
        there, here = where.get(host), where.get(mover)
        if there is None or mover in self._locked or mover not in where or there in self._taken:
            return
        room, living = self._room[there], self._members[there]
        old = self._members[here] if here is not None else []
        if self._rooms.has_bed(room, mover):
            left = [n for n in old if n != mover]
            if self._may(here, left, room, [*living, mover], (mover,)):
                change = self._change((old, left), (living, [*living, mover]))
                change += self._suites.change({mover: there})
                yield WayTogether(mover, room, None, change)
        for other in living if here is not None else ():
            if other == host or other in self._locked:
                continue
            if not self._rooms.has_bed(room, mover, {other}) or (
                here is not None and not self._rooms.has_bed(self._room[here], other, {mover})
            ):
                continue
            after_here = [other if n == mover else n for n in old]
            after_there = [mover if n == other else n for n in living]
            if self._may(here, after_here, room, after_there, (mover, other)):
                change = self._change((old, after_here), (living, after_there))
                change += self._suites.change({mover: there, other: here})
                yield WayTogether(mover, room, other, change)

    def _may(
        self,
        here: int | None,
        after_here: list[int],
        room: Room,
        after_there: list[int],
        moving: tuple[int, ...],
    ) -> bool:
        rules = self._rooms.rules
        sides = [(room, after_there)]
        if here is not None and len(moving) > 1:
            sides.append((self._room[here], after_here))
        for side, numbers in sides:
            students = [self._students[n] for n in numbers]
            beside = self._rooms.beside(side.pk, moving)
            for other, living in sides:
                if other.pk in self._rooms.suites.get(side.pk, ()):
                    beside += [n for n in living if n in moving]
            mates = [self._students[n] for n in beside]
            if broken_rule(side, students, rules, self._forbidden, self._stays, mates):
                return False
        targets = (room.pk, here)
        return not any(
            self._rooms.parting(number, target, moving)
            for number, target in zip(moving, targets, strict=False)
        )

    def _change(self, *sides: tuple[list[int], list[int]]) -> float:
        """Return the gain of rooms whose people change; each side is (before, after)."""

        def weight(numbers: list[int]) -> float:
            pairs = [pair for pair in combinations(sorted(numbers), 2) if pair in self._pairs]
            n_mates = Counter(number for pair in pairs for number in pair)
            return sum(self._pairs[a, b] * (1 / n_mates[a] + 1 / n_mates[b]) for a, b in pairs) / 2

        return sum(weight(after) - weight(before) for before, after in sides)


@dataclass(frozen=True, slots=True)
class ImpossibleWish:
    """People who requested each other and whom no room takes together, with the reason."""

    members: tuple[int, ...]
    reason: str
    cut: tuple[Pair, ...]


def impossible_wishes(
    rules: PlacementRules,
    rooms: Iterable[Room],
    members: Sequence[Sequence[Student]],
    forbidden: set[frozenset[int]],
) -> Iterator[tuple[Sequence[Student], str]]:
    """Yield the sets of students whom no open room takes, each with one sentence."""
    kinds = {
        (room.max_capacity, room.designation, frozenset(room.met_needs)): room
        for room in rooms
        if room.is_open
    }
    named = {column for room in kinds.values() for column in room.admits if column}
    columns = (rules.designation, *sorted(named), *rules.same, *rules.needs)
    fitting: set[tuple[tuple[str, ...], ...]] = set()  # answers of people who fit some room
    for students in members:
        alike = tuple(sorted(tuple(answer_in(s.attributes, c) for c in columns) for s in students))
        sentence = _refusal_of_people(rules, students, forbidden)
        if not sentence and alike not in fitting:
            sentence = _refusal_of_rooms(rules, list(kinds.values()), students)
            fitting |= {alike} if not sentence else set()
        if sentence:
            yield students, sentence


def _refusal_of_people(
    rules: PlacementRules, students: Sequence[Student], forbidden: set[frozenset[int]]
) -> str:
    """Return why these students may not share even a room that offers everything, or ""."""
    needs = [need for student in students for need in needs_of_student(student, rules.needs)]
    ideal = Room(hall=_("Any"), name="room", capacity=MAX_BEDS, meets=needs)
    return broken_rule(ideal, students, rules, forbidden)


def _refusal_of_rooms(
    rules: PlacementRules, rooms: Sequence[Room], students: Sequence[Student]
) -> str:
    """Return why no room takes these students, who may live together, or ""."""
    large = [room for room in rooms if room.max_capacity >= len(students)]
    if not large:
        return ngettext(
            "No open room has %(count)s bed.", "No open room has %(count)s beds.", len(students)
        ) % {"count": f"{len(students):,}"}
    first = ""
    for room in large:
        sentence = broken_rule(room, students, rules)
        if not sentence:
            return ""
        first = first or sentence
    return _("No room of %(students)s or more takes them: %(first)s") % {
        "students": len(students),
        "first": first,
    }
