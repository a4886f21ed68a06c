"""What publishing a placement would do, in the words of the question before it."""

from collections.abc import Sequence

from webapp.common.formats import counted
from webapp.housing.models import Placement


def moved_between(before: Placement, after: Placement) -> int:
    """Return how many people of one placement live elsewhere in another."""
    rooms = dict(before.places.filter(has_left=False).values_list("student_id", "room_id"))
    now = after.places.filter(has_left=False).values_list("student_id", "room_id")
    return sum(rooms.get(student, room) != room for student, room in now)


def publish_question(placement: Placement, homeless: Sequence[int]) -> str:
    """Return what publishing would do, for the question before it."""
    other = Placement.objects.filter(cohort=placement.cohort, published_at__isnull=False).first()
    moved = 0 if other is None or other.pk == placement.pk else moved_between(other, placement)
    return publish_words(placement, homeless, other, moved)


def publish_words(
    placement: Placement, homeless: Sequence[int], published: Placement | None, moved: int
) -> str:
    """Return who has no room, and how many move from what is published now, in sentences."""
    parts = []
    if homeless:
        names = ", ".join(f"S-{n}" for n in homeless[:8])
        more = f" and {len(homeless) - 8} more" if len(homeless) > 8 else ""
        parts.append(
            f"{counted(len(homeless), 'student has', 'students have')} no room: {names}{more}."
        )
    if published is not None and published.pk != placement.pk:
        parts.append(
            f"{published.name} is published now; {counted(moved, 'person moves', 'people move')}."
        )
    return " ".join(parts)
