"""Endpoints for placements: start, progress, rules, publishing, rosters."""

from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from django.db.models import F, OuterRef, Subquery
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
from webapp.housing.exports import LAYOUTS, layout_of_columns, rooms_export, roster_export
from webapp.housing.forms import default_rules
from webapp.housing.models import BuildingList, Placement, PlacementVersion, VersionOrigin
from webapp.housing.services import placements as services
from webapp.housing.services.publication import placement_publish, placement_unpublish
from webapp.jobs.services import job_cancel
from webapp.matching.models import LearnedModel

if TYPE_CHECKING:
    from webapp.api.shapes.housing import NumberedPlacement

TAG = "Placements"


def _numbered(request: Request) -> Any:
    runs = PlacementVersion.objects.filter(placement=OuterRef("pk"), origin=VersionOrigin.RUN)
    undecided = runs.filter(used_at=None, discarded_at=None)
    return (
        owned_by(Placement, request.user)
        .select_related("cohort", "model", "job", "buildings")
        .annotate(
            current_number=F("current__number"),
            last_run=Subquery(runs.order_by("-number").values("number")[:1]),
            undecided_run=Subquery(undecided.order_by("-number").values("number")[:1]),
        )
    )


def find_placement(request: Request, key: UUID) -> "NumberedPlacement":
    """Return a placement of the organisation with the numbers of its versions, or answer 404."""
    return get_owned_or_404(_numbered(request), request.user, key)


def _answer(request: Request, placement: Placement) -> shapes.Placement:
    return _seen(request, find_placement(request, placement.pk))


def _seen(request: Request, row: "NumberedPlacement") -> shapes.Placement:
    """Return a placement as the person may see it: viewers see no requests."""
    answer = shapes.Placement.of(row)
    if not request.user.is_staff_member:
        answer.left_out, answer.clashes = [], []
        answer.figures.pop("conflicts", None)
    return answer


@endpoint("GET", "/placements", tag=TAG, summary="List placements", query=Paging)
def list_placements(request: Request) -> Page[shapes.Placement]:
    """Return the organisation's placements, last changed first."""

    def seen(rows: list[Any]) -> list[shapes.Placement]:
        return [_seen(request, row) for row in rows]

    return page_of(request, _numbered(request), shapes.Placement, prepare=seen)


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
    """Create a placement and start computing it."""
    sent = read_body(request, shapes.NewPlacement)
    cohort = get_owned_or_404(Cohort, request.user, sent.cohort)
    placement = services.placement_create(
        user=request.user,
        name=sent.name,
        cohort=cohort,
        buildings=get_owned_or_404(BuildingList, request.user, sent.buildings),
        model=get_owned_or_404(LearnedModel, request.user, sent.model),
        rules=sent.rules.to_rules(cohort) if sent.rules else default_rules(cohort),
        seed=sent.seed,
    )
    return _answer(request, placement)


@endpoint("GET", "/placements/{placement_id}", tag=TAG, summary="Look at a placement")
def get_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Return one placement with its figures and its clashing rules."""
    return _seen(request, find_placement(request, placement_id))


@endpoint(
    "DELETE",
    "/placements/{placement_id}",
    tag=TAG,
    summary="Remove a placement",
    status=204,
    role=Role.ADMINISTRATOR,
)
def delete_placement(request: Request, placement_id: UUID) -> None:
    """Delete a placement with its versions and history, for good, unless it is published."""
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
    """Change the name of a placement."""
    found = find_placement(request, placement_id)
    name = read_body(request, shapes.NewName).name
    services.placement_rename(user=request.user, placement=found, name=name)
    return _answer(request, found)


@endpoint(
    "POST",
    "/placements/{placement_id}/compute",
    tag=TAG,
    summary="Compute another version",
    description="Locked students stay. The rooms do not change before the version is used, at "
    "/versions. The search starts from the best rooms that there are, so that a second run with "
    "more seconds goes on from the first.",
    body=shapes.NewRun,
    status=202,
)
def compute_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Queue the job that computes the rooms again as a new version."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewRun)
    services.placement_compute(
        user=request.user,
        placement=found,
        seconds=sent.seconds,
        with_needs=sent.count_needs,
        seed=sent.seed,
    )
    return _answer(request, found)


@endpoint("POST", "/placements/{placement_id}/cancel", tag=TAG, summary="Stop working rooms out")
def cancel_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Ask the job of a placement to stop; the rooms stay as they are."""
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
    description="Computes a version under them; rooms and rules change once that version is used, "
    "at /versions. Refused for a published placement.",
    body=shapes.Rules,
    status=202,
)
def set_rules(request: Request, placement_id: UUID) -> shapes.Placement:
    """Set the rules of a placement and queue its job."""
    found = find_placement(request, placement_id)
    rules = read_body(request, shapes.Rules).to_rules(found.cohort)
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
    """Copy a placement with other rules and queue its job."""
    found = find_placement(request, placement_id)
    rules = read_body(request, shapes.Rules).to_rules(found.cohort)
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
    """Copy a placement with learned weights and queue its job."""
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
    """Leave out requests, release locks or allow pairs of one clash or all; place again."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewSolution)
    services.clashes_solve(user=request.user, placement=found, clash=sent.clash, leave=sent.leave)
    return _answer(request, found)


@endpoint(
    "POST",
    "/placements/{placement_id}/publish",
    tag=TAG,
    summary="Publish a placement",
    description="The cohort's other placement is published no more. Refused with 409 when anybody "
    "got another bed since the version given.",
    body=shapes.SeenVersion,
    role=Role.ADMINISTRATOR,
)
def publish_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Publish a placement to its students."""
    found = find_placement(request, placement_id)
    version = read_body(request, shapes.SeenVersion).version
    placement_publish(user=request.user, placement=found, version=version)
    return _answer(request, found)


@endpoint(
    "POST",
    "/placements/{placement_id}/unpublish",
    tag=TAG,
    summary="Withdraw a publication",
    description="The rooms stay as a draft. Refused with 409 unless people is the number of "
    "students who have a published bed.",
    body=shapes.SeenPeople,
    role=Role.ADMINISTRATOR,
)
def unpublish_placement(request: Request, placement_id: UUID) -> shapes.Placement:
    """Withdraw a publication, after the number of published beds is confirmed."""
    found = find_placement(request, placement_id)
    people = read_body(request, shapes.SeenPeople).people
    placement_unpublish(user=request.user, placement=found, people=people)
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
        "exact": query.ids == "exact",
    }
    if query.by == "room":
        data, kind = rooms_export(**options, with_names=query.names)
    else:
        columns = [name.strip() for name in query.columns.split(",") if name.strip()]
        layout = LAYOUTS.get(query.shape or "plain")
        if layout is None:
            raise Problem(422, f"shape: expected one of {', '.join(LAYOUTS)}.")
        layout = layout_of_columns(columns) if columns else layout
        data, kind = roster_export(layout=layout, **options)
    response = HttpResponse(data, content_type=kind)
    return as_attachment(response, f"{plain_name(found.name)}.{file_format}")
