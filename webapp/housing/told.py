"""What other programs are told of placements: ids on screen and keys, no names."""

from collections.abc import Sequence
from typing import Any

from webapp.common.events import tell
from webapp.housing.models import Placement, Room

MOST_NAMED = 5000


def tell_finished(placement: Placement, *, placed: int, students: int) -> None:
    """Tell that a placement's rooms are worked out."""
    tell(
        placement.organisation_id,
        "placement.finished",
        placement=str(placement.pk),
        name=placement.name,
        students=students,
        placed=placed,
    )


def tell_published(placement: Placement, *, placed: int) -> None:
    """Tell that a placement is the one that students get."""
    tell(
        placement.organisation_id,
        "placement.published",
        placement=str(placement.pk),
        name=placement.name,
        cohort=str(placement.cohort_id),
        placed=placed,
    )


def tell_moved(
    placement: Placement, before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]
) -> None:
    """Tell who of a published placement has another room or bed.

    ``before`` and ``after`` are rows of a :class:`webapp.housing.models.PlacementEvent`: number,
    room, bed, ... A placement that is still being decided tells nothing.
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
    tell(
        placement.organisation_id,
        "student.moved",
        placement=str(placement.pk),
        version=placement.version + 1,
        total=len(moved),
        students=[
            {
                "student": f"S-{number}",
                "before": _place(old.get(number), labels),
                "after": _place(now[number], labels),
            }
            for number in moved[:MOST_NAMED]
        ],
    )


def _place(place: tuple[Any, ...] | None, labels: dict[int, str]) -> dict[str, Any] | None:
    if place is None or place[0] is None:
        return None
    return {"room": place[0], "name": labels.get(place[0], ""), "bed": place[1]}
