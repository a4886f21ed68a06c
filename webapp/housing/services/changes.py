"""Computed late changes: shown first, then applied all or none, or discarded."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.database.rows import update_rows
from webapp.files.quota import with_fresh_count
from webapp.housing.errors import HousingError
from webapp.housing.models import (
    ActKind,
    Placement,
    PlacementEvent,
    ProposedChange,
)
from webapp.housing.services.conflicts import check_unchanged, is_unchanged
from webapp.housing.services.drafts import check_not_locked
from webapp.housing.services.history import event_record, state_of
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Seat, Seating
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
    """Start computing the moves at a price of a move; the previous computed draft is deleted.

    Parameters
    ----------
    pinned : numbers on screen of students who stay where they are.
    chosen : keys of rooms that staff chose, by the numbers of the students.

    Raises HousingError for a placement without rooms, an unknown room, or while a job runs.
    """
    placement = lock_placement(placement)
    if not placement.is_computed:
        raise HousingError(_("%(placement)s has no rooms yet.") % {"placement": placement.name})
    if placement.is_pairs:
        raise HousingError(_("Late changes of pairs are made by hand."))
    if not 0 < price <= 100:
        raise HousingError(_("A move costs more than 0 and at most 100."))
    wishes = {str(number): room for number, room in sorted((chosen or {}).items())}
    rooms = placement.buildings.rooms.filter(pk__in=set(wishes.values()))
    if len(set(wishes.values())) != rooms.count():
        raise HousingError(
            _("There is no such room in %(buildings)s.") % {"buildings": placement.buildings.name}
        )
    before = computed_change(placement)
    computed_changes(placement).delete()
    job = job_enqueue(
        user=user,
        kind="housing.change",
        parameters={
            "placement": str(placement.pk),
            "price": price,
            "pinned": sorted(set(pinned)),
            "chosen": wishes,
        },
        title=placement.name,
    )
    # The job of the curve waits behind the job of the list.
    curve, curve_job = _curve(user, placement, before, pinned, wishes)
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
    """Return the previous curve if it is still valid, or start computing a new one."""
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
        title=placement.name,
    )
    return [], job


def curve_point(*, placement: Placement, job_id: Any, point: Sequence[float]) -> None:
    """Add one price to the curve that a job computes; no effect once the curve was replaced."""
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
    """Store the proposed changes; call it in the transaction that ends the job.

    ``rooms`` maps a student's key to a room's key; ``rows`` lists students whose room changes.
    """
    updated = (
        computed_changes(placement)
        .filter(job_id=job_id)
        .update(
            is_ready=True,
            version=version,
            rooms={str(student): room for student, room in rooms.items()},
            rows=rows,
            doubts={str(student): doubt for student, doubt in doubts.items()},
            figures=figures,
            outcomes=outcomes,
        )
    )
    if not updated:
        raise HousingError(_("These changes were discarded meanwhile."))


@transaction.atomic
def change_keep(*, user: User, placement: Placement, change_id: int) -> PlacementEvent:
    """Move everybody as the computed draft says, all or none.

    Raises
    ------
    PlacesChangedError
        If one of its students or rooms changed since it was computed.
    HousingError
        If it was discarded, is not computed yet, somebody is locked, or a rule would break.
    """
    placement = lock_placement(placement)
    change = _ready(placement, change_id)
    numbers = dict(placement.cohort.students.values_list("pk", "number"))
    if any(key not in numbers for key, *_ in change.rows):
        raise HousingError(_("Students were removed meanwhile. Compute the changes again."))
    seats = {numbers[key]: Seat(room) for key, _, room in change.rows}
    seating = Seating(placement, seats)
    check_unchanged(placement, change.version, students=seats, rooms=seating.rooms)
    check_not_locked(placement, seats)
    seating.check()
    seating.write()
    _write_uncertainty(placement, change, set(numbers))
    before = state_of(placement)
    placement.changes, placement.best_at = 0, timezone.now()
    placement.figures = {**placement.figures, **change.figures}
    placement.save(update_fields=["changes", "best_at", "figures"])
    sentence = ngettext(
        "Late changes kept: %(count)s person moved.",
        "Late changes kept: %(count)s people moved.",
        len(seats),
    ) % {"count": f"{len(seats):,}"}
    event = event_record(
        user=user,
        placement=placement,
        kind=ActKind.LATE,
        verb="kept late changes",
        sentence=sentence,
        before=seating.before,
        after=seating.after,
        details={"state": [before, state_of(placement)]},
        is_by_hand=False,
        people=len(seats),
        price=change.price,
    )
    change.delete()
    return event


def _ready(placement: Placement, change_id: int) -> ProposedChange:
    """Return a computed draft that may be applied, locked."""
    changes = ProposedChange.objects.select_for_update().filter(pk=change_id, is_by_hand=False)
    change = changes.filter(placement=placement).first()
    if change is None:
        raise HousingError(_("These changes were discarded, or computed again, meanwhile."))
    if not change.is_ready:
        raise HousingError(_("These changes are not computed yet."))
    return change


def _write_uncertainty(placement: Placement, change: ProposedChange, students: set[int]) -> None:
    """Write the model's uncertainty about the students of a run."""
    doubts = {int(key): doubt for key, doubt in change.doubts.items() if int(key) in students}
    places = list(placement.places.filter(student__in=doubts).only("placement", "student", "doubt"))
    for place in places:
        place.doubt = doubts[place.student_id]
    update_rows(places, ["doubt"])


@transaction.atomic
def change_discard(*, user: User, placement: Placement) -> None:
    """Delete the computed draft; nothing else changes."""
    audit(user, "discarded late changes", placement)
    changes = computed_changes(placement).select_related("curve_job")
    for change in changes:
        if change.curve_job is not None and change.curve_job.is_active:
            job_cancel(user=user, job=change.curve_job)
    changes.delete()


def computed_changes(placement: Placement) -> QuerySet[ProposedChange]:
    """Return the computed draft of a placement, as a query of at most one row."""
    return ProposedChange.objects.filter(placement=placement, is_by_hand=False)


def computed_change(placement: Placement) -> ProposedChange | None:
    """Return the computed draft of a placement, or None."""
    return computed_changes(placement).select_related("job", "curve_job", "placement").first()


def is_stale(placement: Placement, change: ProposedChange) -> bool:
    """Return True if a student or room of a computed draft changed since it was computed."""
    if not change.is_ready:
        return False
    numbers = placement.cohort.students.filter(pk__in=[row[0] for row in change.rows])
    rooms = {room for _, old, new in change.rows for room in (old, new)} - {None}
    return not is_unchanged(
        placement,
        change.version,
        students=set(numbers.values_list("number", flat=True)),
        rooms=rooms,
    )
