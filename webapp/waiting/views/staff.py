"""Pages of staff: the waiting list in order, free beds, and offers with their deadlines."""

from functools import partial

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.naming import names_on_page
from webapp.common.decorators import staff_required
from webapp.common.form_pages import FormPage
from webapp.common.forms import TypedForm
from webapp.common.kept_forms import keeps_typed
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement, WaitingOffer
from webapp.housing.selectors.waiting import waiting_list_of
from webapp.housing.services.waiting import turn_change
from webapp.housing.typed_students import students_typed
from webapp.housing.views.placements import find_placement
from webapp.housing.views.questions import trail_of
from webapp.waiting.exports import waiting_export
from webapp.waiting.forms import (
    AnswerForm,
    ExtendForm,
    OfferForm,
    StaffMoveForm,
    TurnForm,
    WaitingListForm,
    WithdrawForm,
)
from webapp.waiting.selectors import next_student, offers_of, waiting_context
from webapp.waiting.services import (
    BedLostError,
    move_wish_remove,
    move_wish_save,
    offer_accept,
    offer_decline,
    offer_extend,
    offer_make,
    offer_void,
    offer_withdraw,
    reachable_words,
    waiting_list_set,
)

_RULE_FIELDS = ("rule", "column", "values", "seed", "hours", "is_automatic", "skips_unreachable")


@require_safe
@staff_required
def waiting_list(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the students without a bed in order, the free beds, and the offers."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    query = request.GET.get("q", "").strip()[:80]
    context = {"placement": found, **waiting_context(found, query)}
    return render(request, "waiting/list.html", context)


def _trail(placement: Placement) -> list[tuple[str, str]]:
    return [
        *trail_of(placement),
        (gettext("Waiting list"), reverse("waiting:list", args=[placement.pk])),
    ]


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def order(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Choose the rule of the order, and how beds are offered."""
    found = find_placement(request, uuid)
    listed = waiting_list_of(found)
    initial = {name: getattr(listed, name) for name in _RULE_FIELDS}
    form = WaitingListForm.typed(request, placement=found, initial=initial)
    if form.submit(request, partial(waiting_list_set, user=request.user, placement=found)):
        toast(request, gettext("The order was saved."))
        return redirect("waiting:list", found.pk)
    words = gettext("Students read their place in line and the rule on their page.")
    return FormPage(
        gettext("Order and offers"), gettext("Save the order"), _trail(found), words
    ).show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def turn(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Move a student to the first or last place by hand, with a reason."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    get_object_or_404(found.places.without_bed(), number=number)
    form = TurnForm.typed(request, initial={"to": "first"})

    def act(*, to: str, reason: str) -> None:
        event = turn_change(
            user=request.user,
            placement=found,
            number=number,
            is_first=to == "first",
            reason=" ".join(reason.split()),
        )
        undo = reverse("housing:placement-undo", args=[found.pk, event.pk])
        toast(request, event.sentence, undo_url=undo)

    if form.submit(request, act):
        return redirect("waiting:list", found.pk)
    title = gettext("Move S-%(number)s on the waiting list") % {"number": number}
    return FormPage(title, gettext("Move the student"), _trail(found)).show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def move_new(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Let a student with a bed wait for another one."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    form = StaffMoveForm.typed(request, placement=found)

    def act(*, student: str, hall: str, beds: int) -> None:
        numbers = students_typed(request.user, found.cohort, [student])
        if len(numbers) != 1:
            raise HousingError(gettext("Name one student."), "student")
        wish = move_wish_save(
            user=request.user, placement=found, number=numbers[0], hall=hall, beds=beds
        )
        toast(
            request,
            gettext("%(student)s waits for another bed: %(wish)s.")
            % {"student": wish.student.label, "wish": wish.words},
        )

    if form.submit(request, act):
        return redirect("waiting:list", found.pk)
    words = gettext("Students without a bed come first. The next student gets the old bed offered.")
    page = FormPage(
        gettext("Add a student with a bed"), gettext("Add the student"), _trail(found), words
    )
    return page.show(request, form)


@require_http_methods(["GET", "POST"])
@staff_required
def move_remove(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Take a student with a bed off the waiting list."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    wish = get_object_or_404(found.move_wishes.waiting(), student__number=number)
    form = TypedForm.typed(request)
    act = partial(move_wish_remove, user=request.user, placement=found, number=number)
    if form.submit(request, act):
        toast(
            request,
            gettext("S-%(number)s does not wait for another bed any more.") % {"number": number},
        )
        return redirect("waiting:list", found.pk)
    words = gettext("S-%(number)s waits for another bed: %(wish)s. The present bed stays.") % {
        "number": number,
        "wish": wish.words,
    }
    page = FormPage(
        gettext("Take off the waiting list"),
        gettext("Take the student off"),
        _trail(found),
        words,
        is_danger=True,
    )
    return page.show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def offer(request: SignedInRequest, uuid: str, room_id: int) -> HttpResponse:
    """Show who is next for a free bed of a room, and offer it."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    room = get_object_or_404(found.buildings.rooms, pk=room_id)
    coming = next_student(found, room)
    listed = waiting_list_of(found)
    initial = {"hours": listed.hours, "number": coming.number}
    form = OfferForm.typed(request, initial=initial)

    def act(*, number: int, hours: int) -> None:
        made = offer_make(user=request.user, placement=found, room=room, number=number, hours=hours)
        words = gettext("A bed in %(room)s is offered.") % {"room": room}
        toast(request, f"{words} {reachable_words(made)}")

    if form.submit(request, act):
        return redirect("waiting:list", found.pk)
    if coming.number is not None:
        form.show_value("number", str(coming.number))
    context = {
        "placement": found,
        "room": room,
        "coming": coming,
        "form": form,
        "back": reverse("waiting:list", args=[found.pk]),
    }
    return render(request, "waiting/offer.html", context, status=form.status)


def _offer(placement: Placement, offer_id: int) -> WaitingOffer:
    return get_object_or_404(offers_of(placement).select_related("placement"), pk=offer_id)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def answer(request: SignedInRequest, uuid: str, offer_id: int) -> HttpResponse:
    """Record an answer that the student gave by phone."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    one = _offer(found, offer_id)
    form = AnswerForm.typed(request)

    def act(*, answer: str) -> None:
        if answer == "decline":
            offer_decline(offer=one, user=request.user)
            toast(
                request,
                gettext("%(student)s declined the bed in %(room)s.")
                % {"student": one.student.label, "room": one.room_label},
            )
            return
        try:
            event = offer_accept(offer=one, user=request.user)
        except BedLostError as error:
            offer_void(offer=one, why=str(error))
            raise HousingError(
                gettext("%(reason)s The offer was withdrawn.") % {"reason": error}
            ) from error
        undo = reverse("housing:placement-undo", args=[found.pk, event.pk])
        toast(request, event.sentence, undo_url=undo)

    if form.submit(request, act):
        return redirect("waiting:list", found.pk)
    words = gettext("%(student)s: a bed in %(room)s.") % {
        "student": one.student.label,
        "room": one.room_label,
    }
    page = FormPage(gettext("Record an answer"), gettext("Record the answer"), _trail(found), words)
    return page.show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def withdraw(request: SignedInRequest, uuid: str, offer_id: int) -> HttpResponse:
    """Withdraw an offer."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    one = _offer(found, offer_id)
    form = WithdrawForm.typed(request)
    if form.submit(request, partial(offer_withdraw, user=request.user, offer=one)):
        toast(
            request,
            gettext("The offer to %(student)s was withdrawn.") % {"student": one.student.label},
        )
        return redirect("waiting:list", found.pk)
    words = gettext("%(student)s: a bed in %(room)s. The bed is free afterwards.") % {
        "student": one.student.label,
        "room": one.room_label,
    }
    page = FormPage(
        gettext("Withdraw an offer"),
        gettext("Withdraw the offer"),
        _trail(found),
        words,
        is_danger=True,
    )
    return page.show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def extend(request: SignedInRequest, uuid: str, offer_id: int) -> HttpResponse:
    """Give an offer a new deadline."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    one = _offer(found, offer_id)
    form = ExtendForm.typed(request, initial={"hours": waiting_list_of(found).hours})
    if form.submit(request, partial(offer_extend, user=request.user, offer=one)):
        toast(
            request,
            gettext("%(student)s has more time, and gets a mail about it.")
            % {"student": one.student.label},
        )
        return redirect("waiting:list", found.pk)
    words = gettext("%(student)s: a bed in %(room)s.") % {
        "student": one.student.label,
        "room": one.room_label,
    }
    page = FormPage(
        gettext("Extend an offer"), gettext("Set the new deadline"), _trail(found), words
    )
    return page.show(request, form)


@require_safe
@staff_required
def export(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download the waiting list with its offers; an audit line records who downloaded it."""
    found = find_placement(request, uuid)
    data, media_type = waiting_export(user=request.user, placement=found, file_format=file_format)
    name = f"{plain_name(found.name)}-waiting.{file_format}"
    return as_attachment(HttpResponse(data, content_type=media_type), name)
