"""Late changes of a placement: working them out, looking, keeping or discarding them."""

from typing import Literal
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase

from webapp.accounts.models import Role
from webapp.api.dispatch import read_body
from webapp.api.endpoints.placements import TAG, find_placement
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import late_changes as shapes
from webapp.api.shapes.housing import RoomDecided
from webapp.common.selectors import get_or_404
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.exports import moves_export
from webapp.housing.forms import read_students
from webapp.housing.models import Placement, ProposedChange
from webapp.housing.selectors.changes import explained_changes
from webapp.housing.services import changes
from webapp.housing.services.proposed_scores import scores_after


@endpoint(
    "GET",
    "/placements/{placement_id}/late-changes",
    tag=TAG,
    summary="Look at proposed late changes",
    role=Role.STAFF,
)
def get_late_changes(request: Request, placement_id: UUID) -> shapes.Change:
    """Return who would move, and whether that is worked out yet; 404 when none are proposed."""
    return _change(find_placement(request, placement_id))


def _change(placement: Placement) -> shapes.Change:
    change = ProposedChange.objects.filter(placement=placement).select_related("placement").first()
    if change is None:
        raise Http404("No late changes are proposed.")
    return shapes.Change.of(change, explained_changes(placement, change))


@endpoint(
    "POST",
    "/placements/{placement_id}/late-changes",
    tag=TAG,
    summary="Work late changes out",
    description="Queues a job. Nothing moves until the changes are kept.",
    body=shapes.NewChange,
    status=202,
)
def propose_late_changes(request: Request, placement_id: UUID) -> shapes.Change:
    """Work out who would move, at a price of a move."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewChange)
    changes.change_propose(
        user=request.user,
        placement=found,
        price=sent.price,
        pinned=read_students(sent.pinned, may_be_empty=True),
        chosen={read_students([entry.student])[0]: entry.room for entry in sent.chosen},
    )
    return _change(found)


@endpoint(
    "POST",
    "/placements/{placement_id}/late-changes/{change_id}/keep",
    tag=TAG,
    summary="Keep late changes",
    description="All or none. Refused with 409 when the placement changed since.",
)
def keep_late_changes(request: Request, placement_id: UUID, change_id: int) -> RoomDecided:
    """Put everybody where the proposed changes say."""
    found = find_placement(request, placement_id)
    get_or_404(ProposedChange.objects.filter(placement=found), change_id)
    event = changes.change_keep(
        user=request.user, placement=found, change_id=change_id, scores=scores_after(found)
    )
    found.refresh_from_db()
    return RoomDecided(sentence=event.sentence, event=event.pk, version=found.version)


@endpoint(
    "GET",
    "/placements/{placement_id}/late-changes/moves/{file_format}",
    tag=TAG,
    summary="Take the list of moves",
    description="Who would move, from where, to where and why, with original ids; leaves an audit "
    "line.",
    media_type="text/csv",
    changes=True,
)
def get_moves_file(
    request: Request, placement_id: UUID, file_format: Literal["csv", "xlsx"]
) -> HttpResponseBase:
    """Send who would move in the late changes that are proposed."""
    found = find_placement(request, placement_id)
    change = ProposedChange.objects.filter(placement=found).first()
    if change is None or file_format not in ("csv", "xlsx"):
        raise Http404("No late changes are proposed.")
    data, kind = moves_export(
        user=request.user,
        placement=found,
        rows=explained_changes(found, change),
        file_format=file_format,
    )
    name = f"{plain_name(found.name)}-moves.{file_format}"
    return as_attachment(HttpResponse(data, content_type=kind), name)


@endpoint(
    "DELETE",
    "/placements/{placement_id}/late-changes",
    tag=TAG,
    summary="Discard late changes",
    status=204,
)
def discard_late_changes(request: Request, placement_id: UUID) -> None:
    """Forget proposed changes; nothing moves."""
    changes.change_discard(user=request.user, placement=find_placement(request, placement_id))
