"""Endpoints for versions of a placement: compare, use, restore, discard."""

from uuid import UUID

from django.http import Http404

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body
from webapp.api.endpoints.placements import TAG, find_placement
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import versions as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.api.shapes.housing import RoomDecided
from webapp.common.listing import light
from webapp.housing.models import Placement, PlacementVersion
from webapp.housing.services.fitting import fit_version
from webapp.housing.services.versions import version_discard, version_use


def _find(placement: Placement, number: int) -> PlacementVersion:
    version = placement.versions.filter(number=number).first()
    if version is None:
        raise Http404("There is no such version.")
    return version


@endpoint(
    "GET",
    "/placements/{placement_id}/versions",
    tag=TAG,
    summary="List versions",
    description="Every run is a version, and so are rooms that another version replaced.",
    query=Paging,
)
def list_versions(request: Request, placement_id: UUID) -> Page[shapes.Version]:
    """Return the versions of a placement, latest first."""
    found = find_placement(request, placement_id)
    versions = light(found.versions.all(), "placement")
    return page_of(request, versions, shapes.Version)


@endpoint(
    "GET",
    "/placements/{placement_id}/versions/{number}",
    tag=TAG,
    summary="See what a version would change",
    role=Role.STAFF,
)
def get_version(request: Request, placement_id: UUID, number: int) -> shapes.FittedVersion:
    """Return every student whose room would change, and the digest that confirms the change."""
    found = find_placement(request, placement_id)
    version = _find(found, number)
    return shapes.FittedVersion.of_fit(version, fit_version(found, version), found)


@endpoint(
    "POST",
    "/placements/{placement_id}/versions/{number}/use",
    tag=TAG,
    summary="Use or restore a version",
    description="The rooms of now are kept as a version first. Refused with 409 when the version "
    "would change something else than the digest says.",
    body=shapes.SeenDigest,
)
def use_version(request: Request, placement_id: UUID, number: int) -> RoomDecided:
    """Replace the current rooms by those of a version."""
    found = find_placement(request, placement_id)
    _find(found, number)
    digest = read_body(request, shapes.SeenDigest).digest
    event = version_use(user=request.user, placement=found, number=number, digest=digest)
    return RoomDecided(sentence=event.sentence, event=event.pk, draft=None, version=event.version)


@endpoint(
    "POST",
    "/placements/{placement_id}/versions/{number}/discard",
    tag=TAG,
    summary="Discard a computed version",
    description="It stays in the list and can be restored.",
)
def discard_version(request: Request, placement_id: UUID, number: int) -> RoomDecided:
    """Discard a version; the rooms stay as they are."""
    found = find_placement(request, placement_id)
    _find(found, number)
    event = version_discard(user=request.user, placement=found, number=number)
    return RoomDecided(sentence=event.sentence, event=event.pk, draft=None, version=event.version)
