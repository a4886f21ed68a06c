"""Endpoints for checks, the report by hall, and the rosters that an organisation keeps."""

from typing import Literal
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase

from webapp.api.dispatch import page_of, read_body
from webapp.api.endpoints.placements import find_placement
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import reports as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.errors import HousingError
from webapp.housing.selectors.placements import PlacementRooms
from webapp.reports.exports import report_export, shaped_roster
from webapp.reports.models import PlacementCheck, RosterShape
from webapp.reports.selectors import HallReport, hall_reports
from webapp.reports.services import check_start, shape_remove, shape_save

TAG = "Reports"


@endpoint("GET", "/placements/{placement_id}/checks", tag=TAG, summary="Look at the checks")
def get_checks(request: Request, placement_id: UUID) -> shapes.Check:
    """Return uncertainty, vetoes, groups and drift; ``figures`` is empty until computed."""
    found = find_placement(request, placement_id)
    check = PlacementCheck.objects.filter(placement=found).first()
    return shapes.Check.of(check or PlacementCheck(placement=found))


@endpoint(
    "POST",
    "/placements/{placement_id}/checks",
    tag=TAG,
    summary="Work the checks out",
    description="Queues a job; watch it at /jobs/{job}.",
    status=202,
)
def start_checks(request: Request, placement_id: UUID) -> shapes.Check:
    """Queue the check of a placement's current rooms."""
    found = find_placement(request, placement_id)
    return shapes.Check.of(check_start(user=request.user, placement=found))


@endpoint("GET", "/placements/{placement_id}/report", tag=TAG, summary="Look at the report by hall")
def get_report(request: Request, placement_id: UUID) -> shapes.Report:
    """Return every hall with its sums; /rooms returns the residents of each room."""
    report = shapes.Report.of(_halls(request, placement_id)[1])
    if not request.user.is_staff_member:
        for hall in report.halls:
            hall.asked = hall.honoured = None
    return report


@endpoint(
    "GET",
    "/placements/{placement_id}/report/xlsx",
    tag=TAG,
    summary="Take the report by hall",
    description="A workbook of halls and rooms; leaves an audit line.",
    media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    changes=True,
)
def get_report_file(request: Request, placement_id: UUID) -> HttpResponseBase:
    """Send the report as a workbook."""
    found, halls = _halls(request, placement_id)
    data, kind = report_export(user=request.user, placement=found, halls=halls)
    name = f"{plain_name(found.name)}-halls.xlsx"
    return as_attachment(HttpResponse(data, content_type=kind), name)


def _halls(request: Request, placement_id: UUID) -> tuple:
    found = find_placement(request, placement_id)
    if not found.is_computed:
        raise HousingError(f"{found.name} has no rooms yet.")
    halls: list[HallReport] = hall_reports(PlacementRooms(found))
    return found, halls


@endpoint("GET", "/rosters", tag=TAG, summary="List kept rosters", query=Paging)
def list_rosters(request: Request) -> Page[shapes.Roster]:
    """Return the rosters that the organisation keeps, by name."""
    return page_of(request, owned_by(RosterShape, request.user), shapes.Roster)


@endpoint("POST", "/rosters", tag=TAG, summary="Keep a roster", body=shapes.NewRoster, status=201)
def keep_roster(request: Request) -> shapes.Roster:
    """Store the columns of a roster; an existing name is overwritten."""
    sent = read_body(request, shapes.NewRoster)
    shape = shape_save(
        user=request.user,
        name=sent.name,
        columns=[(entry.column, entry.heading) for entry in sent.columns],
        is_exact=sent.ids == "exact",
        dates=sent.dates,
    )
    return shapes.Roster.of(shape)


@endpoint("DELETE", "/rosters/{roster_id}", tag=TAG, summary="Forget a roster", status=204)
def forget_roster(request: Request, roster_id: UUID) -> None:
    """Delete a kept roster; downloaded files are not affected."""
    shape_remove(user=request.user, shape=get_owned_or_404(RosterShape, request.user, roster_id))


@endpoint(
    "GET",
    "/placements/{placement_id}/rosters/{roster_id}/{file_format}",
    tag=TAG,
    summary="Take a kept roster",
    description="With original ids; leaves an audit line.",
    media_type="text/csv",
    changes=True,
)
def get_kept_roster(
    request: Request, placement_id: UUID, roster_id: UUID, file_format: Literal["csv", "xlsx"]
) -> HttpResponseBase:
    """Send a roster by student with the columns of a kept roster."""
    found = find_placement(request, placement_id)
    shape = get_owned_or_404(RosterShape, request.user, roster_id)
    if file_format not in ("csv", "xlsx"):
        raise Http404("There is no such format.")
    data, kind = shaped_roster(
        user=request.user, placement=found, shape=shape, file_format=file_format
    )
    name = f"{plain_name(found.name)}-{plain_name(shape.name)}.{file_format}"
    return as_attachment(HttpResponse(data, content_type=kind), name)
