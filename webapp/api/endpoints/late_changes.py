"""Endpoints for late changes of a placement: compute, show, keep or discard them."""

from typing import Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase

from webapp.accounts.models import Role
from webapp.api.dispatch import read_body, read_query
from webapp.api.endpoints.placements import TAG, find_placement
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import late_changes as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.api.shapes.housing import RoomDecided
from webapp.common.selectors import get_or_404
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.exports import moves_export
from webapp.housing.forms import read_students
from webapp.housing.models import Placement, PlacementEvent, ProposedChange
from webapp.housing.selectors.changes import explained_changes
from webapp.housing.selectors.drafts import drafts_of
from webapp.housing.services import changes
from webapp.housing.services.drafts import draft_confirm, draft_discard


@endpoint(
    "GET",
    "/placements/{placement_id}/late-changes",
    tag=TAG,
    summary="Look at proposed late changes",
    role=Role.STAFF,
)
def get_late_changes(request: Request, placement_id: UUID) -> shapes.Change:
    """Return the proposed moves and the state of their job; 404 if no changes are proposed."""
    return _change(find_placement(request, placement_id))


def _change(placement: Placement) -> shapes.Change:
    change = changes.computed_change(placement)
    if change is None:
        raise Http404("No late changes are proposed.")
    return shapes.Change.of(
        change, explained_changes(placement, change), is_stale=changes.is_stale(placement, change)
    )


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
    """Compute the late changes for a given price of a move."""
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
    description="All or none. Refused with 409 when somebody changed the same students or rooms "
    "since.",
)
def keep_late_changes(request: Request, placement_id: UUID, change_id: int) -> RoomDecided:
    """Move all students as the proposed changes say."""
    found = find_placement(request, placement_id)
    get_or_404(changes.computed_changes(found), change_id)
    event = changes.change_keep(user=request.user, placement=found, change_id=change_id)
    return _decided(event)


def _decided(event: PlacementEvent) -> RoomDecided:
    return RoomDecided(sentence=event.sentence, event=event.pk, draft=None, version=event.version)


def _drafts(placement: Placement) -> QuerySet[ProposedChange]:
    drafts = ProposedChange.objects.filter(placement=placement, is_by_hand=True)
    return drafts.select_related("placement", "owner")


@endpoint(
    "GET",
    "/placements/{placement_id}/drafts",
    tag=TAG,
    summary="List drafts of late changes by hand",
    description="Changes to a published placement that wait for confirmation: one draft for each "
    "member of staff.",
    query=Paging,
    role=Role.STAFF,
)
def list_drafts(request: Request, placement_id: UUID) -> Page[shapes.Draft]:
    """Return the drafts by hand with all students concerned."""
    found, query = find_placement(request, placement_id), read_query(request, Paging)
    views = drafts_of(found, request.user)
    return Page[shapes.Draft](
        items=[shapes.Draft.of(view) for view in views[query.offset : query.offset + query.limit]],
        total=len(views),
        limit=query.limit,
        offset=query.offset,
    )


@endpoint(
    "POST",
    "/placements/{placement_id}/drafts/{draft_id}/confirm",
    tag=TAG,
    summary="Confirm a draft of late changes",
    description="All or none. Refused with 409 unless people is the number of students concerned, "
    "or when somebody changed one of these students or rooms since the version given.",
    body=shapes.ConfirmedDraft,
)
def confirm_draft(request: Request, placement_id: UUID, draft_id: int) -> RoomDecided:
    """Make the moves of a draft by hand."""
    draft = get_or_404(_drafts(find_placement(request, placement_id)), draft_id)
    sent = read_body(request, shapes.ConfirmedDraft)
    event = draft_confirm(user=request.user, draft=draft, people=sent.people, version=sent.version)
    return _decided(event)


@endpoint(
    "DELETE",
    "/placements/{placement_id}/drafts/{draft_id}",
    tag=TAG,
    summary="Discard a draft of late changes",
    status=204,
)
def discard_draft(request: Request, placement_id: UUID, draft_id: int) -> None:
    """Discard a draft by hand; nothing moves."""
    draft = get_or_404(_drafts(find_placement(request, placement_id)), draft_id)
    draft_discard(user=request.user, draft=draft)


@endpoint(
    "GET",
    "/placements/{placement_id}/late-changes/moves/{file_format}",
    tag=TAG,
    summary="Take the list of moves",
    description="The students who would move, from where, to where and why, with original ids. "
    "Leaves an audit line.",
    media_type="text/csv",
    changes=True,
)
def get_moves_file(
    request: Request, placement_id: UUID, file_format: Literal["csv", "xlsx"]
) -> HttpResponseBase:
    """Send a file of the moves in the proposed late changes."""
    found = find_placement(request, placement_id)
    change = changes.computed_change(found)
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
    """Discard proposed changes; nothing moves."""
    changes.change_discard(user=request.user, placement=find_placement(request, placement_id))
