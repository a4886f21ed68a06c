"""Building lists: uploading, checking and editing rooms."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.cohorts.tables.table import MAX_COLUMNS, MAX_FILE_BYTES, MAX_ROWS
from webapp.common.decorators import administrator_required, staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.listing import page_at
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingDraft, BuildingList, RoomState
from webapp.housing.room_file import LABELS
from webapp.housing.selectors.buildings import (
    building_listing,
    halls_of,
    needs_of,
    rooms_matching,
)
from webapp.housing.services.buildings import (
    building_draft_assign,
    building_draft_create,
    building_draft_discard,
    building_draft_file,
    building_draft_import,
    building_list_create,
    building_list_remove,
    building_list_rename,
    room_remove,
    room_save,
)

PAGE_SIZE = 60
SHOWN = 12  # rows and problems of a draft that a page shows
LIMITS = {
    "megabytes": MAX_FILE_BYTES // 1024**2,
    "rows": MAX_ROWS,
    "columns": MAX_COLUMNS,
    "days": BuildingDraft.KEPT_DAYS,
}


@require_GET
@viewer_required
def building_lists(request: HttpRequest) -> HttpResponse:
    """List the building lists, last changed first."""
    context = {
        "listing": building_listing(request.user, request.GET),
        "drafts": owned_by(BuildingDraft, request.user).defer("rows"),
    }
    return render(request, "housing/building_lists.html", context)


@require_http_methods(["GET", "POST"])
@staff_required
def upload(request: HttpRequest) -> HttpResponse:
    """Take a list of rooms as a file, or a name for an empty list."""
    error = ""
    if request.method == "POST":
        file = request.FILES.get("file")
        try:
            if file is None and "name" in request.POST:
                made = building_list_create(user=request.user, name=request.POST["name"])
                return redirect("housing:buildings", made.pk)
            if file is None:
                raise HousingError("Choose a CSV or XLSX file first.")
            draft = building_draft_create(
                user=request.user, filename=file.name, size=file.size, read=file.read
            )
            return redirect("housing:building-draft", draft.pk)
        except Refusal as problem:
            error = str(problem)
    context = {"error": error, "limits": LIMITS}
    return render(request, "housing/buildings_upload.html", context, status=422 if error else 200)


@require_http_methods(["GET", "POST"])
@staff_required
def draft(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show what the file says; a POST says what a column holds."""
    found = get_owned_or_404(BuildingDraft, request.user, uuid)
    if request.method == "POST":
        column = whole_number(request.POST.get("column", ""))
        role = request.POST.get("role", "")
        attempt(
            request,
            lambda: building_draft_assign(
                draft=found, column=-1 if column is None else column, role=role
            ),
        )
        return redirect("housing:building-draft", found.pk)
    rooms = building_draft_file(found)
    context = {
        "draft": found,
        "file": rooms,
        "roles": [(role.value, label) for role, label in LABELS.items()],
        "columns": [
            (index, name, role, _examples(found, index))
            for index, (name, role) in enumerate(zip(found.header, found.roles, strict=True))
        ],
        "sample": rooms.rooms[:SHOWN],
        "problems": rooms.problems[:SHOWN],
        "n_more_problems": max(0, len(rooms.problems) - SHOWN),
        "name": found.filename.rsplit(".", 1)[0].replace("_", " ")[:120],
    }
    return render(request, "housing/building_draft.html", context)


def _examples(found: BuildingDraft, index: int) -> list[str]:
    cells = dict.fromkeys(row[index] for row in found.rows[:200] if row[index])
    return [cell[:30] for cell in list(cells)[:4]]


@require_POST
@staff_required
def draft_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import all rooms or none."""
    found = get_owned_or_404(BuildingDraft, request.user, uuid)
    try:
        made = building_draft_import(
            user=request.user, draft=found, name=request.POST.get("name", "")
        )
    except HousingError as problem:
        toast(request, str(problem), error=True)
        return redirect("housing:building-draft", uuid)
    toast(request, f"{counted(made.rooms.count(), 'room')} imported.")
    return redirect("housing:buildings", made.pk)


@require_POST
@staff_required
def draft_discard(request: HttpRequest, uuid: str) -> HttpResponse:
    """Forget an upload."""
    found = get_owned_or_404(BuildingDraft, request.user, uuid)
    building_draft_discard(user=request.user, draft=found)
    toast(request, f"{found.filename} was discarded. Nothing was imported.")
    return redirect("housing:building-lists")


@require_GET
@viewer_required
def buildings(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show the halls and rooms of one list."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    halls = halls_of(found)
    hall = request.GET.get("hall", "")
    hall = hall if hall in {entry.name for entry in halls} else ""
    query = request.GET.get("q", "").strip()[:40]
    rooms = rooms_matching(found, hall, query)
    context = {
        "buildings": found,
        "halls": halls,
        "hall": hall,
        "q": query,
        "page": page_at(rooms, request.GET.get("page"), PAGE_SIZE),
        "n_rooms": sum(entry.rooms for entry in halls),
        "n_beds": sum(entry.beds for entry in halls),
        "n_closed": sum(entry.closed for entry in halls),
        "states": RoomState.choices,
        "needs": needs_of(found),
        "placements": found.placements.select_related("cohort"),
    }
    return render(request, "housing/buildings.html", context)


@require_http_methods(["GET", "POST"])
@staff_required
def room(request: HttpRequest, uuid: str, room_id: int) -> HttpResponse:
    """Change one room; room 0 is a new one."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    one = get_or_404(found.rooms.all(), room_id) if room_id else None
    error, sent = "", request.POST
    if request.method == "POST":
        values = {
            name: " ".join(sent.get(name, "").split())
            for name in ("hall", "floor", "name", "designation", "state", "note")
        }
        values["capacity"] = whole_number(sent.get("capacity", ""))
        needs = [" ".join(need.split())[:80] for need in sent.get("meets", "").split(",")]
        values["meets"] = list(dict.fromkeys(need for need in needs if need))[:20]
        try:
            saved = room_save(user=request.user, buildings=found, room=one, values=values)
            toast(request, f"{saved.label} was saved.")
            return redirect("housing:buildings", found.pk)
        except HousingError as problem:
            error = str(problem)
    context = {
        "buildings": found,
        "room": one,
        "error": error,
        "states": RoomState.choices,
        "sent": sent if error else None,
    }
    return render(request, "housing/room.html", context, status=422 if error else 200)


@require_POST
@staff_required
def remove_room(request: HttpRequest, uuid: str, room_id: int) -> HttpResponse:
    """Take one room out of its list."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    one = get_or_404(found.rooms.all(), room_id)
    attempt(request, lambda: room_remove(user=request.user, room=one), f"{one} was removed.")
    return redirect("housing:buildings", found.pk)


@require_POST
@staff_required
def rename(request: HttpRequest, uuid: str) -> HttpResponse:
    """Give a list another name."""
    found, name = get_owned_or_404(BuildingList, request.user, uuid), request.POST.get("name", "")
    attempt(
        request,
        lambda: building_list_rename(user=request.user, buildings=found, name=name),
        "The building list was renamed.",
    )
    return redirect("housing:buildings", found.pk)


@require_POST
@administrator_required
def remove(request: HttpRequest, uuid: str) -> HttpResponse:
    """Remove a list, when its name was typed."""
    found, name = get_owned_or_404(BuildingList, request.user, uuid), request.POST.get("name", "")
    is_removed = attempt(
        request,
        lambda: building_list_remove(user=request.user, buildings=found, typed_name=name),
        f"{found.name} was removed.",
    )
    return redirect("housing:building-lists") if is_removed else redirect("housing:buildings", uuid)
