"""The page of late changes: students who move with reasons, who get a room, and who left."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.naming import numbers_meant
from webapp.common import formats
from webapp.common.formats import listed, signed
from webapp.housing.models import Placement, ProposedChange, Room
from webapp.housing.price_chart import price_chart
from webapp.housing.request_graph import RequestPairs
from webapp.housing.rules import PRICES
from webapp.housing.scores import Scores
from webapp.housing.selectors.offers import beds_for
from webapp.housing.selectors.placements import PlacementRooms, unplaced_reasons
from webapp.housing.services.changes import computed_change, is_stale
from webapp.translation.lazy import gettext_lazy

SHOWN_WAITING = 20
SMALLEST = 0.005  # score: a smaller change of the mean is shown as none
# Lines of "before and after": figures of an outcome that are a count of a total, and their words.
COMPARED = (
    ("mutual", gettext_lazy("Mutual requests")),
    ("one_sided", gettext_lazy("One-sided requests")),
    ("first_choice", gettext_lazy("First choice")),
    ("needs", gettext_lazy("Needs met")),
)


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """One student whose room would change, with one reason in words."""

    number: int
    before: Room | None
    after: Room | None
    reason: str
    gain: float | None

    @property
    def label(self) -> str:
        """The id on screen."""
        return f"S-{self.number}"

    def matches(self, query: str, people: frozenset[int]) -> bool:
        """Return True if a search means the student, or is part of the id or of one of the rooms.

        ``people`` are the students whom it means by name, number or e-mail.
        """
        if self.number in people:
            return True
        names = [self.label, *(room.label for room in (self.before, self.after) if room)]
        return any(query.casefold() in name.casefold() for name in names)


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One line of "before and after"; ``is_better`` is None if it is neither better nor worse."""

    title: str
    before: str
    after: str
    difference: str
    is_better: bool | None


def changes_context(placement: Placement, user: User, query: str = "") -> dict[str, Any]:
    """Return the context of the page of late changes, limited to those whom ``query`` means."""
    change = computed_change(placement)
    students = dict(placement.cohort.students.values_list("pk", "number"))
    rooms = PlacementRooms(placement)
    withdrawn = list(placement.places.filter(has_left=True))
    known = {*rooms.where, *(place.number for place in withdrawn)}
    waiting = rooms.homeless
    context: dict[str, Any] = {
        "placement": placement,
        "change": change,
        "prices": PRICES,
        "price_step": _step(change.price) if change else PRICES.index(0.5),
        "chart": price_chart(change.curve, change.price) if change and change.curve else None,
        "n_curve": len(change.curve) if change else 0,
        "is_curve_done": not (change and change.curve_job and change.curve_job.is_active),
        "curve_words": _curve_words(change.curve) if change else "",
        "query": query,
        "waiting": _waiting(rooms, waiting[:SHOWN_WAITING]),
        "n_waiting": len(waiting),
        "withdrawn": withdrawn,
        "newcomers": [number for number in students.values() if number not in known],
    }
    if change is None or not change.is_ready:
        return context
    explained = _explained(rooms, change, students)
    moves = [row for row in explained if row.before is not None]
    arrivals = [row for row in explained if row.before is None and row.after is not None]
    labels = {room.pk: room.label for room in rooms.rooms}
    people = numbers_meant(user, placement.cohort, query)
    return context | {
        "n_moves": len(moves),
        "n_arrivals": len(arrivals),
        "moves": [row for row in moves if row.matches(query, people)],
        "arrivals": [row for row in arrivals if row.matches(query, people)],
        "chosen": [
            (f"S-{number}", labels.get(room, _("a room that is gone")))
            for number, room in change.chosen.items()
        ],
        "compared": compared_figures(change.outcomes),
        "n_housed": rooms.n_placed,
        "is_stale": is_stale(placement, change),
    }


def _step(price: float) -> int:
    """Return the slider step nearest to a price, on the log axis."""
    return min(range(len(PRICES)), key=lambda k: abs(math.log(PRICES[k] / price)))


def _waiting(rooms: PlacementRooms, numbers: list[int]) -> list[dict[str, Any]]:
    """Return the waiting students in order, with their needs and the beds they may be offered."""
    if not numbers:
        return []
    offers = beds_for(rooms, numbers, Scores(rooms.placement))
    needs = unplaced_reasons(rooms)
    return [{"number": n, "needs": needs.get(n, ""), "offers": offers[n]} for n in numbers]


def _curve_words(curve: Sequence[Sequence[float]]) -> str:
    """Return the moves and students without a room that no price changes; "" while unknown."""
    if len(curve) < len(PRICES):
        return ""
    must = int(min(point[1] for point in curve))
    without = int(min(point[3] for point in curve))
    sentences = []
    if must:
        sentences.append(
            ngettext(
                "%(count)s person has to move at any price.",
                "%(count)s people have to move at any price.",
                must,
            )
            % {"count": f"{must:,}"}
        )
    if without:
        sentences.append(
            ngettext(
                "%(count)s person has no room at any price.",
                "%(count)s people have no room at any price.",
                without,
            )
            % {"count": f"{without:,}"}
        )
    return " ".join(sentences)


def compared_figures(outcomes: Mapping[str, Any]) -> list[ComparedFigure]:
    """Return a placement's figures before and after a proposed change, with the differences."""
    if not outcomes:
        return []
    old, new = outcomes["before"], outcomes["after"]
    waiting = [side["people"] - side["placed"] for side in (old, new)]
    lines = [_counted_line(_("Without a room"), *waiting, is_good=False)]
    if old["mean"] is not None and new["mean"] is not None:
        change = round(new["mean"], 2) - round(old["mean"], 2)
        better = None if abs(change) < SMALLEST else change > 0
        means = (formats.number(old["mean"], 2), formats.number(new["mean"], 2))
        lines.append(ComparedFigure(_("Mean score"), means[0], means[1], signed(change), better))
    if old["low"] is not None:
        title = _("Rooms below %(low)s") % {"low": formats.number(old["low"], 1)}
        lines.append(_counted_line(title, old["rooms_below"], new["rooms_below"], is_good=False))
    for key, title in COMPARED:
        if old[key][1] or new[key][1]:
            before, after = (formats.part_of(*side[key]) for side in (old, new))
            change = new[key][0] - old[key][0]
            better = None if not change else change > 0
            lines.append(ComparedFigure(title, before, after, signed(change, 0), better))
    return [*lines, _counted_line(_("Beds free"), old["beds_free"], new["beds_free"], is_good=None)]


def _counted_line(title: str, before: int, after: int, *, is_good: bool | None) -> ComparedFigure:
    change = after - before
    better = None if is_good is None or not change else (change > 0) == is_good
    return ComparedFigure(title, f"{before:,}", f"{after:,}", signed(change, 0), better)


def explained_changes(placement: Placement, change: ProposedChange) -> list[ChangedPlace]:
    """Return the students whose room would change, with the reason, by number."""
    students = dict(placement.cohort.students.values_list("pk", "number"))
    return _explained(PlacementRooms(placement), change, students)


def _explained(
    now: PlacementRooms, change: ProposedChange, students: dict[int, int]
) -> list[ChangedPlace]:
    rooms = {room.pk: room for room in now.rooms}
    before: dict[int, set[int]] = defaultdict(set)
    after: dict[int, set[int]] = defaultdict(set)
    score = {place["number"]: place["score"] for place in now.places}
    for number, room in now.where.items():
        if room is not None:
            before[room].add(number)
    for student, room in change.rooms.items():
        if room is not None and int(student) in students:
            after[room].add(students[int(student)])
    arriving = {students[key] for key, old, new in change.rows if old is None and key in students}
    scores = Scores(now.placement)
    found = []
    for key, old, new in change.rows:
        if key not in students or (old and old not in rooms) or (new and new not in rooms):
            continue
        number = students[key]
        together = after[new] - {number} if new else set()
        there = scores.of_members(sorted(after[new]))[number] if new else None
        was = score.get(number)
        gain = there - was if there is not None and was is not None else None
        reason = _reason(
            number, old, new, before, after, arriving, now.requests, gain, change.price
        )
        found.append(
            ChangedPlace(number, rooms.get(old), rooms.get(new), reason or _with(together), gain)
        )
    return sorted(found, key=lambda row: row.number)


def _reason(
    number: int,
    old: int | None,
    new: int | None,
    before: dict[int, set[int]],
    after: dict[int, set[int]],
    arriving: set[int],
    requests: RequestPairs,
    gain: float | None,
    price: float,
) -> str:
    """Return the first reason that applies, in the order in which it would stop a placement."""
    if new is None:
        return _("No bed is left under the rules.")
    asked = [b if a == number else a for a, b in requests.mutual if number in (a, b)]
    met = [other for other in asked if other in after[new]]
    if met and (old is None or not set(met) & before[old]):
        return _("With S-%(met)s. They asked for each other.") % {"met": met[0]}
    if old is None:
        return _with(after[new] - {number})
    entered = sorted(arriving & after[old])
    if entered:
        return _("Makes room for %(named)s.") % {"named": _named(entered)}
    if gain is not None and gain > price:
        return _("Fits better there by %(gain)s, which is more than the price of %(price)s.") % {
            "gain": signed(gain),
            "price": f"{price:.2f}",
        }
    if len(before[old]) == 1 and len(after[new]) > 1:
        return _("Alone so far. Joins %(named)s.") % {
            "named": _named(sorted(after[new] - {number}))
        }
    return _("Lets students live together who fit or asked for each other.")


def _named(numbers: list[int]) -> str:
    shown = [f"S-{number}" for number in numbers[:3]]
    if len(numbers) > 3:
        shown.append(_("%(more)s more") % {"more": len(numbers) - 3})
    return listed(shown)


def _with(others: set[int]) -> str:
    return (
        _("With %(named)s.") % {"named": _named(sorted(others))}
        if others
        else _("A room of their own.")
    )
