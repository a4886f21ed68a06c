"""Locks that every act takes first."""

from django.db.models import Q

from webapp.cohorts.models import Cohort
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Placement


def lock_placement(placement: Placement) -> Placement:
    """Return the placement's row with its relations, locked until the transaction ends.

    Building lists are always locked first, in the order of their keys: that of the placement, since
    placements of other cohorts use the same rooms, and those of the cohort's published placements,
    since no student has a bed in two of them on one day.

    Raises
    ------
    HousingError
        If the placement was removed meanwhile.
    """
    published = Placement.objects.filter(cohort=placement.cohort_id, published_at__isnull=False)
    wanted = Q(pk=placement.buildings_id) | Q(pk__in=published.values("buildings"))
    list(BuildingList.everything.select_for_update().filter(wanted).order_by("pk"))
    locked = (
        Placement.objects.select_for_update(of=("self",))
        .select_related("job", "cohort", "model", "buildings", "organisation")
        .filter(pk=placement.pk)
        .first()
    )
    if locked is None:
        raise HousingError("The placement was removed meanwhile.")
    return locked


def placements_lock(cohort: Cohort) -> list[Placement]:
    """Return the computed placements of a cohort, locked until the transaction ends.

    Their building lists are locked first, in the order of their keys.
    """
    placements = list(Placement.objects.filter(cohort=cohort, revision__gt=0).order_by("pk"))
    keys = {placement.buildings_id for placement in placements}
    list(BuildingList.everything.select_for_update().filter(pk__in=keys).order_by("pk"))
    return [lock_placement(placement) for placement in placements]
