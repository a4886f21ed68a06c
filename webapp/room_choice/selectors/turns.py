"""The turn of one student: group, time slot, the room that was chosen, and what is possible now."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.cohorts.models import Student
from webapp.housing.models import Place, Placement, Room
from webapp.residents.selectors import shown_name
from webapp.room_choice.models import ChoiceRound, ChoiceSlot, RoomChoice, RoundState
from webapp.room_choice.selectors.groups import group_around


class Phase(StrEnum):
    """Phase of a student's turn: it says what is possible now."""

    EARLY = "early"  # before the slot
    OPEN = "open"
    PAUSED = "paused"
    OVER = "over"  # after the slot
    CLOSED = "closed"  # the round is closed, or the rooms are published
    PLACED = "placed"  # has a room that is no choice of this round


@dataclass(frozen=True, slots=True)
class StudentTurn:
    """The turn of a student in a round.

    Parameters
    ----------
    places : places of the whole group with students and rooms, the student's own first.
    room : the room that the student has, or None.
    chosen_by : the member who chose it, or None.
    """

    round: ChoiceRound
    placement: Placement
    places: Sequence[Place]
    starts_at: datetime
    ends_at: datetime
    phase: Phase
    room: Room | None
    chosen_by: Student | None

    @property
    def student(self) -> Student:
        """The student whose page it is."""
        return self.places[0].student

    @property
    def members(self) -> list[Student]:
        """The students of the group, the student first."""
        return [place.student for place in self.places]

    @property
    def mates(self) -> list[Student]:
        """The other students of the group."""
        return self.members[1:]

    @property
    def mate_names(self) -> list[str]:
        """The names of the others; "" for a student without a name."""
        return [shown_name(mate) for mate in self.mates]

    @property
    def chooser_name(self) -> str:
        """The name of the other student who chose; "" if the student did, or without a name."""
        by_other = self.chosen_by is not None and self.chosen_by != self.student
        return shown_name(self.chosen_by) if self.chosen_by and by_other else ""

    @property
    def numbers(self) -> list[int]:
        """The numbers of the group on screen."""
        return [place.number for place in self.places]

    @property
    def is_open(self) -> bool:
        """Return True if the group may choose now."""
        return self.phase == Phase.OPEN

    @property
    def seen(self) -> str:
        """Digest of the group and its rooms; a form sends it back, to notice a change."""
        rows = sorted((place.number, place.room_id) for place in self.places)
        text = json.dumps([str(self.placement.pk), *rows])
        return salted_hmac("webapp.room_choice.seen", text).hexdigest()[:16]


def rounds_of(student: Student) -> list[ChoiceRound]:
    """Return the published rounds of a student's cohort, with their placements."""
    rounds = ChoiceRound.objects.exclude(state=RoundState.DRAFT).filter(
        placement__cohort=student.cohort_id
    )
    return list(
        rounds.select_related(
            "placement__organisation", "placement__cohort", "placement__model"
        ).defer("placement__figures", "placement__clashes")
    )


def turn_of(student: Student, now: datetime | None = None) -> StudentTurn | None:
    """Return the turn of a student; None without a slot, or for somebody who withdrew.

    Of several rounds it is the one that is open for the student now, else the next one, else the
    last one.
    """
    now = now or timezone.now()
    rounds = {round.pk: round for round in rounds_of(student)}
    if not rounds:
        return None
    slots = ChoiceSlot.objects.filter(round__in=rounds, student=student)
    own = [(rounds[slot.round_id], slot) for slot in slots]
    if own:
        return _turn_in(student, _nearest(own, now)[0], now)
    # A student without a slot may have joined a group since the slots were published.
    for round in sorted(rounds.values(), key=lambda one: (not one.is_live, one.opens_at)):
        turn = _turn_in(student, round, now)
        if turn is not None:
            return turn
    return None


def _nearest(
    own: Sequence[tuple[ChoiceRound, ChoiceSlot]], now: datetime
) -> tuple[ChoiceRound, ChoiceSlot]:
    """Return the round and slot that count now: open, else next, else last."""
    live = [one for one in own if one[0].is_live and one[1].ends_at > now]
    if live:
        return min(live, key=lambda one: one[1].starts_at)
    return max(own, key=lambda one: one[1].starts_at)


def _turn_in(student: Student, round: ChoiceRound, now: datetime) -> StudentTurn | None:
    """Return the turn in one round, with the group as it is now."""
    placement = round.placement
    places = places_of_choice(placement, [student.number])
    if not places or places[0].has_left:
        return None
    own = places[0]
    choices = choices_in_force(round, places)
    known = {own.number: own}
    if own.room_id is None or own.number in choices:

        def eligible(numbers: Collection[int]) -> Collection[int]:
            found = [p for p in places_of_choice(placement, numbers) if not p.has_left]
            chosen = choices_in_force(round, found)
            free = {p.number: p for p in found if p.room_id is None or p.number in chosen}
            known.update(free)
            choices.update(chosen)
            return free

        group_around(own.number, placement.cohort_id, eligible)
    students = [place.student_id for place in known.values()]
    slots = ChoiceSlot.objects.filter(round=round, student__in=students)
    slot = slots.order_by("starts_at", "pk").first()
    if slot is None:
        return None
    choice = choices.get(own.number)
    return StudentTurn(
        round=round,
        placement=placement,
        places=[own, *(p for number, p in sorted(known.items()) if number != own.number)],
        starts_at=slot.starts_at,
        ends_at=slot.ends_at,
        phase=_phase(round, slot, now, is_placed=own.room_id is not None and choice is None),
        room=own.room,
        chosen_by=choice.chosen_by if choice else None,
    )


def _phase(round: ChoiceRound, slot: ChoiceSlot, now: datetime, *, is_placed: bool) -> Phase:
    if is_placed:
        return Phase.PLACED
    if not round.is_live or round.placement.is_published:
        return Phase.CLOSED
    if now >= slot.ends_at:
        return Phase.OVER
    if round.state == RoundState.PAUSED:
        return Phase.PAUSED
    return Phase.EARLY if now < slot.starts_at else Phase.OPEN


def places_of_choice(placement: Placement, numbers: Collection[int]) -> list[Place]:
    """Return the places of some students with what a choice needs, by number."""
    places = placement.places.filter(number__in=numbers).select_related("room", "student")
    return list(places.defer("student__answers").order_by("number"))


def choices_in_force(round: ChoiceRound, places: Iterable[Place]) -> dict[int, RoomChoice]:
    """Return the choices of a round that students still have, by number.

    A choice that was undone, or replaced by staff or by another choice, is not in force.
    """
    living = {p.student_id: p for p in places if p.room_id is not None and p.is_locked}
    if not living:
        return {}
    rows = RoomChoice.objects.filter(round=round, student__in=living, event__undone_at=None)
    found = {}
    for choice in rows.select_related("chosen_by").defer("chosen_by__answers").order_by("pk"):
        place = living[choice.student_id]
        if choice.room_id == place.room_id:
            found[place.number] = choice
    return found
