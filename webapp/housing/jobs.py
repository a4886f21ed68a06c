"""Jobs that compute placements: all rooms at once, or the moves of late changes."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine import InfeasibleError, place_in_rooms
from engine.core.status import Status
from engine.rooms.placement import Placement as FoundPlacement
from webapp.common.formats import counted, rough_gap
from webapp.housing.effort import Effort
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.pairs import computing  # noqa: F401 - registers the job of pairs
from webapp.housing.problem import PlacementProblem, placement_problem
from webapp.housing.rules import PRICES, PlacementRules
from webapp.housing.selectors.outcomes import low_score, moved_from, outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.changes import change_store, curve_point
from webapp.housing.services.placements import placement_clash
from webapp.housing.services.versions import (
    computed_version,
    places_prepare,
    plan_ahead,
    start_of,
    version_store,
)
from webapp.housing.suites import SuiteProblem, arranged, with_suites
from webapp.housing.uncertainty import uncertainty_shares
from webapp.jobs.context import JobContext
from webapp.jobs.registry import Outcome, Subject, job_kind
from webapp.translation.lazy import gettext_lazy, pgettext_lazy

PLACEMENT = Subject(
    "placement",
    Placement,
    "housing:placement",
    gettext_lazy("Placement"),
    gettext_lazy("Open the placement"),
    gettext_lazy("The placement was removed."),
)
CHANGES = Subject(
    "placement",
    Placement,
    "housing:changes",
    gettext_lazy("Placement"),
    gettext_lazy("Open the placement"),
    gettext_lazy("The placement was removed."),
)
TARGET_GAP = 0.005
MAY_DROP = ("requests",)  # contradicting rules that a run may drop; staff decide about others
# A run ends after a fixed amount of counted work, about one CPU second per unit, so that it can be
# repeated. On a slower machine the limit of CPU time ends it.
SAFETY = 2.0
PLACE_SECONDS = 120.0  # of CPU time, like all limits here
CHANGE_SECONDS = 30.0
CURVE_SECONDS = 15.0  # for each price; the curve shows how far each point was solved


@job_kind(
    "housing.place",
    verb=pgettext_lazy("title of a job", "Place"),
    target_gap=TARGET_GAP,
    subject=PLACEMENT,
)
def place(context: JobContext) -> Outcome:
    """Place a cohort around the locked students, and store the rooms as a version.

    The search starts from the best known rooms, so that a run never seats fewer people than the one
    before it, and a longer run continues the last one.
    """
    placement = _find(context)
    context.report(_("Reading students, rooms and requests"))
    rules = PlacementRules.from_json(context.parameters.get("rules", placement.rules))
    problem = placement_problem(placement, rules=rules)
    start = start_of(placement, problem)
    suites = with_suites(problem, rules, start, should_stop=context.should_stop)
    problem = suites.problem
    effort = Effort(context.on_progress, context.parameters.get("seconds", PLACE_SECONDS))
    try:
        found = place_in_rooms(
            (problem.scores.model, problem.survey),
            problem.rooms,
            problem.rules,
            previous=start,
            allow_unplaced=True,
            may_drop=MAY_DROP,
            gap=TARGET_GAP,
            max_seconds=SAFETY * effort.seconds,
            max_work=effort.seconds,
            rng=context.rng,
            on_progress=effort.on_progress,
            should_stop=context.should_stop,
            checkpoint=context.checkpoint,
        )
    except InfeasibleError as error:
        placement_clash(placement_id=placement.pk, clashes=_clashes(problem, error))
        raise
    context.raise_if_stopped()
    found, of_suites = arranged(suites, found, should_stop=context.should_stop)
    rooms, doubts = _rooms(problem, found), uncertainty_shares(problem)
    outcomes = _version_outcome(placement, rules, problem, found)
    placement = places_prepare(placement)
    version = computed_version(
        placement=placement,
        job=context.job,
        user=context.job.created_by,
        rules=rules.to_json(),
        rooms=rooms,
        doubts=doubts,
        figures=_figures(context, problem, found) | effort.figures | of_suites,
        outcomes=outcomes,
    )
    plan = plan_ahead(placement, version)

    def save() -> dict[str, Any]:
        version_store(version, plan)
        placed = len(problem.students) - len(found.unplaced)
        students = counted(len(problem.students), "student")
        values = {"number": version.number, "placed": f"{placed:,}", "students": students}
        if math.isfinite(found.relative_gap):
            words = _(
                "Version %(number)s: %(placed)s of %(students)s have a bed, within %(gap)s of the "
                "best."
            )
            sentences = [words % (values | {"gap": rough_gap(found.relative_gap)})]
        else:
            words = _("Version %(number)s: %(placed)s of %(students)s have a bed.")
            sentences = [words % values]
        if of_suites:
            sentences.append(_("Scores with suite mates are no part of the proof."))
        if n_dropped := len(found.dropped):
            words = ngettext(
                "%(count)s request could not be honoured.",
                "%(count)s requests could not be honoured.",
                n_dropped,
            )
            sentences.append(words % {"count": f"{n_dropped:,}"})
        return {"sentence": " ".join(sentences)}

    return save


@job_kind(
    "housing.change",
    verb=pgettext_lazy("title of a job", "Compute changes"),
    target_gap=TARGET_GAP,
    subject=CHANGES,
)
def change(context: JobContext) -> Outcome:
    """Place a cohort again at a price of a move, and store the proposed changes for staff."""
    placement = _find(context)
    context.report(_("Reading students, rooms and requests"))
    suites = _changed_problem(placement, context)
    problem = suites.problem
    effort = Effort(context.on_progress, CHANGE_SECONDS)
    found = place_in_rooms(
        (problem.scores.model, problem.survey),
        problem.rooms,
        problem.rules,
        previous=problem.previous,
        move_cost=context.parameters["price"],
        allow_unplaced=True,
        may_drop=MAY_DROP,
        gap=TARGET_GAP,
        max_seconds=SAFETY * effort.seconds,
        max_work=effort.seconds,
        rng=context.rng,
        on_progress=effort.on_progress,
        should_stop=context.should_stop,
        checkpoint=context.checkpoint,
    )
    context.raise_if_stopped()
    found, of_suites = _arranged(suites, found, context.parameters["price"], context)
    rooms = _rooms(problem, found)
    before = dict(placement.places.values_list("student_id", "room_id"))
    rows = [
        [student, before.get(student), room]
        for student, room in rooms.items()
        if before.get(student) != room
    ]

    doubts = uncertainty_shares(problem)
    outcomes = _outcomes(placement, problem, rooms, _scores(problem, found))

    def save() -> dict[str, Any]:
        change_store(
            placement=placement,
            job_id=context.job.pk,
            version=placement.version,
            rooms=rooms,
            rows=rows,
            doubts=doubts,
            figures=_figures(context, problem, found) | effort.figures | of_suites,
            outcomes=outcomes,
        )
        moving = sum(row[1] is not None for row in rows)
        words = ngettext("%(count)s person would move.", "%(count)s people would move.", moving)
        return {"sentence": words % {"count": f"{moving:,}"}}

    return save


@job_kind(
    "housing.price_curve",
    verb=pgettext_lazy("title of a job", "Compute prices"),
    subject=CHANGES,
)
def price_curve(context: JobContext) -> Outcome:
    """Place a cohort at each price of a move, highest first, and store how many would move."""
    placement = _find(context)
    suites = _changed_problem(placement, context)
    problem = suites.problem
    for k, price in enumerate(reversed(PRICES)):
        context.report(_("Price %(price)s") % {"price": f"{price:g}"}, k / len(PRICES))
        found = place_in_rooms(
            (problem.scores.model, problem.survey),
            problem.rooms,
            problem.rules,
            previous=problem.previous,
            move_cost=price,
            allow_unplaced=True,
            may_drop=MAY_DROP,
            gap=TARGET_GAP,
            max_seconds=CURVE_SECONDS,
            rng=context.rng,
            should_stop=context.should_stop,
        )
        context.raise_if_stopped()
        found = _arranged(suites, found, price, context)[0]
        point = (price, found.n_moved, found.score, len(found.unplaced))
        curve_point(placement=placement, job_id=context.job.pk, point=point)

    def save() -> dict[str, Any]:
        words = ngettext("%(count)s price computed.", "%(count)s prices computed.", len(PRICES))
        return {"sentence": words % {"count": len(PRICES)}}

    return save


def _changed_problem(placement: Placement, context: JobContext) -> SuiteProblem:
    """Return the placement's problem with the students who stay and the rooms that staff chose."""
    chosen = context.parameters.get("chosen", {})
    problem = placement_problem(
        placement,
        context.parameters["pinned"],
        {int(number): room for number, room in chosen.items()},
        keeps_beds=True,
    )
    rules = PlacementRules.from_json(placement.rules)
    return with_suites(
        problem, rules, problem.previous, keeps_present=True, should_stop=context.should_stop
    )


def _arranged(
    suites: SuiteProblem, found: FoundPlacement, price: float, context: JobContext
) -> tuple[FoundPlacement, dict[str, float | int]]:
    """Return late changes that are arranged for the suites, with figures about them."""
    return arranged(
        suites,
        found,
        previous=suites.problem.previous,
        move_cost=price,
        should_stop=context.should_stop,
    )


def _outcomes(
    placement: Placement,
    problem: PlacementProblem,
    rooms: Mapping[int, int | None],
    scores: Mapping[int, float | None],
) -> dict[str, Any]:
    """Return the figures of a placement before and after, both by the same limit of a low score."""
    now = PlacementRooms(placement)
    low = low_score(now)
    then = _once_moved(now, problem, rooms, scores)
    return {"before": outcome(now, low), "after": outcome(then, low)}


def _once_moved(
    now: PlacementRooms,
    problem: PlacementProblem,
    rooms: Mapping[int, int | None],
    scores: Mapping[int, float | None],
) -> PlacementRooms:
    number = {student.pk: student.number for student in problem.students}
    return now.once_moved(
        {number[key]: room for key, room in rooms.items()},
        {number[key]: score for key, score in scores.items()},
    )


def _version_outcome(
    placement: Placement, rules: PlacementRules, problem: PlacementProblem, found: FoundPlacement
) -> dict[str, Any]:
    """Return the figures of a version by its own rules, and how many people it would move."""
    now = PlacementRooms(placement)
    then = _once_moved(now, problem, _rooms(problem, found), _scores(problem, found))
    then.rules = rules
    return {**outcome(then, low_score(now) or low_score(then)), "moved": moved_from(now, then)}


def _clashes(problem: PlacementProblem, error: InfeasibleError) -> list[dict[str, Any]]:
    """Return each conflict in words, with the numbers of the requests and staff decisions in it.

    Each of ``requests``, ``locks`` and ``nevers`` solves the contradiction if it is left out.
    """
    nothing: dict[str, list[Any]] = {"requests": [], "locks": [], "nevers": []}
    return [
        {"sentence": conflict.sentence, **_taking_part(problem, conflict.rules)}
        for conflict in error.conflicts
    ] or [{"sentence": str(error), **nothing}]


def _left_out(problem: PlacementProblem, found: FoundPlacement) -> list[dict[str, Any]]:
    """Return the requests that other rules contradict, in the form of :func:`_clashes`.

    The placement was computed without them; no other student lost a bed because of them.
    """
    return [
        {
            "sentence": dropped.sentence,
            **_taking_part(problem, [r for r in dropped.conflict.rules if r[0] != "requests"]),
            "requests": _taking_part(problem, [dropped.rule])["requests"],
        }
        for dropped in found.dropped
    ]


def _taking_part(problem: PlacementProblem, rules: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the requests, locks and pairs never to share among rules, by number."""
    number = [student.number for student in problem.students]
    by_field: dict[str, list[Any]] = {"requests": [], "assigned": [], "forbids": []}
    for field, entry in rules:
        by_field.setdefault(field, []).append(entry)
    return {
        "requests": [[number[e.student], number[e.wants]] for e in by_field["requests"]],
        "locks": [number[student] for student, _ in by_field["assigned"]],
        "nevers": [[number[a], number[b]] for a, b in by_field["forbids"]],
    }


def _find(context: JobContext) -> Placement:
    key = UUID(context.parameters["placement"])
    placements = Placement.objects.select_related("cohort", "model", "buildings")
    placement = placements.filter(pk=key).first()
    if placement is None:
        raise HousingError(_("The placement was removed meanwhile."))
    return placement


def _rooms(problem: PlacementProblem, found: FoundPlacement) -> dict[int, int | None]:
    """Return the key of each student's room by the key of the student."""
    return {
        student.pk: problem.room_keys[room] if room >= 0 else None
        for student, room in zip(problem.students, found.room.tolist(), strict=True)
    }


def _scores(problem: PlacementProblem, found: FoundPlacement) -> dict[int, float | None]:
    """Return each student's mean score with the roommates; None alone and without a room.

    The engine knows no days: rooms of people with dates of their own are scored again.
    """
    scores = {
        student.pk: float(score) if len(found.roommates(k)) else None
        for k, (student, score) in enumerate(
            zip(problem.students, found.student_scores, strict=True)
        )
    }
    members: dict[int, list[int]] = defaultdict(list)
    key = {student.number: student.pk for student in problem.students}
    for student, room in zip(problem.students, found.room.tolist(), strict=True):
        if room >= 0:
            members[problem.room_keys[room]].append(student.number)
    dated = [people for people in members.values() if not problem.stays.keys().isdisjoint(people)]
    again = problem.scores.of_rooms(dated) if dated else {}
    return scores | {key[number]: score for number, score in again.items()}


def _known(bound: float) -> float | None:
    """Return a bound or a gap; None, which JSON has, before the run found its first bound."""
    return bound if math.isfinite(bound) else None


def _figures(
    context: JobContext, problem: PlacementProblem, found: FoundPlacement
) -> dict[str, Any]:
    return {
        "seed": context.job.seed,
        "is_repeatable": found.is_repeatable,
        "left_out": _left_out(problem, found),
        "score": found.score,
        "extras": found.extras,
        "weight": found.weight,
        "upper_bound": _known(found.upper_bound),
        "relative_gap": _known(found.relative_gap),
        "n_moved": found.n_moved,
        "n_unplaced": len(found.unplaced),
        "n_extra_beds": found.n_extra_beds,
        "least_extra_beds": found.least_extra_beds,
        "conflicts": [conflict.sentence for conflict in found.conflicts],
        "has_converged": found.status is Status.CONVERGED,
    }
