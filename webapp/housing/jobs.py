"""Working placements out: all rooms at once, or what late changes would move."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from engine import InfeasibleError, place_in_rooms
from engine.rooms.placement import Placement as FoundPlacement
from webapp.common.formats import counted, gap
from webapp.housing.doubts import doubt_shares
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.problem import PlacementProblem, placement_problem
from webapp.housing.rules import PRICES
from webapp.housing.selectors.outcomes import low_score, outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.changes import change_store, curve_point
from webapp.housing.services.placements import placement_clash, placement_store
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Outcome, Subject, job_kind

PLACEMENT = Subject("placement", Placement, "housing:placement", "placement")
CHANGES = Subject("placement", Placement, "housing:changes", "placement")
TARGET_GAP = 0.005
PLACE_SECONDS = 120.0
CHANGE_SECONDS = 30.0
CURVE_SECONDS = 15.0  # a price; the curve is to choose by, and says how far each point was solved


@job_kind("housing.place", verb="Place", target_gap=TARGET_GAP, subject=PLACEMENT)
def place(context: JobContext) -> Outcome:
    """Place a cohort around who is locked."""
    placement = _find(context)
    context.report("Reading students, rooms and requests")
    problem = placement_problem(placement)
    try:
        found = place_in_rooms(
            (problem.scores.model, problem.survey),
            problem.rooms,
            problem.rules,
            allow_unplaced=True,
            gap=TARGET_GAP,
            max_seconds=PLACE_SECONDS,
            rng=context.rng,
            on_progress=context.on_progress,
            should_stop=context.should_stop,
            checkpoint=context.checkpoint,
        )
    except InfeasibleError as error:
        placement_clash(placement_id=placement.pk, clashes=_clashes(problem, error))
        raise
    context.raise_if_stopped()
    figures, doubts = _figures(found), doubt_shares(problem)

    def save() -> dict[str, Any]:
        placement_store(
            placement_id=placement.pk,
            rooms=_rooms(problem, found),
            scores=_scores(problem, found),
            doubts=doubts,
            figures=figures,
        )
        placed = len(problem.students) - len(found.unplaced)
        sentence = f"{placed:,} of {counted(len(problem.students), 'student')} placed, "
        return {"sentence": sentence + f"within {gap(found.relative_gap)} of the best."}

    return save


@job_kind("housing.change", verb="Work out changes", target_gap=TARGET_GAP, subject=CHANGES)
def change(context: JobContext) -> Outcome:
    """Place a cohort anew at a price of a move, and keep what would change for staff to see."""
    placement = _find(context)
    context.report("Reading students, rooms and requests")
    problem = _changed_problem(placement, context)
    found = place_in_rooms(
        (problem.scores.model, problem.survey),
        problem.rooms,
        problem.rules,
        previous=problem.previous,
        move_cost=context.parameters["price"],
        allow_unplaced=True,
        gap=TARGET_GAP,
        max_seconds=CHANGE_SECONDS,
        rng=context.rng,
        on_progress=context.on_progress,
        should_stop=context.should_stop,
        checkpoint=context.checkpoint,
    )
    context.raise_if_stopped()
    rooms = _rooms(problem, found)
    before = dict(placement.places.values_list("student_id", "room_id"))
    rows = [
        [student, before.get(student), room]
        for student, room in rooms.items()
        if before.get(student) != room or student not in before
    ]

    doubts = doubt_shares(problem)
    outcomes = _outcomes(placement, problem, rooms, _scores(problem, found))

    def save() -> dict[str, Any]:
        change_store(
            placement=placement,
            job_id=context.job.pk,
            version=context.parameters["version"],
            rooms=rooms,
            rows=rows,
            doubts=doubts,
            figures=_figures(found),
            outcomes=outcomes,
        )
        moving = sum(row[1] is not None for row in rows)
        return {"sentence": f"{counted(moving, 'person', 'people')} would move."}

    return save


@job_kind("housing.price_curve", verb="Work out prices", subject=CHANGES)
def price_curve(context: JobContext) -> Outcome:
    """Place a cohort at each price of a move, dearest first, and keep how many would move."""
    placement = _find(context)
    problem = _changed_problem(placement, context)
    for k, price in enumerate(reversed(PRICES)):
        context.report(f"Price {price:g}", k / len(PRICES))
        found = place_in_rooms(
            (problem.scores.model, problem.survey),
            problem.rooms,
            problem.rules,
            previous=problem.previous,
            move_cost=price,
            allow_unplaced=True,
            gap=TARGET_GAP,
            max_seconds=CURVE_SECONDS,
            rng=context.rng,
            should_stop=context.should_stop,
        )
        context.raise_if_stopped()
        point = (price, found.n_moved, found.score, len(found.unplaced))
        curve_point(placement=placement, job_id=context.job.pk, point=point)

    def save() -> dict[str, Any]:
        return {"sentence": f"{len(PRICES)} prices worked out."}

    return save


def _changed_problem(placement: Placement, context: JobContext) -> PlacementProblem:
    """Return the placement's problem with whom staff let stay and the rooms that they chose."""
    chosen = context.parameters.get("chosen", {})
    return placement_problem(
        placement,
        context.parameters["pinned"],
        {int(number): room for number, room in chosen.items()},
    )


def _outcomes(
    placement: Placement,
    problem: PlacementProblem,
    rooms: Mapping[int, int | None],
    scores: Mapping[int, float | None],
) -> dict[str, Any]:
    """Return the figures of a placement as it is and as it would be, by the same low score."""
    now = PlacementRooms(placement)
    low = low_score(now)
    number = {student.pk: student.number for student in problem.students}
    then = now.once_moved(
        {number[key]: room for key, room in rooms.items()},
        {number[key]: score for key, score in scores.items()},
    )
    return {"before": outcome(now, low), "after": outcome(then, low)}


def _clashes(problem: PlacementProblem, error: InfeasibleError) -> list[dict[str, Any]]:
    """Return each conflict in words, with the wishes and acts of staff that take part, by number.

    Leaving out any one kind of ``requests``, ``locks`` and ``nevers`` solves a contradiction.
    """
    number = [student.number for student in problem.students]

    def taking_part(conflict: Any) -> dict[str, list[Any]]:
        by_field: dict[str, list[Any]] = {"requests": [], "assigned": [], "forbids": []}
        for field, entry in conflict.rules:
            by_field.setdefault(field, []).append(entry)
        return {
            "requests": [[number[e.student], number[e.wants]] for e in by_field["requests"]],
            "locks": [number[student] for student, _ in by_field["assigned"]],
            "nevers": [[number[a], number[b]] for a, b in by_field["forbids"]],
        }

    nothing: dict[str, list[Any]] = {"requests": [], "locks": [], "nevers": []}
    return [
        {"sentence": conflict.sentence, **taking_part(conflict)} for conflict in error.conflicts
    ] or [{"sentence": str(error), **nothing}]


def _find(context: JobContext) -> Placement:
    key = UUID(context.parameters["placement"])
    placements = Placement.objects.select_related("cohort", "model", "buildings")
    placement = placements.filter(pk=key).first()
    if placement is None:
        raise HousingError("The placement was removed meanwhile.")
    return placement


def _rooms(problem: PlacementProblem, found: FoundPlacement) -> dict[int, int | None]:
    """Return the key of everybody's room by the key of the student."""
    return {
        student.pk: problem.room_keys[room] if room >= 0 else None
        for student, room in zip(problem.students, found.room.tolist(), strict=True)
    }


def _scores(problem: PlacementProblem, found: FoundPlacement) -> dict[int, float | None]:
    """Return everybody's mean score with the roommates; None alone and without a room."""
    return {
        student.pk: float(score) if len(found.roommates(k)) else None
        for k, (student, score) in enumerate(
            zip(problem.students, found.student_scores, strict=True)
        )
    }


def _figures(found: FoundPlacement) -> dict[str, Any]:
    return {
        "score": found.score,
        "extras": found.extras,
        "weight": found.weight,
        "upper_bound": found.upper_bound,
        "relative_gap": found.relative_gap,
        "n_moved": found.n_moved,
        "n_unplaced": len(found.unplaced),
        "conflicts": [conflict.sentence for conflict in found.conflicts],
        "seconds": found.seconds,
    }
