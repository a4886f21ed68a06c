"""Versions of a placement's rooms: stored by every run, put into force or restored on purpose.

:func:`webapp.housing.services.fitting.fit_version` returns what a version would change now;
:func:`version_use` makes exactly these changes, if they are still what somebody confirmed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from numpy.typing import NDArray

from webapp.accounts.models import User
from webapp.common.formats import counted
from webapp.database.pieces import PIECE, in_pieces
from webapp.database.rows import create_rows
from webapp.housing.errors import HousingError
from webapp.housing.models import (
    ActKind,
    Place,
    Placement,
    PlacementEvent,
    PlacementVersion,
    VersionOrigin,
)
from webapp.housing.pairs.records import pair_row
from webapp.housing.problem import PlacementProblem
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.fitting import (
    LOCKED_ELSEWHERE,
    FittedVersion,
    VersionPlan,
    plan_version,
)
from webapp.housing.services.history import event_record, state_of
from webapp.housing.services.locking import lock_placement
from webapp.housing.webhook_reports import report_finished
from webapp.jobs.models import Job
from webapp.translation.lazy import gettext_lazy

# The history of putting a version into force, by the origin of the version.
PLACED = gettext_lazy("Version %(number)s placed: %(people)s.")
PAIRED = gettext_lazy("Version %(number)s paired: %(people)s.")
USED = gettext_lazy("Version %(number)s used: %(people)s.")
TAKEN = gettext_lazy("Version %(number)s taken into force: %(people)s.")
RESTORED = gettext_lazy("Version %(number)s restored: %(people)s.")


def places_prepare(placement: Placement) -> Placement:
    """Give every student a place without a bed ahead of the transaction of a first version.

    Returns the placement as it is now. Raises HousingError if it was removed meanwhile.
    """
    now = placement

    def seat() -> bool:
        nonlocal now
        now = lock_placement(placement)
        return not now.is_computed and _seat_students(now, PIECE) == PIECE

    in_pieces(seat)
    return now


def computed_version(
    *,
    placement: Placement,
    job: Job | None,
    user: User | None,
    rules: Mapping[str, Any],
    rooms: Mapping[int, int | None],
    doubts: Mapping[int, float | None],
    figures: dict[str, Any],
    outcomes: dict[str, Any],
) -> PlacementVersion:
    """Return the result of a run as a version, not saved yet.

    Parameters
    ----------
    rules : the rules of the run, as a placement stores them.
    rooms : mapping of a student's key to a room's key, or None.
    doubts : mapping of a student's key to the uncertainty (share of likely roommates).
    outcomes : figures of the version, and "moved".
    """
    return PlacementVersion(
        placement=placement,
        origin=VersionOrigin.RUN,
        job=job,
        created_by=user,
        rules=dict(rules),
        rows=[[key, room, None, False, False, doubts.get(key)] for key, room in rooms.items()],
        figures=figures,
        outcome=outcomes,
    )


def first_plan(placement: Placement, version: PlacementVersion) -> VersionPlan | None:
    """Return the plan to put a version into force as the first one; None if it is not the first.

    None as well if a rule of it would break at the moment, which is decided under the lock.
    """
    if placement.is_computed:
        return None
    try:
        return plan_version(placement, version)
    except HousingError:
        return None


def plan_ahead(placement: Placement, version: PlacementVersion) -> VersionPlan | None:
    """Return the plan of a version that is put into force as soon as it is stored.

    None if the plan must be made under the lock: a student has no place yet, or a rule would break
    at the moment. None as well if staff decide about the version.
    """
    if not _is_used_at_once(placement):
        return None
    if placement.places.count() != placement.cohort.students.count():
        return None
    try:
        return plan_version(placement, version)
    except HousingError:
        return None


def _is_used_at_once(placement: Placement) -> bool:
    return not (placement.is_published if placement.is_pairs else placement.is_computed)


def version_store(version: PlacementVersion, plan: VersionPlan | None = None) -> PlacementVersion:
    """Save the version of a run; call it in the transaction that ends the job.

    The first version of a placement is put into force at once: there is nothing to replace.
    ``plan`` is what :func:`plan_ahead` returned before this transaction.

    Raises HousingError if the placement was removed.
    """
    placement = lock_placement(version.placement)
    version_save(placement, version, plan if plan is not None and plan.holds(placement) else None)
    Placement.objects.filter(pk=placement.pk).update(clashes=[])
    placed = sum(row[1] is not None for row in version.rows)
    report_finished(placement, placed=placed, students=len(version.rows))
    return version


def version_save(placement: Placement, version: PlacementVersion, plan: VersionPlan | None) -> None:
    """Save a computed version and put it into force, unless staff decide about that.

    The placement must be locked, and the plan hold; without one, it is made here. Pairs use up the
    locks of students who were no pair.
    """
    version.placement, version.number = placement, next_number(placement)
    version.best_at = timezone.now()
    version.save()
    if not _is_used_at_once(placement):
        return
    if plan is None:
        _seat_students(placement)
        plan = plan_version(placement, version, is_locked=True)
    first = PAIRED if placement.is_pairs else PLACED
    words = USED if placement.is_computed else first
    locks = [[lock.first_id, lock.second_id] for lock in placement.locks.all()]
    placement.locks.all().delete()
    _take_into_force(version.created_by, placement, plan, words, locks)


def start_of(placement: Placement, problem: PlacementProblem) -> NDArray[np.int64]:
    """Return the rooms that a run starts from, as positions in the problem, -1 for none.

    They are those of a computed version that waits for a decision, or the current ones; a locked
    student is always in the current room.
    """
    waiting = waiting_version(placement)
    if waiting is None:
        return problem.previous
    position = {key: k for k, key in enumerate(problem.room_keys)}
    rows = {row[0]: position.get(row[1], -1) for row in waiting.rows if row[1] is not None}
    locked = set(placement.places.filter(is_locked=True).values_list("student_id", flat=True))
    start = problem.previous.copy()
    for k, student in enumerate(problem.students):
        if student.pk not in locked:
            start[k] = rows.get(student.pk, -1)
    return start


def waiting_version(placement: Placement) -> PlacementVersion | None:
    """Return the last computed version if nobody has decided about it yet."""
    last = placement.versions.filter(origin=VersionOrigin.RUN).first()
    return last if last is not None and last.is_waiting else None


def next_number(placement: Placement) -> int:
    """Return the number of the next version of a placement."""
    return (placement.versions.aggregate(last=Max("number"))["last"] or 0) + 1


def _seat_students(placement: Placement, at_most: int | None = None) -> int:
    """Give students of the cohort without a place one without a bed; return how many."""
    known = placement.places.values("student")
    students = placement.cohort.students.exclude(pk__in=known).values_list("pk", "number")
    made = [
        Place(placement=placement, student_id=key, number=number)
        for key, number in students[:at_most]
    ]
    create_rows(made)
    placement.count_people()
    placement.save(update_fields=["n_people", "n_placed"])
    return len(made)


def version_use(*, user: User, placement: Placement, number: int, digest: str) -> PlacementEvent:
    """Put a version into force, or restore an earlier one; the previous rooms become a version.

    Parameters
    ----------
    digest : digest of :class:`FittedVersion` in the question.

    Raises PlacesChangedError if the version would now make other changes.
    """
    plan = plan_version(placement, find_version(placement, number), digest)
    with transaction.atomic():
        placement = lock_placement(placement)
        if not plan.holds(placement):
            version = find_version(placement, number)
            plan = plan_version(placement, version, digest, is_locked=True)
        words = TAKEN if plan.version.is_waiting else RESTORED
        return _take_into_force(user, placement, plan, words)


def find_version(placement: Placement, number: int) -> PlacementVersion:
    """Return a version by its number, or raise HousingError."""
    version = placement.versions.filter(number=number).first()
    if version is None:
        raise HousingError(
            _("%(placement)s has no version %(number)s.")
            % {"placement": placement.name, "number": number}
        )
    return version


def _take_into_force(
    user: User | None,
    placement: Placement,
    plan: VersionPlan,
    words: str,
    locks: Sequence[list[int]] = (),
) -> PlacementEvent:
    """Write a plan that holds, with the placement locked."""
    version, fitted, seating = plan.version, plan.fitted, plan.seating
    is_first = not placement.is_computed
    if not is_first:
        _save_present(user, placement)
    before = state_of(placement)
    _set_state(placement, version, fitted)
    seating.write(_set_uncertainty(version, fitted.places.values()))
    placed = placement.places.with_bed().count()
    if placement.is_pairs:
        people = counted(placed // 2, "pair")
    else:
        people = ngettext(
            "%(count)s student has a bed", "%(count)s students have a bed", placed
        ) % {"count": f"{placed:,}"}
    details: dict[str, Any] = {} if is_first else {"state": [before, state_of(placement)]}
    if locks and not is_first:
        details["rules"] = {"locks": {"removed": list(locks), "added": []}}
    rows = ([], []) if is_first else (seating.before, seating.after)
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.VERSION,
        verb="took a version into force",
        sentence=words % {"number": version.number, "people": people},
        before=rows[0],
        after=rows[1],
        details=details,
        is_by_hand=False,
        known_pairs=version.pairs,
        number=version.number,
        people=len(fitted.seats),
    )


def _set_state(placement: Placement, version: PlacementVersion, fitted: FittedVersion) -> None:
    """Set the version in force, with its rules and its certificate.

    Students who cannot have the version's room count as moves by hand since its certificate.
    """
    refused = sum(sentence != str(LOCKED_ELSEWHERE) for sentence in fitted.refused.values())
    placement.rules, placement.figures = version.rules, version.figures
    placement.best_at, placement.changes = version.best_at, version.changes + refused
    placement.current, placement.clashes = version, []
    placement.arrays = version.arrays
    if version.used_at is None:
        placement.revision += 1
        version.used_at, version.discarded_at = timezone.now(), None
        version.save(update_fields=["used_at", "discarded_at"])
    placement.save(
        update_fields=[
            "rules", "figures", "best_at", "changes", "current", "clashes", "revision", "arrays",
        ]
    )  # fmt: skip


def _save_present(user: User | None, placement: Placement) -> None:
    """Store the current rooms as a version, unless a version already holds them."""
    if placement.current is not None and not placement.changes and not _has_news(placement):
        return
    places = placement.places.all()
    PlacementVersion.objects.create(
        placement=placement,
        number=next_number(placement),
        origin=VersionOrigin.SAVED,
        created_by=user,
        rules=placement.rules,
        rows=[[p.student_id, p.room_id, p.bed, p.is_locked, p.has_left, p.doubt] for p in places],
        figures=placement.figures,
        outcome={**outcome(PlacementRooms(placement)), "moved": 0},
        best_at=placement.best_at,
        changes=placement.changes,
        used_at=timezone.now(),
        arrays=placement.arrays,
        pairs=[pair_row(pair) for pair in placement.pairs.all()],
    )


def _has_news(placement: Placement) -> bool:
    """Return True if an act since the version in force changed rooms, locks or withdrawals."""
    since = placement.events.filter(kind=ActKind.VERSION).first()
    events = placement.events.filter(pk__gt=since.pk if since else 0)
    return any(event.before != event.after for event in events.only("placement", "before", "after"))


def _set_uncertainty(version: PlacementVersion, places: Iterable[Place]) -> list[Place]:
    """Set the uncertainty of a version's students; return the places where it is another."""
    doubts = {row[0]: row[5] for row in version.rows}
    changed = []
    for place in places:
        doubt = doubts.get(place.student_id, place.doubt)
        if doubt != place.doubt:
            place.doubt = doubt
            changed.append(place)
    return changed


@transaction.atomic
def version_discard(*, user: User, placement: Placement, number: int) -> PlacementEvent:
    """Reject a computed version; it stays among the versions and can be restored.

    Raises HousingError for a version about which somebody has decided.
    """
    placement = lock_placement(placement)
    version = find_version(placement, number)
    if not version.is_waiting:
        raise HousingError(_("%(version)s was decided about already.") % {"version": version})
    version.discarded_at = timezone.now()
    version.save(update_fields=["discarded_at"])
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.DISCARDED,
        verb="discarded a version",
        sentence=_("Version %(number)s discarded. The rooms stay as they are.")
        % {"number": number},
        number=number,
    )
