"""Checks of a placement, its report by hall, and rosters in stored shapes."""

from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.files.downloads import download
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.views.placements import find_placement
from webapp.reports.exports import report_export, shaped_roster
from webapp.reports.forms import RosterForm
from webapp.reports.models import RosterShape
from webapp.reports.selectors import checks_context, hall_reports
from webapp.reports.services import check_start, shape_remove, shape_save


@require_safe
@viewer_required
def checks(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the uncertainty, vetoes, groups or drift."""
    found = find_placement(request, uuid)
    return render(request, "reports/checks.html", checks_context(found, request.GET))


@require_POST
@staff_required
def start(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Start the checks."""
    found = find_placement(request, uuid)
    attempt(request, lambda: check_start(user=request.user, placement=found))
    return redirect("reports:checks", found.pk)


@require_safe
@viewer_required
def report(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the report by hall, ready to be printed."""
    found = find_placement(request, uuid)
    rooms = PlacementRooms(found) if found.is_computed else None
    context = {
        "placement": found,
        "rooms": rooms,
        "halls": hall_reports(rooms) if rooms else [],
    }
    return render(request, "reports/report.html", context)


@require_safe
@staff_required
def report_file(request: SignedInRequest, uuid: str) -> HttpResponseBase:
    """Download the report by hall as a workbook; an audit line records who did."""
    found = find_placement(request, uuid)
    halls = hall_reports(PlacementRooms(found))
    data, kind = report_export(user=request.user, placement=found, halls=halls)
    return as_attachment(
        HttpResponse(data, content_type=kind), f"{plain_name(found.name)}-halls.xlsx"
    )


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rosters(request: SignedInRequest, uuid: str) -> HttpResponse:
    """List the stored rosters of the organisation, and store another."""
    found = find_placement(request, uuid)
    form = RosterForm.typed(request)

    def save(*, name: str, ids: str, **_: Any) -> None:
        is_exact = ids == "exact"
        shape = shape_save(user=request.user, name=name, columns=form.columns, is_exact=is_exact)
        toast(request, f"{shape.name} is kept for every placement.")

    if form.submit(request, save):
        return redirect("reports:rosters", found.pk)
    shapes = owned_by(RosterShape, request.user)
    context = {"placement": found, "shapes": shapes, "form": form}
    return render(request, "reports/rosters.html", context, status=form.status)


@require_safe
@staff_required
def roster_file(
    request: SignedInRequest, uuid: str, shape: str, file_format: str
) -> HttpResponseBase:
    """Download a roster in a stored shape; an audit line records who did."""
    found, kept = find_placement(request, uuid), get_owned_or_404(RosterShape, request.user, shape)
    if file_format not in ("csv", "xlsx"):
        raise Http404("There is no such format.")
    return download(
        request,
        lambda: shaped_roster(
            user=request.user, placement=found, shape=kept, file_format=file_format
        ),
        f"{plain_name(found.name)}-{plain_name(kept.name)}.{file_format}",
        back=reverse("reports:rosters", args=[found.pk]),
    )


@require_POST
@staff_required
def remove(request: SignedInRequest, uuid: str, shape: str) -> HttpResponse:
    """Delete a stored roster."""
    found, kept = find_placement(request, uuid), get_owned_or_404(RosterShape, request.user, shape)
    shape_remove(user=request.user, shape=kept)
    toast(request, f"{kept.name} is not kept any more.")
    return redirect("reports:rosters", found.pk)
