"""The page of one student: everything that the office knows about a person."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import ShownNames
from webapp.cohorts.selectors.cohorts import answers_in_words
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.housing.models import PlacementEvent, RoommateRequest
from webapp.housing.rules import needs_in, unmet_needs
from webapp.housing.services.conflicts import students_of
from webapp.students.models import StudentNote
from webapp.students.rooms import Stay, past_stay, stays_of

READ_EVENTS = 400  # latest acts of a placement that are searched for the student
SHOWN_EVENTS = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as seen from one student: the other one, or the typed name, and its state."""

    other: int | None
    written: str
    state: str
    source: str


@dataclass(frozen=True, slots=True)
class NeedState:
    """A need of the student and whether the present room meets it."""

    need: str
    state: str
    is_open: bool


def other_years(user: User, student: Student) -> list[Student]:
    """Return the same person in other cohorts of the organisation, latest first.

    A person is known by the same id; ids that were made for a file identify nobody. Halves of a
    cohort hold the same year again and are left out.
    """
    if student.cohort.ids_made:
        return []
    others = Student.objects.filter(
        cohort__in=owned_by(Cohort, user).filter(ids_made=False, half_of=None),
        original_id=student.original_id,
    )
    if student.cohort.half_of_id is not None:
        others = others.exclude(number=student.number)
    rows = light(others, "cohort").exclude(pk=student.pk)
    return list(rows.order_by("-cohort__created_at"))


def student_context(user: User, student: Student, names: ShownNames) -> dict[str, Any]:
    """Return the context of a student's page; requests, letters and notes are for staff only."""
    stays = stays_of(student)
    now = next((stay for stay in stays if stay.room and not stay.has_left), None)
    past = past_stay(student)
    context: dict[str, Any] = {
        "student": student,
        "cohort": student.cohort,
        "names": names,
        "identity": names.people.get(student.number),
        "answers": answers_in_words(student.cohort, student),
        "columns": [
            (name, student.attributes.get(name, ""))
            for name in student.cohort.constraints
            if name not in student.cohort.needs
        ],
        "stays": [*stays, *([past] if past else [])],
        "now": now,
    }
    if not user.is_staff_member:
        return context
    rows = [student, *other_years(user, student)]
    return context | {
        "needs": _needs(student, now),
        "requests_made": _made(student, now),
        "requests_received": _received(student, now),
        "preferences": _preferences(student, now),
        "years": [(one, [*stays_of(one), *_listed(past_stay(one))]) for one in rows[1:]],
        "letters": list(
            student.letters.select_related("template", "placement").defer("text").order_by("-pk")
        ),
        "asks": student.change_asks.all()[:SHOWN_EVENTS],
        "acts": _acts(student),
        "notes": StudentNote.objects.filter(student__in=rows).select_related("author", "student"),
    }


def _listed(stay: Stay | None) -> list[Stay]:
    return [] if stay is None else [stay]


def _needs(student: Student, now: Stay | None) -> list[NeedState]:
    needs = needs_in(student.attributes, student.cohort.needs)
    place = None
    if now is not None and now.placement is not None:
        place = student.places.filter(placement=now.placement).select_related("room").first()
    found = []
    for need in needs:
        if place is None or place.room is None:
            found.append(NeedState(need, _("No room yet"), True))
        elif not unmet_needs((need,), place.room):
            found.append(NeedState(need, _("Met by %(room)s") % {"room": place.room.label}, False))
        else:
            found.append(
                NeedState(need, _("%(room)s does not offer it") % {"room": place.room.label}, True)
            )
    return found


def _state(request: RoommateRequest, other: int | None, now: Stay | None) -> str:
    if request.is_ignored:
        return _("Left out")
    if other is None:
        return _("Not matched to a student yet")
    if now is None:
        return _("No room yet")
    return _("Together in %(room)s") % {"room": now.room} if other in now.roommates else _("Apart")


def _made(student: Student, now: Stay | None) -> list[Asked]:
    return [
        Asked(n := one.target.number if one.target else None, "" if n else one.written,
              _state(one, n, now), one.source)
        for one in student.requests_made.select_related("target").order_by("pk")
    ]  # fmt: skip


def _received(student: Student, now: Stay | None) -> list[Asked]:
    return [
        Asked(one.student.number, "", _state(one, one.student.number, now), one.source)
        for one in student.requests_received.select_related("student").order_by("student__number")
    ]


def _preferences(student: Student, now: Stay | None) -> list[tuple[int, str, bool]]:
    """Return rank, choice, and whether the present room is of that choice."""
    room = now.room.casefold() if now else ""
    rows = student.preferences.order_by("rank").values_list("rank", "wanted")
    return [(rank, wanted, room.startswith(wanted.casefold())) for rank, wanted in rows]


def _acts(student: Student) -> list[PlacementEvent]:
    """Return the latest acts on placements that concern a student, latest first."""
    by_placement: dict[Any, list[PlacementEvent]] = defaultdict(list)
    events = PlacementEvent.objects.filter(placement__cohort=student.cohort_id)
    for event in events.select_related("user", "placement").defer("details")[:READ_EVENTS]:
        if student.number in students_of(event):
            by_placement[event.placement_id].append(event)
    return _latest(event for found in by_placement.values() for event in found)


def _latest(events: Iterable[PlacementEvent]) -> list[PlacementEvent]:
    return sorted(events, key=lambda event: -event.pk)[:SHOWN_EVENTS]
