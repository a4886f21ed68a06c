"""Scores of everybody as they will be once a proposed change is kept."""

from webapp.housing.models import Placement, ProposedChange
from webapp.housing.scores import Scores


def scores_after(placement: Placement) -> dict[int, float | None]:
    """Return the score of every student, by key, whose room a proposed change touches."""
    change = ProposedChange.objects.filter(placement=placement).first()
    if change is None:
        return {}
    numbers = dict(placement.cohort.students.values_list("pk", "number"))
    touched = {room for _, old, new in change.rows for room in (old, new) if room is not None}
    members: dict[int, list[int]] = {room: [] for room in touched}
    for student, room in change.rooms.items():
        if room in members and int(student) in numbers:
            members[room].append(int(student))
    scores = Scores(placement)
    found: dict[int, float | None] = {}
    for group in members.values():
        known = scores.of_members([numbers[key] for key in group]) if group else {}
        found |= {key: known[numbers[key]] for key in group}
    return found
