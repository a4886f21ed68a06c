"""Building lists: uploading, checking and editing rooms."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from engine.tabular.file_kinds import FileKind
from engine.tabular.layout import find_layout
from engine.tabular.rooms import Column
from engine.tabular.source import MAX_COLUMNS, MAX_FILE_BYTES, MAX_ROWS
from engine.tabular.table import build_table
from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.views.drafts import moved
from webapp.cohorts.wrong_slots import wrong_slot
from webapp.common.decorators import administrator_required, staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.form_pages import Trail, remove_page, rename_page
from webapp.common.formats import counted
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import page_at
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.common.toasts import toast
from webapp.housing.building_forms import (
    ColumnUseForm,
    ImportedNameForm,
    ListNameForm,
    RoomForm,
    StateForm,
)
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingDraft, BuildingList, Room, RoomState
from webapp.housing.selectors.buildings import (
    building_listing,
    floors_of,
    halls_of,
    needs_of,
    people_of_drafts,
    rooms_matching,
)
from webapp.housing.services.buildings import (
    building_draft_assign,
    building_draft_create,
    building_draft_discard,
    building_draft_file,
    building_draft_import,
    building_draft_source,
    building_draft_to,
    building_list_create,
    building_list_remove,
    building_list_rename,
    room_remove,
    room_save,
    rooms_set_state,
)
from webapp.housing.views.questions import Question, ask
from webapp.tabular.reading import refusals
from webapp.translation.lazy import gettext_lazy

USES = {
    Column.HALL: gettext_lazy("Hall"),
    Column.FLOOR: gettext_lazy("Floor"),
    Column.ROOM: gettext_lazy("Room"),
    Column.SUITE: gettext_lazy("Suite or apartment of the room"),
    Column.BED: gettext_lazy("Bed"),
    Column.CAPACITY: gettext_lazy("Beds in the room"),
    Column.MAX_CAPACITY: gettext_lazy("Beds with extra beds"),
    Column.DESIGNATION: gettext_lazy("Who may live there"),
    Column.NEED: gettext_lazy("A need it meets (yes or no)"),
    Column.NEEDS: gettext_lazy("Needs it meets (a list)"),
    Column.STATE: gettext_lazy("Open, held back or offline"),
    Column.NOTE: gettext_lazy("Note"),
    Column.IGNORE: gettext_lazy("Leave out"),
}

PAGE_SIZE = 60
SHOWN = 12  # rows and problems of a draft on a page
LIMITS = {
    "megabytes": MAX_FILE_BYTES // 1024**2,
    "rows": MAX_ROWS,
    "columns": MAX_COLUMNS,
    "days": BuildingDraft.KEPT_DAYS,
}


@require_safe
@viewer_required
def building_lists(request: SignedInRequest) -> HttpResponse:
    """List the building lists, last changed first."""
    context = {
        "listing": building_listing(request.user, request.GET),
        "drafts": owned_by(BuildingDraft, request.user).defer("rows"),
    }
    return render(request, "housing/building_lists.html", context)


@require_http_methods(["GET", "POST"])
@staff_required
def upload(request: SignedInRequest) -> HttpResponse:
    """Accept a list of rooms as a file, or a name for an empty list."""
    error, form = "", ListNameForm.typed(request)
    file = request.FILES.get("file")
    if file is None and form.sent:
        made: list[BuildingList] = []
        if form.submit(
            request, lambda name: made.append(building_list_create(user=request.user, name=name))
        ):
            return redirect("housing:buildings", made[0].pk)
    elif request.method == "POST":
        form = ListNameForm()
        try:
            if file is None:
                raise HousingError(_("Choose a CSV or XLSX file first."))
            draft = building_draft_create(
                user=request.user, filename=file.name or "", size=file.size or 0, read=file.read
            )
            return redirect("housing:building-draft", draft.pk)
        except Refusal as problem:
            error = str(problem)
    context = {"error": error, "form": form, "limits": LIMITS}
    status = 422 if error else form.status
    return render(request, "housing/buildings_upload.html", context, status=status)


@require_http_methods(["GET", "POST"])
@staff_required
def draft(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the content of the file; a POST sets the role of a column."""
    found = get_owned_or_404(BuildingDraft, request.user, uuid)
    if request.method == "POST":
        ColumnUseForm.typed(request).press(
            request, lambda column, use: building_draft_assign(draft=found, column=column, role=use)
        )
        return redirect("housing:building-draft", found.pk)
    return _show_draft(request, found)


def _show_draft(
    request: SignedInRequest, found: BuildingDraft, form: ImportedNameForm | None = None
) -> HttpResponse:
    """Return the page of a draft; ``form`` is a refused name."""
    name = found.filename.rsplit(".", 1)[0].replace("_", " ")[:120]
    form = form or ImportedNameForm(initial={"name": name})
    rooms = building_draft_file(found)
    with refusals():
        source = building_draft_source(found)
        table = build_table(source, find_layout(source))
    context = {
        "draft": found,
        "slot": wrong_slot(request.user, table, FileKind.ROOMS),
        "move_url": reverse("housing:building-draft-move", args=[found.pk]),
        "file": rooms,
        "uses": [(role.value, USES[role]) for role in Column],
        "columns": [
            (index, name, role, _examples(found, index))
            for index, (name, role) in enumerate(zip(found.header, found.roles, strict=True))
        ],
        "sample": rooms.rooms[:SHOWN],
        "problems": rooms.problems[:SHOWN],
        "n_more_problems": max(0, len(rooms.problems) - SHOWN),
        "form": form,
    }
    return render(request, "housing/building_draft.html", context, status=form.status)


def _examples(found: BuildingDraft, index: int) -> list[str]:
    cells = dict.fromkeys(row[index] for row in found.rows[:200] if row[index])
    return [cell[:30] for cell in list(cells)[:4]]


@require_POST
@staff_required
def draft_moved(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Import an upload as the kind of file that it seems to be; its first draft is discarded."""
    found = get_owned_or_404(BuildingDraft, request.user, uuid)
    return redirect(
        moved(
            request,
            lambda to, cohort: building_draft_to(
                user=request.user, draft=found, to=to, cohort=cohort
            ),
            reverse("housing:building-draft", args=[found.pk]),
        )
    )


@require_POST
@staff_required
def draft_confirm(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Import all rooms or none."""
    found = get_owned_or_404(BuildingDraft, request.user, uuid)
    form = ImportedNameForm.typed(request)
    made_of: list[BuildingList] = []
    if not form.submit(
        request,
        lambda name: made_of.append(
            building_draft_import(user=request.user, draft=found, name=name)
        ),
    ):
        return _show_draft(request, found, form)
    (made,) = made_of
    toast(
        request,
        ngettext(
            "%(count)s room imported.", "%(count)s rooms imported.", count := made.rooms.count()
        )
        % {"count": f"{count:,}"},
    )
    return redirect("housing:buildings", made.pk)


@require_POST
@staff_required
def draft_discard(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Delete an upload."""
    found = get_owned_or_404(BuildingDraft, request.user, uuid)
    building_draft_discard(user=request.user, draft=found)
    toast(
        request,
        _("%(filename)s was discarded. Nothing was imported.") % {"filename": found.filename},
    )
    return redirect("housing:building-lists")


@require_safe
@viewer_required
def buildings(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the halls and rooms of one list."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    halls = halls_of(found)
    hall = request.GET.get("hall", "")
    hall = hall if hall in {entry.name for entry in halls} else ""
    query, floor = request.GET.get("q", "").strip()[:40], request.GET.get("floor", "")[:20]
    floors = floors_of(found, hall)
    rooms = rooms_matching(found, hall, query, floor if floor in floors else "")
    context = {
        "buildings": found,
        "halls": halls,
        "hall": hall,
        "q": query,
        "floor": floor,
        "floors": floors,
        "n_matching": rooms.count(),
        "page": page_at(rooms, request.GET.get("page"), PAGE_SIZE),
        "n_rooms": sum(entry.rooms for entry in halls),
        "n_beds": sum(entry.beds for entry in halls),
        "n_closed": sum(entry.closed for entry in halls),
        "n_extra": sum(entry.extra for entry in halls),
        "states": RoomState.choices,
        "needs": needs_of(found),
        "placements": found.placements.select_related("cohort"),
    }
    return render(request, "housing/buildings.html", context)


_STATES = {
    RoomState.OPEN: (gettext_lazy("Open {rooms}?"), gettext_lazy("Open {rooms}")),
    RoomState.KEPT: (gettext_lazy("Hold {rooms} back?"), gettext_lazy("Hold {rooms} back")),
    RoomState.OFFLINE: (
        gettext_lazy("Take {rooms} offline?"),
        gettext_lazy("Take {rooms} offline"),
    ),
}


@require_POST
@staff_required
def state(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Open, hold back or take offline all matching rooms, once the numbers are confirmed."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    form = StateForm.typed(request)
    address = reverse("housing:buildings", args=[found.pk])
    questions: list[Question] = []

    def act(*, state: RoomState, confirmed: str, **shown: str) -> None:
        rooms = list(rooms_matching(found, shown["hall"], shown["q"], shown["floor"]))
        if not rooms:
            raise HousingError(_("No room matches."))
        question = _state_question(found, rooms, state, shown)
        if confirmed != question.fields["confirmed"]:
            questions.append(question)
            return
        keys = [room.pk for room in rooms]
        words = rooms_set_state(user=request.user, buildings=found, rooms=keys, state=state)
        toast(request, words)

    form.press(request, act)
    if questions:
        return ask(request, questions[0])
    shown = {name: form.cleaned_data.get(name) for name in ("hall", "floor", "q")}
    return redirect(f"{address}?{urlencode({name: one for name, one in shown.items() if one})}")


def _state_question(
    found: BuildingList, rooms: Sequence[Room], state: RoomState, shown: Mapping[str, str]
) -> Question:
    title, button = _STATES[state]
    people = 0 if state is RoomState.OPEN else people_of_drafts(rooms)
    count = counted(len(rooms), "room")
    needing = ngettext(
        "%(count)s student of drafts needs another room then.",
        "%(count)s students of drafts need another room then.",
        people,
    ) % {"count": f"{people:,}"}
    sentences = [needing if people else _("No student of a draft lives there.")]
    return Question(
        title=title.format(rooms=count),
        sentences=[*sentences, _("A room in which somebody has a published bed stops this.")],
        button=button.format(rooms=count),
        address=reverse("housing:buildings-state", args=[found.pk]),
        fields={**shown, "state": state.value, "confirmed": f"{len(rooms)} {people}"},
        is_danger=people > 0,
        back=f"{reverse('housing:buildings', args=[found.pk])}?{urlencode(shown)}",
        trail=_trail(found),
    )


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def room(request: SignedInRequest, uuid: str, room_id: int) -> HttpResponse:
    """Change one room; room 0 is a new one."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    one = get_or_404(found.rooms.all(), room_id) if room_id else None
    label = one.label if one else ""
    form = RoomForm.typed(request, initial=RoomForm.values_of(one))

    def save(**values: Any) -> None:
        saved = room_save(user=request.user, buildings=found, room=one, values=values)
        toast(
            request,
            (
                _("%(room)s was saved. %(note)s") % {"room": saved.room.label, "note": saved.note}
            ).strip(),
        )

    if form.submit(request, save):
        return redirect("housing:buildings", found.pk)
    context = {"buildings": found, "room": one, "label": label, "form": form}
    return render(request, "housing/room.html", context, status=form.status)


@require_POST
@staff_required
def remove_room(request: SignedInRequest, uuid: str, room_id: int) -> HttpResponse:
    """Remove one room from its list."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    one = get_or_404(found.rooms.all(), room_id)
    label = one.label
    try:
        note = room_remove(user=request.user, room=one)
        toast(
            request, (_("%(label)s was removed. %(note)s") % {"label": label, "note": note}).strip()
        )
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect("housing:buildings", found.pk)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rename(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Rename a list."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    act = partial(building_list_rename, user=request.user, buildings=found)
    return rename_page(request, "building list", act, _trail(found))


def _trail(found: BuildingList) -> Trail:
    own = reverse("housing:buildings", args=[found.pk])
    return [(_("Buildings"), reverse("housing:building-lists")), (found.name, own)]


@require_http_methods(["GET", "POST"])
@administrator_required
def remove(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove a list, if its name was typed."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    act = partial(building_list_remove, user=request.user, buildings=found)
    words = _("This removes the list with all its rooms.")
    return remove_page(request, _("Remove the building list"), act, _trail(found), words=words)
