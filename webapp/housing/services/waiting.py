"""The waiting list: who has no bed yet, in which order, and the beds that they may be offered."""

from django.db import transaction
from django.db.models import F, Max, Min
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement
from webapp.housing.services.decisions import lock_placement


def latecomers_wait(*, cohort: Cohort) -> None:
    """Give students of a cohort who are in no place of its placements one without a bed."""
    for placement in Placement.objects.select_for_update().filter(cohort=cohort, revision__gt=0):
        placed = set(placement.places.values_list("student_id", flat=True))
        late = cohort.students.exclude(pk__in=placed).values_list("pk", "number")
        Place.objects.bulk_create(
            [Place(placement=placement, student_id=key, number=number) for key, number in late],
            batch_size=400,
        )
        Placement.objects.filter(pk=placement.pk).update(
            version=F("version") + 1, updated_at=timezone.now()
        )


@transaction.atomic
def turn_change(*, user: User, placement: Placement, number: int, is_first: bool) -> str:
    """Put somebody first on the waiting list, or last, and return one sentence.

    Raises HousingError for who does not wait.
    """
    placement = lock_placement(placement)
    waiting = placement.places.filter(has_left=False, room=None)
    place = waiting.filter(number=number).first()
    if place is None:
        raise HousingError(f"S-{number} does not wait for a bed.")
    ends = waiting.aggregate(first=Min("turn"), last=Max("turn"))
    turn = ends["first"] - 1 if is_first else ends["last"] + 1
    Place.objects.filter(pk=place.pk).update(turn=turn)
    where = "first" if is_first else "last"
    audit(user, "reordered", placement, students=[place.label], turn=where)
    return f"{place.label} is {where} on the waiting list."
