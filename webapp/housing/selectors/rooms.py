"""The drawer of a room: its pairs, reasons for and against a pair, and swaps with their cost."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from engine import Rules, explain_pair
from webapp.housing.models import Placement, PlacementEvent, Room
from webapp.housing.rules import apart_in_suite, broken_rule
from webapp.housing.scores import Scores
from webapp.housing.selectors.offers import bed_offers
from webapp.housing.selectors.placements import PlacementRooms, RoomCard
from webapp.housing.selectors.suite_terms import SuiteTerms
from webapp.housing.services.checks import forbidden_numbers

OFFERED = 3  # swaps that the drawer lists
TRIED = 40  # best swaps by score that are checked against the rules
LARGEST_MATRIX = 4  # people; a larger room shows a list of pairs
SHOWN = 4  # questions of a pair
DIGITS = 2
MOST_EVENTS = 200  # latest acts of a placement that a room's history reads
SHOWN_EVENTS = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair of the matrix; ``third`` is 0 to 2, low to high among all placed pairs."""

    first: int
    second: int
    score: float
    third: int
    is_request: bool


@dataclass(frozen=True, slots=True)
class RoomSwap:
    """A swap of two students, with its effects on both rooms and between the rooms of suites."""

    number: int
    room: Room
    here: float
    there: float
    suites: float = 0.0

    @property
    def total(self) -> float:
        """The gain of all rooms and suites together."""
        return self.here + self.there + self.suites


@dataclass(frozen=True, slots=True)
class BedEvent:
    """The students who came into a room and who left it, by one act."""

    event: PlacementEvent
    came: list[str]
    left: list[str]

    @property
    def words(self) -> str:
        """The event in words: "S-1 and S-2 came, S-3 left"."""
        parts = ((self.came, "came"), (self.left, "left"))
        return ", ".join(f"{' and '.join(who)} {verb}" for who, verb in parts if who)


def room_drawer(
    rooms: PlacementRooms, card: RoomCard, pair: tuple[int, int] | None
) -> dict[str, Any]:
    """Return the context of the drawer of one room."""
    members = [person.number for person in card.people]
    scores = Scores(rooms.placement)
    context: dict[str, Any] = {
        "card": card,
        "history": room_history(rooms.placement, card.room)[:SHOWN_EVENTS],
        "waiting": bed_offers(rooms, card, scores),
        "moved": f"S-{members[0]}" if members else "",
        "suite": _suite(rooms, card),
    }
    if len(members) < 2:
        return context
    table = scores.between(members, members)
    apart = [[a != b and not scores.are_there_together(a, b) for b in members] for a in members]
    table[np.array(apart, dtype=bool)] = np.nan  # they follow each other: no roommates
    shared = {(a, b) for a, b in combinations(members, 2) if scores.are_there_together(a, b)}
    if not shared:
        return context
    cells = _cells(rooms, members, table)
    is_pair = pair is not None and shared & {pair, pair[::-1]}
    chosen = pair if pair is not None and is_pair else _weakest(members, table)
    context |= {
        "cells": cells,
        "rows": [
            (number, [cells.get((number, other)) for other in members], person.score)
            for number, person in zip(members, card.people, strict=True)
        ],
        "members": members,
        "is_matrix": len(members) <= LARGEST_MATRIX,
        "pair": chosen,
        "reasons": _reasons(rooms, scores, chosen),
        "total": scores.total_of(members),
        "follows": len(shared) < len(members) * (len(members) - 1) // 2,
        "culprit": _culprit(card),
    }
    swapped = context["culprit"] or chosen[1]
    context |= {
        "swapped": swapped,
        "has_suites": bool(rooms.suites),
        "moved": f"S-{swapped}",
        "offers": swap_offers(rooms, scores, card, swapped),
    }
    return context


@dataclass(frozen=True, slots=True)
class SuiteView:
    """The other rooms of a suite with their people, and the first rule that its people break."""

    rooms: Sequence[RoomCard]
    conflict: str


def _suite(rooms: PlacementRooms, card: RoomCard) -> SuiteView | None:
    """Return the other rooms of a room's suite; None for a room in no suite."""
    others = rooms.suites.get(card.room.pk, ())
    if not others:
        return None
    cards = [other for other in rooms.cards() if other.room.pk in others]
    here = [person.number for person in card.people]
    beside = rooms.beside(card.room.pk)
    students, forbidden = rooms.students([*here, *beside]), forbidden_numbers(rooms.placement)
    sentences = (
        apart_in_suite(card.room, students[one], students[other], rooms.rules, forbidden)
        for one in here
        for other in beside
    )
    return SuiteView(cards, next(filter(None, sentences), ""))


def _cells(
    rooms: PlacementRooms, members: list[int], table: np.ndarray
) -> dict[tuple[int, int], Cell]:
    low, high = _thirds(rooms)
    asked = {frozenset(p) for p in [*rooms.requests.mutual, *rooms.requests.one_sided]}
    cells = {}
    for i, a in enumerate(members):
        for j, b in enumerate(members):
            if i != j and not np.isnan(table[i, j]):
                score = float(table[i, j])
                third = 0 if score < low else 2 if score > high else 1
                cells[a, b] = Cell(a, b, score, third, frozenset((a, b)) in asked)
    return cells


def _thirds(rooms: PlacementRooms) -> tuple[float, float]:
    """Return the scores that divide all people with roommates into thirds."""
    known = [place["score"] for place in rooms.places if place["score"] is not None]
    low, high = np.quantile(known, [1 / 3, 2 / 3]) if known else (0.0, 0.0)
    return float(low), float(high)


def _weakest(members: list[int], table: np.ndarray) -> tuple[int, int]:
    off = table + np.diag(np.full(len(members), np.inf))
    i, j = np.unravel_index(int(np.nanargmin(off)), off.shape)
    return members[min(i, j)], members[max(i, j)]


def _culprit(card: RoomCard) -> int | None:
    return next((person.number for person in card.people if person.pulls_down), None)


def _reasons(rooms: PlacementRooms, scores: Scores, pair: tuple[int, int]) -> dict[str, Any]:
    """Return the reasons for and against a pair, with sums that match the printed values."""
    one, other = (scores.position[number] for number in pair)
    found = explain_pair(scores.model, scores.survey, one, other, Rules(same=rooms.rules.same))
    score, in_favour = round(found.score, DIGITS), round(found.in_favour, DIGITS)
    against = round(found.against, DIGITS)
    largest = max((abs(c.amount) for c in found.contributions), default=0.0) or 1.0
    shown: list[dict[str, Any]] = [
        {
            "question": c.question,
            "answers": _in_words(c.answers),
            "amount": round(c.amount, DIGITS),
            "bar": c.amount / largest,
        }
        for c in found.contributions[:SHOWN]
    ]
    rest = in_favour - against - sum(reason["amount"] for reason in shown)
    return {
        "shown": shown,
        "n_smaller": max(0, len(found.contributions) - SHOWN),
        "smaller": round(rest, DIGITS),
        "average": round(score - in_favour + against, DIGITS),
        "in_favour": in_favour,
        "against": against,
        "score": score,
    }


def _in_words(answers: tuple[str | None, str | None]) -> str:
    first, second = (f"“{answer}”" if answer is not None else "blank" for answer in answers)
    return (
        _("both %(first)s") % {"first": first} if answers[0] == answers[1] else f"{first}, {second}"
    )


def swap_offers(
    rooms: PlacementRooms, scores: Scores, card: RoomCard, number: int
) -> list[RoomSwap]:
    """Return the swaps of one student that cost least, or gain most, and break no rule.

    A room of c people counts half the sum of its people's scores, and each score is the mean over
    c - 1 pairs: so a swap changes both rooms by what the pairs of the two say, exactly. With suites
    every swap that is tried is compared by what it changes between their rooms, too.
    """
    living = [place for place in rooms.places if place["room_id"] is not None]
    numbers = [place["number"] for place in living]
    here = [p.number for p in card.people if p.number != number]
    gains_here, gains_there = _swap_gains(rooms, scores, number, here, living)
    total = gains_here + gains_there
    blocked = {place["number"] for place in living if place["is_locked"]}
    blocked |= {person.number for person in card.people}
    offers: list[RoomSwap] = []
    by_key = {room.pk: room for room in rooms.rooms}
    members: dict[int, list[int]] = defaultdict(list)
    for place in living:
        members[place["room_id"]].append(place["number"])
    order = [k for k in np.argsort(-total, kind="stable") if numbers[k] not in blocked][:TRIED]
    neighbours = {n for k in order for n in members[living[k]["room_id"]]}
    neighbours |= {n for k in order for n in rooms.beside(living[k]["room_id"])}
    students = rooms.students([number, *here, *neighbours, *rooms.beside(card.room.pk)])
    forbidden = forbidden_numbers(rooms.placement)
    terms = SuiteTerms(rooms, scores)
    for k in order:
        other, room = numbers[k], by_key[living[k]["room_id"]]
        there = [n for n in members[room.pk] if n != other]
        new_here = [students[n] for n in [other, *here]]
        new_there = [students[n] for n in [number, *there]]
        moving = (number, other)
        in_one_suite = room.pk in rooms.suites.get(card.room.pk, ())
        beside_here = [students[n] for n in rooms.beside(card.room.pk, moving)]
        beside_there = [students[n] for n in rooms.beside(room.pk, moving)]
        if in_one_suite:  # each moves into a room beside the other
            beside_here.append(students[number])
            beside_there.append(students[other])
        if (
            broken_rule(card.room, new_here, rooms.rules, forbidden, rooms.stays, beside_here)
            or broken_rule(room, new_there, rooms.rules, forbidden, rooms.stays, beside_there)
            or not rooms.has_bed(card.room, other, {number})
            or not rooms.has_bed(room, number, {other})
            or _parts(rooms, (number, card.room), (other, room))
        ):
            continue
        gain_here, gain_there = float(gains_here[k]), float(gains_there[k])
        if rooms.has_dates(number, card.room) or rooms.has_dates(other, room):
            gain_here = scores.total_of([other, *here]) - scores.total_of([number, *here])
            gain_there = scores.total_of([number, *there]) - scores.total_of([other, *there])
        suites = terms.change({number: room.pk, other: card.room.pk})
        offers.append(RoomSwap(other, room, gain_here, gain_there, suites))
        if len(offers) == OFFERED and not rooms.suites:
            break
    return sorted(offers, key=lambda offer: -offer.total)[:OFFERED]


def _parts(rooms: PlacementRooms, one: tuple[int, Room], other: tuple[int, Room]) -> bool:
    """Return True if a swap would part people whose request is a must."""
    moving = (one[0], other[0])
    return bool(
        rooms.must_share(*moving)  # they would still live apart
        or rooms.parting(one[0], other[1].pk, moving)
        or rooms.parting(other[0], one[1].pk, moving)
    )


def _swap_gains(
    rooms: PlacementRooms,
    scores: Scores,
    number: int,
    here: list[int],
    living: Sequence[Mapping[str, Any]],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gains of this room and the other for a swap with each other student."""
    numbers = [place["number"] for place in living]
    own = scores.between([number], numbers)[0]
    room_of = np.array([place["room_id"] for place in living])
    keys, where, sizes = np.unique(room_of, return_inverse=True, return_counts=True)
    with_room = np.bincount(where, weights=own, minlength=len(keys))
    others = np.maximum(sizes[where] - 1, 1)
    old_there = np.array([place["score"] or 0.0 for place in living])
    gains_there = np.where(sizes[where] > 1, (with_room[where] - own) / others - old_there, 0.0)
    if not here:
        return np.zeros(len(living)), gains_there
    table = scores.between(here, [number, *numbers])
    gains_here = (table[:, 1:].sum(axis=0) - table[:, 0].sum()) / len(here)
    return gains_here, gains_there


def room_history(placement: Placement, room: Room) -> list[BedEvent]:
    """Return the arrivals and departures of a room by hand or late changes, latest first.

    Acts that were undone are left out together with their undo, since they left no trace.
    """
    found = []
    lasting = placement.events.filter(undone_at=None, undoes=None).select_related("user")
    for event in lasting.defer("details")[:MOST_EVENTS]:
        changes: dict[int, list[Any]] = defaultdict(lambda: [None, None])
        for side, rows in enumerate((event.before, event.after)):
            for row in rows:
                changes[row[0]][side] = row[1]
        came = [f"S-{n}" for n, (old, new) in changes.items() if new == room.pk and old != new]
        left = [f"S-{n}" for n, (old, new) in changes.items() if old == room.pk and old != new]
        if came or left:
            found.append(BedEvent(event, came, left))
    return found
