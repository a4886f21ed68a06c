"""Pages on which a student chooses a room, below the personal page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from webapp.residents.links import handle_of
from webapp.residents.models import ResidentPage
from webapp.residents.selectors import organisation_of
from webapp.residents.views.students import visitor_only
from webapp.room_choice.forms import ChooseForm
from webapp.room_choice.selectors.rooms import offer_list, offers_of
from webapp.room_choice.selectors.turns import StudentTurn, turn_of
from webapp.room_choice.services.choosing import room_choose
from webapp.surveys.views.student_pages import for_students, menu, message


def _without_slot(request: HttpRequest, page: ResidentPage) -> HttpResponse:
    home = reverse("residents:home", args=[handle_of(page)])
    return message(request, _("You have no time to choose a room now."), status=404, back=home)


def _show(
    request: HttpRequest, page: ResidentPage, turn: StudentTurn, *, error: str = ""
) -> HttpResponse:
    """Return the page of a turn; with an error, its status is 409."""
    context = {
        "organisation": organisation_of(page),
        "handle": handle_of(page),
        "turn": turn,
        "offers": offer_list(turn, request.GET) if turn.is_open else None,
        "error": error,
        **menu(None),
    }
    status = 409 if error else 200
    return render(request, "room_choice/student/rooms.html", context, status=status)


@require_safe
@for_students
@visitor_only
def rooms(request: HttpRequest, page: ResidentPage) -> HttpResponse:
    """Show the own time slot and group, and during the slot the free rooms."""
    turn = turn_of(page.student)
    return _show(request, page, turn) if turn is not None else _without_slot(request, page)


@require_http_methods(["GET", "POST"])
@for_students
@visitor_only
def choose(request: HttpRequest, page: ResidentPage, room_id: int) -> HttpResponse:
    """Ask whether the group takes a room; by a POST, choose it."""
    turn = turn_of(page.student)
    if turn is None:
        return _without_slot(request, page)
    if request.method == "POST":
        form = ChooseForm.typed(request)

        def act(*, seen: str) -> None:
            room_choose(turn=turn, room_id=room_id, seen=seen)

        if form.submit(request, act):
            return redirect(reverse("room_choice:rooms", args=[handle_of(page)]))
        fresh = turn_of(page.student)
        if fresh is None:
            return _without_slot(request, page)
        return _show(request, page, fresh, error=form.first_error)
    if not turn.is_open:
        return redirect(reverse("room_choice:rooms", args=[handle_of(page)]))
    offer = next(iter(offers_of(turn, room_id)), None)
    if offer is None:
        words = _("This room is not offered any more. These rooms are free now.")
        return _show(request, page, turn, error=words)
    context = {
        "organisation": organisation_of(page),
        "handle": handle_of(page),
        "turn": turn,
        "offer": offer,
        **menu(None),
    }
    return render(request, "room_choice/student/choose.html", context)
