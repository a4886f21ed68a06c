"""A student's answer to an offered bed: a page that asks, and the act."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from webapp.housing.errors import HousingError
from webapp.residents import links
from webapp.residents.models import ResidentPage
from webapp.residents.selectors import offer_shown, organisation_of
from webapp.residents.views.students import visitor_only
from webapp.surveys.views.student_pages import for_students, menu, message
from webapp.waiting.services import BedLostError, offer_accept, offer_decline, offer_void


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
