"""Webhook reports of placements to other programs: ids on screen and keys, no names."""

from collections.abc import Sequence
from typing import Any

from webapp.common.events import send_event
from webapp.housing.models import Placement, Room

MAX_NAMED_STUDENTS = 5000


def report_finished(placement: Placement, *, placed: int, students: int) -> None:
    """Report that a placement's rooms are computed."""
    send_event(
        placement.organisation_id,
        "placement.finished",
        placement=str(placement.pk),
        name=placement.name,
        students=students,
        placed=placed,
    )


def report_published(placement: Placement, *, placed: int) -> None:
    """Report that a placement was published."""
    send_event(
        placement.organisation_id,
        "placement.published",
        placement=str(placement.pk),
        name=placement.name,
        cohort=str(placement.cohort_id),
        placed=placed,
    )


def report_moved(
    placement: Placement, before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]
) -> None:
    """Report the students of a published placement who got another room or bed.

    ``before`` and ``after`` are rows of a :class:`webapp.housing.models.PlacementEvent`: number,
    room, bed, ... An unpublished placement reports nothing.
    """
    if not placement.is_published:
        return
    old = {row[0]: tuple(row[1:3]) for row in before}
    now = {row[0]: tuple(row[1:3]) for row in after}
    moved = [number for number in now if now[number] != old.get(number)]
    if not moved:
        return
    rooms = {place[0] for number in moved for place in (old.get(number), now[number]) if place}
    labels = {room.pk: room.label for room in Room.objects.filter(pk__in=rooms - {None})}
    send_event(
        placement.organisation_id,
        "student.moved",
        placement=str(placement.pk),
        version=placement.version,
        total=len(moved),
        students=[
            {
                "student": f"S-{number}",
                "before": _place(old.get(number), labels),
                "after": _place(now[number], labels),
            }
            for number in moved[:MAX_NAMED_STUDENTS]
        ],
    )


def _place(place: tuple[Any, ...] | None, labels: dict[int, str]) -> dict[str, Any] | None:
    if place is None or place[0] is None:
        return None
    return {"room": place[0], "name": labels.get(place[0], ""), "bed": place[1]}
