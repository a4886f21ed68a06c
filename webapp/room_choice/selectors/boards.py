"""A round as staff see it: the order of a draft; later who chose, and who is next."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Count, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.naming import shown_names
from webapp.common.formats import counted
from webapp.common.listing import page_at
from webapp.housing.models import Place, Placement, Room
from webapp.room_choice.models import ChoiceRound, RoomChoice, SlotMail
from webapp.room_choice.selectors.groups import order_of
from webapp.room_choice.selectors.turns import choices_in_force
from webapp.translation.lazy import gettext_lazy

A_PAGE = 50  # groups


class Standing(StrEnum):
    """Standing of one group in a round."""

    CHOSEN = "chosen"
    PLACED = "placed"  # by staff
    NOW = "now"
    WAITING = "waiting"
    MISSED = "missed"


STANDING_WORDS = {
    Standing.CHOSEN: gettext_lazy("Chose"),
    Standing.NOW: gettext_lazy("Slot is open"),
    Standing.WAITING: gettext_lazy("Slot not begun"),
    Standing.MISSED: gettext_lazy("Did not choose"),
    Standing.PLACED: gettext_lazy("Placed by staff"),
}


@dataclass(frozen=True, slots=True)
class TurnLine:
    """One group with its slot, its standing and its room.

    ``event_id`` is the act of the choice in force, which can be undone.
    """

    turn: int
    numbers: Sequence[int]
    starts_at: datetime
    ends_at: datetime
    standing: Standing
    rule_value: str = ""
    rooms: Sequence[Room] = ()
    choice: RoomChoice | None = None

    @property
    def words(self) -> str:
        """The standing in words."""
        return str(STANDING_WORDS[self.standing])

    @property
    def event_id(self) -> int | None:
        """The act that can be undone."""
        return self.choice.event_id if self.choice is not None else None


@dataclass(frozen=True, slots=True)
class Board:
    """All groups of a round in their order, and the numbers above them."""

    lines: Sequence[TurnLine]
    n_students: int
    n_chosen: int

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.lines)

    @property
    def of_students(self) -> str:
        """How many students the round has, in words."""
        return _("of %(students)s") % {"students": counted(self.n_students, "student")}

    @property
    def counts(self) -> dict[str, int]:
        """Number of groups of each standing."""
        found = Counter(line.standing for line in self.lines)
        return {standing.value: found[standing] for standing in Standing}

    @property
    def next_line(self) -> TurnLine | None:
        """The group whose slot begins next."""
        waiting = [line for line in self.lines if line.standing == Standing.WAITING]
        return min(waiting, key=lambda line: (line.starts_at, line.turn), default=None)

    @property
    def first_start(self) -> datetime | None:
        """The start of the first slot."""
        return min((line.starts_at for line in self.lines), default=None)

    @property
    def last_end(self) -> datetime | None:
        """The end of the last slot."""
        return max((line.ends_at for line in self.lines), default=None)

    @property
    def largest(self) -> int:
        """Number of students of the largest group."""
        return max((len(line.numbers) for line in self.lines), default=0)


def rounds_of_placement(placement: Placement) -> QuerySet[ChoiceRound]:
    """Return the rounds of a placement, annotated with ``n_students``."""
    return placement.choice_rounds.annotate(n_students=Count("slots"))


def preview_of(round: ChoiceRound) -> Board:
    """Return the order and the slots that publishing a draft would give now."""
    lines = [
        TurnLine(
            turn.turn, turn.group, turn.starts_at, turn.ends_at, Standing.WAITING, turn.rule_value
        )
        for turn in order_of(round)
    ]
    return Board(lines, sum(len(line.numbers) for line in lines), 0)


def board_of(round: ChoiceRound, now: datetime | None = None) -> Board:
    """Return the groups of a published round as they stand now."""
    now = now or timezone.now()
    slots = list(round.slots.all())
    rows = Place.objects.filter(placement=round.placement_id, student__choice_slots__round=round)
    places = {place.student_id: place for place in rows.select_related("room")}
    choices = choices_in_force(round, places.values())
    turns = defaultdict(list)
    for slot in slots:
        turns[slot.turn].append(slot)
    lines = []
    for turn, members in sorted(turns.items()):
        own = [places[s.student_id] for s in members if s.student_id in places]
        present = [place for place in own if not place.has_left]
        if not present:
            continue
        lines.append(_line(round, turn, members[0], present, choices, now))
    n_students = sum(len(line.numbers) for line in lines)
    return Board(lines, n_students, len(choices))


def _line(
    round: ChoiceRound,
    turn: int,
    slot: Any,
    places: Sequence[Place],
    choices: Mapping[int, RoomChoice],
    now: datetime,
) -> TurnLine:
    chosen = [choices[place.number] for place in places if place.number in choices]
    if all(place.room_id is not None for place in places):
        standing = Standing.CHOSEN if chosen else Standing.PLACED
    elif not round.is_live or now >= slot.ends_at:
        standing = Standing.MISSED
    else:
        standing = Standing.NOW if now >= slot.starts_at else Standing.WAITING
    rooms = {place.room.pk: place.room for place in places if place.room is not None}
    return TurnLine(
        turn,
        sorted(place.number for place in places),
        slot.starts_at,
        slot.ends_at,
        standing,
        rooms=list(rooms.values()),
        choice=max(chosen, key=lambda one: one.pk, default=None),
    )


def round_context(round: ChoiceRound, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page of a round: numbers, filters, and a page of groups."""
    board = preview_of(round) if round.is_draft else board_of(round)
    show = parameters.get("show", "")
    lines = [line for line in board.lines if show not in list(Standing) or line.standing == show]
    mails = Counter(SlotMail.objects.filter(slot__round=round).values_list("state", flat=True))
    page = page_at(lines, parameters.get("page"), A_PAGE)
    return {
        "placement": round.placement,
        "round": round,
        "board": board,
        "page_of": page,
        "show": show,
        "kept": {"show": show},
        "standings": [(key, words, board.counts[key]) for key, words in STANDING_WORDS.items()],
        "mails_sent": mails[SlotMail.SENT],
        "mails_waiting": mails[SlotMail.WAITING] + mails[SlotMail.SENDING],
        "mails_failed": mails[SlotMail.FAILED],
        "capacity": _largest_room(round.placement),
    }


def _largest_room(placement: Placement) -> int:
    rooms = placement.buildings.rooms.filter(state="open").order_by("-capacity")
    return rooms.values_list("capacity", flat=True).first() or 0


def round_rows(user: User, round: ChoiceRound) -> list[list[Any]]:
    """Return the rows of the file of a round, one for each student, with the header."""
    cohort = round.placement.cohort
    original = dict(cohort.students.values_list("number", "original_id"))
    names = shown_names(user, cohort)
    board = preview_of(round) if round.is_draft else board_of(round)
    rows: list[list[Any]] = [
        ["Student ID", "On screen", "Name", "Turn", "Slot begins", "Slot ends", "State", "Room",
         "Chosen by", "Chosen at"]
    ]  # fmt: skip
    for line in board.lines:
        for number in line.numbers:
            choice = line.choice
            rows.append(
                [
                    original.get(number, ""),
                    f"S-{number}",
                    names.name(number),
                    line.turn,
                    _written(line.starts_at),
                    _written(line.ends_at),
                    "Preview" if round.is_draft else line.words,
                    ", ".join(room.label for room in line.rooms),
                    choice.chosen_by.label if choice else "",
                    _written(choice.created_at) if choice else "",
                ]
            )
    return rows


def _written(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M")
