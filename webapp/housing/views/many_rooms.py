"""Changing many rooms at once: the form, the question with the numbers, and undo."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.formats import counted
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_or_404, get_owned_or_404
from webapp.common.toasts import toast
from webapp.housing.building_forms import ManyRoomsForm
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Room, RoomState
from webapp.housing.selectors.buildings import (
    RoomsWanted,
    floors_of,
    halls_of,
    latest_changes,
    people_of_drafts,
    rooms_wanted,
)
from webapp.housing.services.closing import students_to_move_out
from webapp.housing.services.many_rooms import (
    WORDS,
    rooms_as_changed,
    rooms_change,
    rooms_change_undo,
)
from webapp.housing.views.questions import Question, ask


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def edit(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change the ticked rooms, or all that match, once the numbers are confirmed."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    wanted = RoomsWanted.of(request.GET)
    rooms = list(rooms_wanted(found, wanted))
    form = ManyRoomsForm.typed(request)
    address = f"{reverse('housing:rooms-edit', args=[found.pk])}?{urlencode(wanted.parameters)}"
    questions: list[Question] = []

    def change(**_: Any) -> None:
        chosen = _chosen(rooms, form.cleaned_data["rooms"])
        question = _question(form, found, chosen, address)
        if form.cleaned_data["confirmed"] != question.fields["confirmed"]:
            questions.append(question)
            return
        keys = [room.pk for room in chosen]
        made, note = rooms_change(
            user=request.user, buildings=found, rooms=keys, values=form.values
        )
        undo = reverse("housing:rooms-undo", args=[found.pk, made.pk])
        toast(request, f"{made.sentence} {note}".strip(), undo_url=undo)

    if form.submit(request, change):
        return ask(request, questions[0]) if questions else redirect(address)
    context = {
        "buildings": found,
        "form": form,
        "rooms": rooms,
        "matching": ngettext("%(count)s room matches", "%(count)s rooms match", len(rooms))
        % {"count": f"{len(rooms):,}"},
        "ticked": set(form["rooms"].value() or []),
        "wanted": wanted,
        "halls": halls_of(found),
        "floors": floors_of(found, wanted.hall),
        "kinds": sorted(set(found.rooms.values_list("capacity", flat=True))),
        "designations": sorted(set(found.rooms.values_list("designation", flat=True)) - {""}),
        "states": RoomState.choices,
        "changes": latest_changes(found),
    }
    return render(request, "housing/rooms_edit.html", context, status=form.status)


def _chosen(rooms: Sequence[Room], ticked: Sequence[int]) -> list[Room]:
    """Return the ticked rooms, or all; raise HousingError if there are none."""
    chosen = [room for room in rooms if not ticked or room.pk in ticked]
    if not chosen:
        raise HousingError(_("No room matches. Choose other rooms."))
    return chosen


def _question(
    form: ManyRoomsForm,
    found: BuildingList,
    rooms: Sequence[Room],
    address: str,
) -> Question:
    """Return the question that names how many rooms and people a change concerns."""
    values = form.values
    fresh = list(Room.objects.filter(pk__in=[room.pk for room in rooms]))
    changed = rooms_as_changed(fresh, values)
    if not changed:
        raise HousingError(_("These rooms have these values already. Nothing was changed."))
    leaving = students_to_move_out(changed)
    people = sum(len(who) for placement, who in leaving.items() if not placement.is_published)
    count = counted(len(changed), "room")
    needing = ngettext(
        "%(count)s student of drafts needs another room then.",
        "%(count)s students of drafts need another room then.",
        people,
    ) % {"count": f"{people:,}"}
    living = counted(people_of_drafts(changed), "student")
    new = "; ".join(
        f"{WORDS[name]}: {_in_words(name, values[name])}" for name in WORDS if name in values
    )
    sentences = [
        _("New values: %(new)s.") % {"new": new},
        needing
        if people
        else _("Drafts have %(living)s in these rooms, and all of them may stay.")
        % {"living": living},
        _("A student with a published bed who could not live there any more stops this."),
    ]
    if len(changed) < len(rooms):
        others = len(rooms) - len(changed)
        sentences.append(
            ngettext(
                "%(count)s room has these values already.",
                "%(count)s rooms have these values already.",
                others,
            )
            % {"count": f"{others:,}"}
        )
    return Question(
        title=_("Change %(rooms)s?") % {"rooms": count},
        sentences=sentences,
        button=_("Change %(rooms)s") % {"rooms": count},
        address=address,
        fields={**form.sent, "confirmed": f"{len(changed)} {people}"},
        is_danger=people > 0,
        back=address,
        trail=[
            (_("Buildings"), reverse("housing:building-lists")),
            (found.name, reverse("housing:buildings", args=[found.pk])),
        ],
    )


def _in_words(name: str, value: Any) -> str:
    if name == "state":
        return str(RoomState(value).label).lower()
    if name == "meets":
        return ", ".join(value) or "none"
    return str(value or "none")


@require_POST
@staff_required
def undo(request: SignedInRequest, uuid: str, change_id: int) -> HttpResponse:
    """Undo one change of many rooms."""
    found = get_owned_or_404(BuildingList, request.user, uuid)
    change = get_or_404(found.changes.all(), change_id)
    try:
        toast(request, rooms_change_undo(user=request.user, change=change))
    except HousingError as problem:
        toast(request, str(problem), error=True)
    return redirect("housing:rooms-edit", found.pk)
