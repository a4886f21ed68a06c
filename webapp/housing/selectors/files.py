"""Stored files that an organisation's placements refer to."""

from collections.abc import Iterator

from webapp.housing.models import Placement, PlacementVersion


def needed_arrays(organisation_id: int) -> Iterator[str]:
    """Yield the names of the files of pairs and of their versions, without suffix."""
    placements = Placement.objects.filter(organisation_id=organisation_id, arrays__isnull=False)
    yield from map(str, placements.values_list("arrays", flat=True))
    versions = PlacementVersion.objects.filter(
        placement__organisation_id=organisation_id, arrays__isnull=False
    )
    yield from map(str, versions.values_list("arrays", flat=True))
