"""Locks that every act takes first."""

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
    BuildingList.objects.select_for_update().get(pk=placement.buildings_id)
    locked = (
        Placement.objects.select_for_update(of=("self",))
        .select_related("job", "cohort", "model", "buildings")
        .filter(pk=placement.pk)
        .first()
    )
    if locked is None:
        raise HousingError("The placement was removed meanwhile.")
    return locked
