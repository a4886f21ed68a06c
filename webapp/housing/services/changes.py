"""Late changes: worked out and shown first, then kept all or none, or discarded."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.formats import counted
from webapp.files.quota import with_fresh_count
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import Place, Placement, PlacementEvent, ProposedChange
from webapp.housing.services.decisions import lock_placement, row_of
from webapp.housing.services.placements import check_computed
from webapp.housing.told import tell_moved
from webapp.jobs.models import Job, JobState
from webapp.jobs.services import job_cancel, job_enqueue


@with_fresh_count
@transaction.atomic
def change_propose(
    *,
    user: User,
    placement: Placement,
    price: float,
    pinned: Sequence[int],
    chosen: Mapping[int, int] | None = None,
) -> ProposedChange:
    """Start working out who would move, at a price of a move; what was proposed before goes.

    Parameters
    ----------
    pinned : numbers on screen of students who stay where they are.
    chosen : keys of rooms by the numbers of students whom staff put there.

    Raises HousingError for a placement without rooms, a room that it has not, or while a job runs.
    """
    placement = lock_placement(placement)
    if not placement.is_computed:
        raise HousingError(f"{placement.name} has no rooms yet.")
    if not 0 < price <= 100:
        raise HousingError("A move costs more than 0 and at most 100.")
    wishes = {str(number): room for number, room in sorted((chosen or {}).items())}
    rooms = placement.buildings.rooms.filter(pk__in=set(wishes.values()))
    if len(set(wishes.values())) != rooms.count():
        raise HousingError(f"There is no such room in {placement.buildings.name}.")
    before = ProposedChange.objects.filter(placement=placement).first()
    ProposedChange.objects.filter(placement=placement).delete()
    job = job_enqueue(
        user=user,
        kind="housing.change",
        parameters={
            "placement": str(placement.pk),
            "price": price,
            "pinned": sorted(set(pinned)),
            "chosen": wishes,
            "version": placement.version,
        },
        title=f"{placement.name}: late changes",
    )
    curve, curve_job = _curve(
        user, placement, before, pinned, wishes
    )  # waits behind the list itself
    return ProposedChange.objects.create(
        placement=placement,
        job=job,
        price=price,
        pinned=sorted(set(pinned)),
        chosen=wishes,
        version=placement.version,
        curve=curve,
        curve_job=curve_job,
    )


def _curve(
    user: User,
    placement: Placement,
    before: ProposedChange | None,
    pinned: Sequence[int],
    wishes: dict[str, int],
) -> tuple[list[list[float]], Job | None]:
    """Return the curve of before where it still holds, or start working out another."""
    if (
        before is not None
        and before.version == placement.version
        and before.pinned == sorted(set(pinned))
        and before.chosen == wishes
        and before.curve_job is not None
        and before.curve_job.state not in (JobState.FAILED, JobState.CANCELLED)
    ):
        return before.curve, before.curve_job
    if before is not None and before.curve_job is not None and before.curve_job.is_active:
        job_cancel(user=user, job=before.curve_job)
    job = job_enqueue(
        user=user,
        kind="housing.price_curve",
        parameters={
            "placement": str(placement.pk),
            "pinned": sorted(set(pinned)),
            "chosen": wishes,
        },
        title=f"{placement.name}: what each price moves",
    )
    return [], job


def curve_point(*, placement: Placement, job_id: Any, point: Sequence[float]) -> None:
    """Add one price to the curve that a job works out; without effect once it was replaced."""
    with transaction.atomic():
        change = ProposedChange.objects.select_for_update().filter(
            placement=placement, curve_job_id=job_id
        )
        for found in change:
            known = [entry for entry in found.curve if entry[0] != point[0]]
            found.curve = sorted([*known, list(point)])
            found.save(update_fields=["curve"])


def change_store(
    *,
    placement: Placement,
    job_id: Any,
    version: int,
    rooms: Mapping[int, int | None],
    rows: list[list[int | None]],
    doubts: Mapping[int, float | None],
    figures: dict[str, Any],
    outcomes: dict[str, Any],
) -> None:
    """Keep what would change; call it in the transaction that ends the job.

    ``rooms`` maps a student's key to a room's key; ``rows`` lists those whose room changes.
    """
    updated = ProposedChange.objects.filter(placement=placement, job_id=job_id).update(
        is_ready=True,
        version=version,
        rooms={str(student): room for student, room in rooms.items()},
        rows=rows,
        doubts={str(student): doubt for student, doubt in doubts.items()},
        figures=figures,
        outcomes=outcomes,
    )
    if not updated:
        raise HousingError("These changes were discarded meanwhile.")


@transaction.atomic
def change_keep(
    *, user: User, placement: Placement, change_id: int, scores: Mapping[int, float | None]
) -> PlacementEvent:
    """Put everybody where the proposed change says, all or none.

    Raises
    ------
    PlacesChangedError
        If the placement changed since the change was worked out.
    HousingError
        If it was discarded, or is not worked out yet.
    """
    placement = lock_placement(placement)
    change = _ready(placement, change_id)
    numbers = dict(placement.cohort.students.values_list("pk", "number"))
    rooms = {int(student): room for student, room in change.rooms.items()}
    check_computed(placement, rooms)
    places = {p.student_id: p for p in placement.places.all()}
    before = [_row(places.get(key), numbers[key]) for key, *_ in change.rows if key in numbers]
    moving = {key for key, *_ in change.rows}
    _put(placement, change, places, numbers, scores)
    after = [row_of(place) for place in placement.places.filter(student_id__in=moving)]
    event = PlacementEvent.objects.create(
        placement=placement,
        revision=placement.revision,
        user=user,
        sentence=f"Late changes kept: {counted(len(moving), 'person', 'people')} moved.",
        before=before,
        after=after,
    )
    now = timezone.now()  # after the event: its rooms are those of the certificate
    Placement.objects.filter(pk=placement.pk).update(
        version=F("version") + 1,
        changes=0,
        best_at=now,
        updated_at=now,
        figures={**placement.figures, **change.figures},
    )
    tell_moved(placement, before, after)
    audit(user, "kept late changes", placement, people=len(moving), price=change.price)
    change.delete()
    return event


def _ready(placement: Placement, change_id: int) -> ProposedChange:
    """Lock a proposed change that may be kept."""
    change = ProposedChange.objects.select_for_update().filter(pk=change_id).first()
    if change is None or change.placement_id != placement.pk:
        raise HousingError("These changes were discarded, or worked out anew, meanwhile.")
    if not change.is_ready:
        raise HousingError("These changes are not worked out yet.")
    if change.version != placement.version:
        raise PlacesChangedError(
            "Somebody changed this placement since. Work the changes out again; nothing was kept."
        )
    return change


def _put(
    placement: Placement,
    change: ProposedChange,
    places: Mapping[int, Place],
    numbers: Mapping[int, int],
    scores: Mapping[int, float | None],
) -> None:
    """Give everybody who moves the first free bed of their new room, and all their new scores."""
    moving = {key for key, *_ in change.rows}
    rooms = {int(student): room for student, room in change.rooms.items()}
    taken: dict[int, set[int]] = {}
    for place in places.values():
        if place.room_id is not None and place.student_id not in moving:
            taken.setdefault(place.room_id, set()).add(place.bed)
    Place.objects.filter(placement=placement, student_id__in=moving).update(room=None, bed=None)
    for student in sorted(moving, key=lambda key: numbers[key]):
        room = rooms.get(student)
        bed = None
        if room is not None:
            used = taken.setdefault(room, set())
            bed = next(k for k in range(1, len(used) + 2) if k not in used)
            used.add(bed)
        Place.objects.update_or_create(
            placement=placement,
            student_id=student,
            defaults={
                "number": numbers[student],
                "room_id": room,
                "bed": bed,
                "has_left": False,
                "score": scores.get(student),
                "doubt": change.doubts.get(str(student)),
            },
        )
    for student, score in scores.items():
        if student not in moving:
            Place.objects.filter(placement=placement, student_id=student).update(score=score)


def _row(place: Place | None, number: int) -> list[Any]:
    if place is None:
        return [number, None, None, False, False]
    return row_of(place)


@transaction.atomic
def change_discard(*, user: User, placement: Placement) -> None:
    """Forget proposed changes; nothing else changes."""
    audit(user, "discarded late changes", placement)
    for change in ProposedChange.objects.filter(placement=placement).select_related("curve_job"):
        if change.curve_job is not None and change.curve_job.is_active:
            job_cancel(user=user, job=change.curve_job)
    ProposedChange.objects.filter(placement=placement).delete()
