"""Placements: starting, progress, rules, publishing, rosters."""

from typing import Any, Literal
from uuid import UUID

from django.db.models import Count, Q
from django.http import Http404, HttpResponse, HttpResponseBase

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import housing as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.cohorts.models import Cohort
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.errors import HousingError
from webapp.housing.exports import SHAPES, rooms_export, roster_export
from webapp.housing.forms import default_rules
from webapp.housing.models import BuildingList, Placement
from webapp.housing.services import placements as services
from webapp.jobs.services import job_cancel
from webapp.matching.models import LearnedModel

TAG = "Placements"


def _counted(request: Request) -> Any:
    here = Q(places__has_left=False)
    return (
        owned_by(Placement, request.user)
        .select_related("cohort", "model", "job", "buildings")
        .annotate(
            n_people=Count("places", filter=here),
            n_placed=Count("places", filter=here & Q(places__room__isnull=False)),
        )
    )


def find_placement(request: Request, key: UUID) -> Placement:
    """Return a placement of the organisation with its counts, or answer 404."""
    return get_owned_or_404(_counted(request), request.user, key)


def _answer(request: Request, placement: Placement) -> shapes.Placement:
    return shapes.Placement.of(find_placement(request, placement.pk))


@endpoint("GET", "/placements", tag=TAG, summary="List placements", query=Paging)
def list_placements(request: Request) -> Page[shapes.Placement]:
    """Return the organisation's placements, last changed first."""
    return page_of(request, _counted(request), shapes.Placement)


@endpoint(
    "POST",
    "/placements",
    tag=TAG,
    summary="Place a cohort in rooms",
    description="Queues a job; watch it at /jobs/{job}. Rules that are left out are guessed from "
    "the cohort's columns.",
    body=shapes.NewPlacement,
    status=202,
)
def create_placement(request: Request) -> shapes.Placement:
    """Create a placement and start working it out."""
    sent = read_body(request, shapes.NewPlacement)
    cohort = get_owned_or_404(Cohort, request.user, sent.cohort)
    placement = services.placement_create(
        user=request.user,
        name=sent.name,
        cohort=cohort,
        buildings=get_owned_or_404(BuildingList, request.user, sent.buildings),
        model=get_owned_or_404(LearnedModel, request.user, sent.model),
        rules=sent.rules.to_rules() if sent.rules else default_rules(cohort),
    )
    return _answer(request, placement)


@endpoint("GET", "/placements/{placement_id}", tag=TAG, summary="Look at a placement")
def get_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Return one placement with its figures, and what clashes."""
    return shapes.Placement.of(find_placement(request, placement_id))


@endpoint(
    "DELETE",
    "/placements/{placement_id}",
    tag=TAG,
    summary="Remove a placement",
    status=204,
    role=Role.ADMINISTRATOR,
)
def delete_placement(request: Request, placement_id: UUID) -> None:
    """Remove a placement with the history of every bed, for good."""
    found = find_placement(request, placement_id)
    services.placement_delete(user=request.user, placement=found, typed_name=found.name)


@endpoint(
    "POST",
    "/placements/{placement_id}/rename",
    tag=TAG,
    summary="Rename a placement",
    body=shapes.NewName,
)
def rename_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Give a placement another name."""
    found = find_placement(request, placement_id)
    name = read_body(request, shapes.NewName).name
    services.placement_rename(user=request.user, placement=found, name=name)
    return _answer(request, found)


@endpoint(
    "POST",
    "/placements/{placement_id}/compute",
    tag=TAG,
    summary="Place again around who is locked",
    status=202,
)
def compute_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Queue the job that works the rooms out again."""
    found = find_placement(request, placement_id)
    services.placement_compute(user=request.user, placement=found)
    return _answer(request, found)


@endpoint("POST", "/placements/{placement_id}/cancel", tag=TAG, summary="Stop working rooms out")
def cancel_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Ask the job of a placement to stop; rooms that there are stay."""
    found = find_placement(request, placement_id)
    if found.job is None:
        raise HousingError(f"{found.name} has no job to stop.")
    job_cancel(user=request.user, job=found.job)
    return _answer(request, found)


@endpoint(
    "PUT",
    "/placements/{placement_id}/rules",
    tag=TAG,
    summary="Set other rules",
    description="Works the rooms out again under them. Refused for a published placement.",
    body=shapes.Rules,
    status=202,
)
def set_rules(request: Request, placement_id: UUID) -> shapes.Placement:
    """Set the rules of a placement and queue its job."""
    found = find_placement(request, placement_id)
    rules = read_body(request, shapes.Rules).to_rules()
    services.rules_change(user=request.user, placement=found, rules=rules)
    return _answer(request, found)


@endpoint(
    "POST",
    "/placements/{placement_id}/copy",
    tag=TAG,
    summary="Make a scenario",
    description="Another placement of the same cohort and rooms under the rules that are sent.",
    body=shapes.Rules,
    status=202,
)
def copy_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Copy a placement under other rules and queue its job."""
    found = find_placement(request, placement_id)
    rules = read_body(request, shapes.Rules).to_rules()
    copy = services.placement_copy(user=request.user, placement=found, rules=rules)
    return _answer(request, copy)


@endpoint(
    "POST",
    "/placements/{placement_id}/relearn",
    tag=TAG,
    summary="Place again with learned weights",
    description="Makes a scenario with the newest model that was learned since, for a placement "
    "whose weights were set by hand.",
    status=202,
)
def relearn_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Copy a placement under learned weights and queue its job."""
    found = find_placement(request, placement_id)
    return _answer(request, services.placement_relearn(user=request.user, placement=found))


@endpoint(
    "POST",
    "/placements/{placement_id}/solve",
    tag=TAG,
    summary="Solve what clashes",
    body=shapes.NewSolution,
    status=202,
)
def solve_clashes(request: Request, placement_id: UUID) -> shapes.Placement:
    """Leave requests out, release locks or allow pairs of one clash, or of all; place again."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewSolution)
    services.clashes_solve(user=request.user, placement=found, clash=sent.clash, leave=sent.leave)
    return _answer(request, found)


@endpoint(
    "POST",
    "/placements/{placement_id}/publish",
    tag=TAG,
    summary="Publish a placement",
    description="The cohort's other placement is published no more. Refused with 409 when the "
    "placement changed since the version given.",
    body=shapes.SeenVersion,
    role=Role.ADMINISTRATOR,
)
def publish_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Make a placement the one that students get."""
    found = find_placement(request, placement_id)
    version = read_body(request, shapes.SeenVersion).version
    services.placement_publish(user=request.user, placement=found, version=version)
    return _answer(request, found)


@endpoint(
    "POST",
    "/placements/{placement_id}/unpublish",
    tag=TAG,
    summary="Take a publication back",
    role=Role.ADMINISTRATOR,
)
def unpublish_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Take a publication back; nothing else changes."""
    found = find_placement(request, placement_id)
    services.placement_unpublish(user=request.user, placement=found)
    return _answer(request, found)


@endpoint(
    "GET",
    "/placements/{placement_id}/roster/{file_format}",
    tag=TAG,
    summary="Take a roster",
    description="With original ids; leaves an audit line.",
    query=shapes.RosterQuery,
    media_type="text/csv",
    changes=True,
)
def get_roster(
    request: Request, placement_id: UUID, file_format: Literal["csv", "xlsx"]
) -> HttpResponseBase:
    """Send a roster by student or by room."""
    found, query = find_placement(request, placement_id), read_query(request, shapes.RosterQuery)
    if file_format not in ("csv", "xlsx"):
        raise Http404("There is no such format.")
    options: dict[str, Any] = {
        "user": request.user,
        "placement": found,
        "file_format": file_format,
        "exact": query.ids != "safe",
    }
    if query.by == "room":
        data, kind = rooms_export(**options)
    else:
        columns = [name.strip() for name in query.columns.split(",") if name.strip()]
        shape = SHAPES.get(query.shape or "plain")
        if shape is None:
            raise Problem(422, f"shape: expected one of {', '.join(SHAPES)}.")
        data, kind = roster_export(columns=columns or shape, **options)
    response = HttpResponse(data, content_type=kind)
    return as_attachment(response, f"{plain_name(found.name)}.{file_format}")
