"""Locks that every act takes first."""

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from webapp.cohorts.models import Cohort
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Placement


def building_lists_first(placement: Placement) -> QuerySet[BuildingList]:
    """Return the building lists that an act on a placement locks, in the order of their keys.

    Placements of other cohorts use the rooms of its own list, and no student may have a bed in two
    published placements of the cohort on one day.
    """
    published = Placement.objects.filter(cohort=placement.cohort_id, published_at__isnull=False)
    wanted = Q(pk=placement.buildings_id) | Q(pk__in=published.values("buildings"))
    return BuildingList.everything.select_for_update().filter(wanted).order_by("pk")


def lock_placement(placement: Placement) -> Placement:
    """Return the placement's row with its relations, locked until the transaction ends.

    Building lists are locked first (:func:`building_lists_first`).

    Raises
    ------
    HousingError
        If the placement was removed meanwhile.
    """
    list(building_lists_first(placement))
    locked = (
        Placement.objects.select_for_update(of=("self",))
        .select_related("job", "cohort", "model", "buildings", "organisation")
        .defer("model__weights", "model__curves")
        .filter(pk=placement.pk)
        .first()
    )
    if locked is None:
        raise HousingError(_("The placement was removed meanwhile."))
    return locked


def placements_lock(cohort: Cohort) -> list[Placement]:
    """Return the computed placements of a cohort, locked until the transaction ends.

    Their building lists are locked first, in the order of their keys.
    """
    placements = list(Placement.objects.filter(cohort=cohort, revision__gt=0).order_by("pk"))
    keys = {placement.buildings_id for placement in placements}
    list(BuildingList.everything.select_for_update().filter(pk__in=keys).order_by("pk"))
    return [lock_placement(placement) for placement in placements]
