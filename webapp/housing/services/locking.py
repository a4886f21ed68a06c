"""Locks that every act takes first."""

from webapp.cohorts.models import Cohort
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Placement


def lock_placement(placement: Placement) -> Placement:
    """Return the placement's row with its relations, locked until the transaction ends.

    The building list is always locked first: placements of other cohorts use the same rooms.

    Raises
    ------
    HousingError
        If the placement was removed meanwhile.
    """
    BuildingList.everything.select_for_update().get(pk=placement.buildings_id)
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
