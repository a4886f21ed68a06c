"""The rules of a placement: hard rules for every room, and wishes that count."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.utils.translation import gettext as _

from engine.tabular.needs import parse_needs
from webapp.cohorts.models import Student
from webapp.common.formats import counted, listed
from webapp.housing.models import Room
from webapp.housing.stays import ALWAYS, NO_DATES, Stay, most_at_once
from webapp.translation.lazy import gettext_lazy

MUST, WISH, NO = "must", "wish", "no"
COUNTS = (MUST, WISH, NO)
DEFAULT_WISH = 0.2
# How hard to try for wishes: the value of an honoured one (score) and its words.
WISH_STRENGTHS = (
    (0.2, gettext_lazy("A little")),
    (1.0, gettext_lazy("More")),
    (3.0, gettext_lazy("Hard")),
    (10.0, gettext_lazy("Very hard")),
)
# The same for the first choice of a hall or kind of room.
CHOICE_STRENGTHS = (
    (0.0, gettext_lazy("Do not count them")),
    (0.1, gettext_lazy("A little")),
    (0.5, gettext_lazy("More")),
    (2.0, gettext_lazy("Hard")),
)
# Weight of suite mates of other rooms, as a share of that of roommates, and its words.
DEFAULT_SUITE = 0.25
SUITE_STRENGTHS = (
    (0.0, gettext_lazy("Do not count them")),
    (0.1, gettext_lazy("A little")),
    (0.25, gettext_lazy("A quarter of a roommate")),
    (0.5, gettext_lazy("Half of a roommate")),
    (1.0, gettext_lazy("As much as a roommate")),
)
DEFAULT_PRICE = 0.5
LAST_IN_ORDER = 99
PRICES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # prices of a move at which the curve is drawn


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """Rules of a placement as set by staff.

    Parameters
    ----------
    designation : str
        Column whose values are the designations of rooms that name no column; "" when these do not
        count.
    order : tuple of (hall, or hall and floor joined by "|", number)
        Order in which rooms fill: number 1 fills first, rooms without a number last.
    same : tuple of str, columns in which roommates agree.
    needs : tuple of str, columns that say what a student needs.
    mutual, one_sided : "must", "wish" or "no"
        How requests count.
    wish : float, value of an honoured wish (score).
    preference : float, value of living in the first choice (score); later ones count less.
    price : float, cost of a move away from the present room (score).
    suite : float
        What the mean score with the people of the other rooms of a suite counts, as a share of the
        mean score with roommates; 0 if suites do not count.
    suite_same : bool, whether all people of a suite agree in the columns ``same``.
    singles : tuple of int, students who get no roommate, in a placement of pairs.
    """

    designation: str = ""
    same: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    mutual: str = MUST
    one_sided: str = WISH
    wish: float = DEFAULT_WISH
    preference: float = 0.0
    price: float = DEFAULT_PRICE
    singles: tuple[int, ...] = ()
    order: tuple[tuple[str, int], ...] = ()
    suite: float = DEFAULT_SUITE
    suite_same: bool = True

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "PlacementRules":
        """Read rules from stored data; missing entries get their defaults."""
        known = {field.name for field in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        for name in ("same", "needs", "singles"):
            values[name] = tuple(values.get(name, ()))
        values["order"] = tuple((key, number) for key, number in values.get("order", ()))
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the rules as data that :meth:`from_json` reads."""
        return asdict(self)


def strength_in_words(value: float, strengths: Sequence[tuple[float, str]]) -> str:
    """Return "a little" for a strength that has a name, and the number for another."""
    return dict(strengths).get(value, _("worth %(value)s") % {"value": f"{value:g}"}).lower()


def needs_of_student(student: Student, columns: Sequence[str]) -> tuple[str, ...]:
    """Return a student's needs by the given columns."""
    return needs_in(student.attributes, columns)


def needs_in(attributes: Mapping[str, str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the needs that a student's answers name.

    A yes means the need that the column is named for; other words are needs themselves, parted by
    commas, semicolons and bars.
    """
    said = (need for name in columns for need in parse_needs(name, attributes.get(name, "")))
    return tuple(dict.fromkeys(said))


def unmet_needs(needs: Sequence[str], room: Room) -> list[str]:
    """Return the needs that a room does not meet."""
    met = room.met_needs
    return [need for need in needs if need.casefold() not in met]


def designations_of(room: Room, rules: PlacementRules) -> list[tuple[str, tuple[str, ...]]]:
    """Return (column, values that it admits, without case) of every designation that counts."""
    named = [(column or rules.designation, values) for column, values in room.admits.items()]
    return [(column, values) for column, values in named if column]


def answer_in(attributes: Mapping[str, str], column: str) -> str:
    """Return a student's answer in a column, whatever the case of its name; "" if unknown."""
    if column in attributes:
        return attributes[column].strip()
    wanted = column.casefold()
    return next((v.strip() for name, v in attributes.items() if name.casefold() == wanted), "")


def broken_rule(
    room: Room,
    members: Sequence[Student],
    rules: PlacementRules,
    forbidden: Collection[frozenset[int]] = (),
    stays: Mapping[int, Stay] = NO_DATES,
    beside: Sequence[Student] = (),
) -> str:
    """Return one sentence on the first rule that these people in this room would break, or "".

    ``beside`` are the people of the other rooms of its suite, with whom they share the suite.
    ``forbidden`` holds pairs of numbers on screen that are never to share a room, ``stays`` the
    days of students with dates of their own. Only the number of beds depends on the days: rules on
    who may share a room hold for people who use it one after the other, too.
    """
    if members and not room.is_open:
        return _("%(room)s is %(state)s. Open it in its building list first.") % {
            "room": room,
            "state": room.get_state_display().lower(),
        }
    for student in members:
        sentence = _unfit(student, room, rules)
        if sentence:
            return sentence
    for index, one in enumerate(members):
        for other in members[index + 1 :]:
            sentence = _apart(one, other, rules, forbidden)
            if sentence:
                return sentence
    for one in members:
        for other in beside:
            sentence = apart_in_suite(room, one, other, rules, forbidden)
            if sentence:
                return sentence
    n_people = most_at_once(stays.get(student.number, ALWAYS) for student in members)
    if n_people > room.max_capacity:
        beds = counted(room.max_capacity, "bed")
        extra = " " + _("with the extra beds") if room.extra_beds else ""
        at_once = " " + _("at the same time") if n_people < len(members) else ""
        return _("%(room)s has %(beds)s%(extra)s, fewer than %(n_people)s people%(at_once)s.") % {
            "room": room,
            "beds": beds,
            "extra": extra,
            "n_people": n_people,
            "at_once": at_once,
        }
    return ""


def misfits(
    room: Room,
    members: Sequence[Student],
    rules: PlacementRules,
    forbidden: Collection[frozenset[int]] = (),
    stays: Mapping[int, Stay] = NO_DATES,
    beside: Sequence[Student] = (),
) -> dict[int, str]:
    """Return the students who cannot live in a room with those named before them, with reasons.

    ``beside`` are the people of the other rooms of its suite.

    A rule that holds for a group holds for every part of it, so that one pass is enough.
    """
    kept: list[Student] = []
    refused: dict[int, str] = {}
    for student in members:
        sentence = broken_rule(room, [*kept, student], rules, forbidden, stays, beside)
        if sentence:
            refused[student.number] = sentence
        else:
            kept.append(student)
    return refused


def _unfit(student: Student, room: Room, rules: PlacementRules) -> str:
    for column, values in designations_of(room, rules):
        own = answer_in(student.attributes, column)
        if own.casefold() not in values:
            wanted = room.designation if column == rules.designation else " or ".join(values)
            if own:
                sentence = _(
                    "%(room)s is for %(column)s “%(wanted)s”; %(student)s is “%(own)s” there."
                )
            else:
                sentence = _("%(room)s is for %(column)s “%(wanted)s”; %(student)s is blank there.")
            return sentence % {
                "room": room,
                "column": column,
                "wanted": wanted,
                "student": student.label,
                "own": own,
            }
    unmet = unmet_needs(needs_of_student(student, rules.needs), room)
    if unmet:
        return _("%(student)s needs %(unmet)s, which %(room)s does not offer.") % {
            "student": student.label,
            "unmet": unmet[0],
            "room": room,
        }
    return ""


def _apart(
    one: Student, other: Student, rules: PlacementRules, forbidden: Collection[frozenset[int]]
) -> str:
    if frozenset((one.number, other.number)) in forbidden:
        return _("%(label)s and %(other)s are never to share a room.") % {
            "label": one.label,
            "other": other.label,
        }
    for column in rules.same:
        if one.attributes.get(column, "") != other.attributes.get(column, ""):
            return _("%(label)s and %(other)s differ in %(column)s, which roommates share.") % {
                "label": one.label,
                "other": other.label,
                "column": column,
            }
    return ""


def apart_in_suite(
    room: Room,
    one: Student,
    other: Student,
    rules: PlacementRules,
    forbidden: Collection[frozenset[int]],
) -> str:
    """Return why two people cannot share the suite of a room, in different rooms, or ""."""
    if one.number == other.number:
        return ""
    who, suite = (
        _("%(label)s and %(other)s") % {"label": one.label, "other": other.label},
        _("%(suite)s in %(hall)s") % {"suite": room.suite_in_words, "hall": room.hall},
    )
    if frozenset((one.number, other.number)) in forbidden:
        return _("%(who)s are never to share a room or a suite, and %(room)s is in %(suite)s.") % {
            "who": who,
            "room": room,
            "suite": suite,
        }
    for column in rules.same if rules.suite_same else ():
        if one.attributes.get(column, "") != other.attributes.get(column, ""):
            return _("%(who)s differ in %(column)s, which the people of %(suite)s share.") % {
                "who": who,
                "column": column,
                "suite": suite,
            }
    return ""


def difference_in_words(rules: PlacementRules) -> dict[str, str]:
    """Return every rule in a few words, for pages that compare placements."""
    wish = _("Wish: %(strength)s") % {"strength": strength_in_words(rules.wish, WISH_STRENGTHS)}
    choice = strength_in_words(rules.preference, CHOICE_STRENGTHS)
    words = {MUST: _("Must"), NO: _("Not counted"), WISH: wish}
    return {
        _("Rooms are for"): rules.designation or _("anybody"),
        _("Roommates agree in"): ", ".join(rules.same) or _("nothing"),
        _("Needs"): ", ".join(rules.needs) or _("not counted"),
        _("Mutual requests"): words[rules.mutual],
        _("One-sided requests"): words[rules.one_sided],
        _("First choice of hall"): choice.capitalize() if rules.preference else _("Not counted"),
        _("Suites agree in the same"): _("yes") if rules.suite_same else _("no"),
        _("Suite mates"): strength_in_words(rules.suite, SUITE_STRENGTHS).capitalize(),
        _("Price of a move"): f"{rules.price:.2f}",
        _("Rooms fill"): order_in_words(rules.order) or _("in any order"),
    }


def order_in_words(order: Sequence[tuple[str, int]]) -> str:
    """Return the order in which rooms fill, such as "Alder, then Birch floor 2 and Cedar"."""
    steps: dict[int, list[str]] = {}
    for key, number in order:
        hall, _rest, floor = key.partition("|")
        steps.setdefault(number, []).append(
            _("%(hall)s floor %(floor)s") % {"hall": hall, "floor": floor} if floor else hall
        )
    words = ""
    for number in sorted(steps):
        step = listed(steps[number])
        words = _("%(first)s, then %(next)s") % {"first": words, "next": step} if words else step
    return words


def place_in_order(room: Room, order: Mapping[str, int]) -> int | None:
    """Return the number of a room's floor or hall in the order; None for a room that comes last."""
    return order.get(f"{room.hall}|{room.floor}", order.get(room.hall))
