"""A student's answer to an offered bed: a page that asks, and the act."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from webapp.housing.errors import HousingError
from webapp.residents import links
from webapp.residents.models import ResidentPage
from webapp.residents.selectors import offer_shown, organisation_of
from webapp.residents.views.students import visitor_only
from webapp.surveys.views.student_pages import for_students, menu, message
from webapp.waiting.forms import MoveForm
from webapp.waiting.selectors import movable_place
from webapp.waiting.services import (
    BedLostError,
    move_wish_remove,
    move_wish_save,
    offer_accept,
    offer_decline,
    offer_void,
)


@require_http_methods(["GET", "POST"])
@for_students
@visitor_only
def accept(request: HttpRequest, page: ResidentPage, offer_id: int) -> HttpResponse:
    """Ask whether the student takes the bed, and give it."""
    return _answer(request, page, offer_id, is_yes=True)


@require_http_methods(["GET", "POST"])
@for_students
@visitor_only
def decline(request: HttpRequest, page: ResidentPage, offer_id: int) -> HttpResponse:
    """Ask whether the student declines the bed, and free it for the next."""
    return _answer(request, page, offer_id, is_yes=False)


@require_http_methods(["GET", "POST"])
@for_students
@visitor_only
def move(request: HttpRequest, page: ResidentPage) -> HttpResponse:
    """Wait for another bed, or change what kind of bed is waited for."""
    place = movable_place(page.student)
    if place is None:
        raise Http404
    wish = place.placement.move_wishes.waiting().filter(student=page.student).first()
    initial = {"hall": wish.hall, "beds": wish.beds or ""} if wish is not None else {}
    form = MoveForm.typed(request, placement=place.placement, initial=initial)

    def act(*, hall: str, beds: int) -> None:
        move_wish_save(
            user=None, placement=place.placement, number=place.number, hall=hall, beds=beds
        )

    if form.submit(request, act):
        return redirect(f"{reverse('residents:home', args=[links.handle_of(page)])}#another-bed")
    context = {
        "organisation": organisation_of(page),
        "handle": links.handle_of(page),
        "place": place,
        "wish": wish,
        "form": form,
        **menu(None),
    }
    return render(request, "waiting/student/move.html", context, status=form.status)


@require_POST
@for_students
@visitor_only
def move_stop(request: HttpRequest, page: ResidentPage) -> HttpResponse:
    """Stop waiting for another bed."""
    place = movable_place(page.student)
    if place is None:
        raise Http404
    back = reverse("residents:home", args=[links.handle_of(page)])
    try:
        move_wish_remove(user=None, placement=place.placement, number=place.number)
    except HousingError as error:
        return message(request, str(error), status=409, back=back)
    return redirect(f"{back}#another-bed")


def _answer(
    request: HttpRequest, page: ResidentPage, offer_id: int, *, is_yes: bool
) -> HttpResponse:
    handle = links.handle_of(page)
    back = reverse("residents:home", args=[handle])
    shown = offer_shown(page.student, offer_id)
    if shown is None:
        raise Http404
    if not shown.offer.is_open or shown.offer.is_late:
        sentence = _("This offer ended. Nothing was changed.")
        return message(request, sentence, status=409, back=back)
    if request.method != "POST":
        context = {
            "organisation": organisation_of(page),
            "handle": handle,
            "shown": shown,
            "is_yes": is_yes,
            "old": movable_place(page.student, shown.offer.placement_id),
            **menu(None),
        }
        return render(request, "residents/student/offer.html", context)
    act = offer_accept if is_yes else offer_decline
    try:
        act(offer=shown.offer)
    except BedLostError as lost:
        offer_void(offer=shown.offer, why=str(lost))
        sentence = _("This bed cannot be given to you any more. Write to your housing office.")
        return message(request, sentence, status=409, back=back)
    except HousingError:
        sentence = _("This offer ended. Nothing was changed.")
        return message(request, sentence, status=409, back=back)
    return redirect(back)
