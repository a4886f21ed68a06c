"""Floor lists: who lives in which bed, by hall and floor, to print and as a file."""

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.naming import names_on_page
from webapp.common.decorators import staff_required, viewer_required
from webapp.files.downloads import download
from webapp.files.file_headers import plain_name
from webapp.housing.exports import floors_export
from webapp.housing.selectors.pages import shown_hall
from webapp.housing.selectors.placements import PlacementRooms, floors_of
from webapp.housing.views.placements import find_placement


@require_safe
@viewer_required
def floors(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the beds of every floor, ready to be printed; names for those who see them."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    rooms = PlacementRooms(found) if found.is_computed and not found.is_pairs else None
    lists = floors_of(rooms.cards(), "", is_whole=True) if rooms else []
    hall = shown_hall(rooms, request.GET.get("hall")) if rooms else ""
    context = {
        "placement": found,
        "halls": list(dict.fromkeys(floor.hall for floor in lists)),
        "hall": hall,
        "floors": [floor for floor in lists if hall in ("", floor.hall)],
    }
    return render(request, "housing/floors.html", context)


@require_safe
@staff_required
def floors_file(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download the floor lists, one line for each bed; an audit line records who did."""
    found = find_placement(request, uuid)
    return download(
        request,
        lambda: floors_export(user=request.user, placement=found, file_format=file_format),
        f"{plain_name(found.name)}-floors.{file_format}",
        back=reverse("housing:placement-floors", args=[found.pk]),
    )
