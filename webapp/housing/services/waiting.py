"""The waiting list: students without a bed, in the order in which beds are offered."""

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Max, Min
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, Place, Placement, PlacementEvent
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement, placements_lock


@transaction.atomic
def latecomers_wait(*, user: User | None, cohort: Cohort, arrivals: LateArrivals) -> None:
    """Add the cohort's new students, without a bed, to its placements."""
    for placement in placements_lock(cohort):
        placed = placement.places.values("student")
        late = list(cohort.students.exclude(pk__in=placed).values_list("pk", "number"))
        if not late:
            continue
        Place.objects.bulk_create(
            [Place(placement=placement, student_id=key, number=number) for key, number in late],
            batch_size=400,
        )
        sentence = ngettext(
            "%(count)s student joined and waits for a bed.",
            "%(count)s students joined and wait for a bed.",
            len(late),
        ) % {"count": f"{len(late):,}"}
        event_record(
            user=user,
            placement=placement,
            kind=ActKind.ARRIVED,
            verb="took in latecomers",
            sentence=sentence,
            after=[[number, None, None, False, False] for _, number in late],
            details={"arrival": arrivals.pk},
        )


@transaction.atomic
def turn_change(
    *, user: User, placement: Placement, number: int, is_first: bool, reason: str = ""
) -> PlacementEvent:
    """Move a student to the first or last position on the waiting list.

    ``reason`` becomes part of the history. Raises HousingError for a student who is not waiting.
    """
    placement = lock_placement(placement)
    waiting = placement.places.without_bed()
    place = waiting.filter(number=number).first()
    if place is None:
        raise HousingError(_("S-%(number)s does not wait for a bed.") % {"number": number})
    ends = waiting.aggregate(first=Min("turn"), last=Max("turn"))
    turn = ends["first"] - 1 if is_first else ends["last"] + 1
    turns_put(placement, {number: turn})
    if is_first:
        words = _("%(student)s is first on the waiting list.")
    else:
        words = _("%(student)s is last on the waiting list.")
    if reason and is_first:
        words = _("%(student)s is first on the waiting list: %(reason)s.")
    elif reason:
        words = _("%(student)s is last on the waiting list: %(reason)s.")
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.TURNED,
        verb="reordered",
        sentence=words % {"student": place.label, "reason": reason},
        details={"turns": [[number, place.turn, turn]]},
    )


def turns_put(placement: Placement, turns: Mapping[int, int]) -> None:
    """Write the positions of students on the waiting list, by number."""
    for number, turn in turns.items():
        Place.objects.filter(placement=placement, number=number).update(turn=turn)
