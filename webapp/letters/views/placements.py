"""The letters of one placement: preview, problems, test, sending and results."""

from collections.abc import Callable
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.views.student_files import checked_upload
from webapp.common.acts import passed_on
from webapp.common.decorators import administrator_required, staff_required
from webapp.common.errors import Refusal
from webapp.common.kept_forms import keeps_typed
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.models import Placement
from webapp.housing.views.placements import find_placement
from webapp.letters.errors import LetterError
from webapp.letters.forms import LetterForm, LetterTestForm, ReturnedForm, SendForm
from webapp.letters.models import LetterTemplate
from webapp.letters.recipients import recipients_of
from webapp.letters.selectors import letters_context
from webapp.letters.services.addresses import ADDRESSES
from webapp.letters.services.letters import (
    letter_test,
    letters_bounced,
    letters_file,
    letters_queue,
    letters_retry,
    letters_stop,
    letters_to,
    sent_in_words,
)

_MOVED = {
    "test": "letters:placement-test",
    "addresses": "letters:placement-addresses",
    "bounced": "letters:placement-returned",
    "stop": "letters:placement-stop",
}


@require_safe
@staff_required
def letters(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show a real student's letter, the problems of sending, and the state of sent letters."""
    return _show(request, find_placement(request, uuid))


def _show(
    request: SignedInRequest,
    placement: Placement,
    *,
    test: LetterTestForm | None = None,
    returned: ReturnedForm | None = None,
) -> HttpResponse:
    """Return the page; ``test`` and ``returned`` are forms to show with what was typed."""
    parameters = request.GET.copy()
    bound = test or returned
    if bound is not None and bound.is_bound:
        kept = ("letter", "student") if test else ("letter",)
        parameters.update({name: str(bound[name].value() or "") for name in kept})
    if returned is not None:
        parameters["show"] = "failed"  # the tab with the form
    context = letters_context(request.user, placement, parameters)
    if context.get("chosen"):
        initial = {"letter": context["template"], "student": context["chosen"].student.label}
        initial["address"] = request.user.email
        context |= {
            "test_form": test or LetterTestForm(user=request.user, initial=initial),
            "returned_form": returned or ReturnedForm(user=request.user, initial=initial),
        }
    status = bound.status if bound is not None else 200
    return render(request, "letters/placement.html", context, status=status)


def _back(placement: Placement, form: LetterForm) -> HttpResponse:
    address = reverse("letters:placement", args=[placement.pk])
    names = [name for name in ("letter", "student") if name in form.fields]
    kept = [(name, str(form[name].value() or "")) for name in names]
    query = urlencode([(name, value) for name, value in kept if value])
    return redirect(f"{address}?{query}" if query else address)


@require_POST
@staff_required
def act(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Repeat an act at its own address; until version 0.2 this address took four of them."""
    placement = find_placement(request, uuid)
    moved = passed_on(request, _MOVED, placement.pk)
    if moved is not None:
        return moved
    toast(request, _("There is no such action."), error=True)
    return redirect("letters:placement", placement.pk)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def test(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send one student's letter to an address of the sender."""
    placement = find_placement(request, uuid)
    form = LetterTestForm.typed(request, user=request.user)

    def send_test(*, letter: LetterTemplate, student: str, address: str) -> None:
        number = whole_number(digits_of(student))
        found = (r for r in recipients_of(placement, letter) if r.number == number)
        chosen = next(found, None)
        if chosen is None:
            raise LetterError(_("Choose a student with a room, whose letter is the test."))
        letter_test(user=request.user, template=letter, recipient=chosen, address=address)
        toast(
            request,
            _("The letter of S-%(number)s went to %(address)s.")
            % {"number": chosen.number, "address": address},
        )

    if form.submit(request, send_test):
        return _back(placement, form)
    return _show(request, placement, test=form if form.is_bound else None)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def returned(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Mark letters as come back, once staff confirmed how many a list of addresses marks."""
    placement = find_placement(request, uuid)
    form = ReturnedForm.typed(request, user=request.user)
    if request.method == "POST" and form.is_valid():
        letter, addresses = form.cleaned_data["letter"], form.cleaned_data["addresses"]
        count = len(letters_to(placement, letter, addresses))
        if count > 1 and form.cleaned_data["asked"] != count:
            form.ask(count)
        elif form.attempt(
            lambda: letters_bounced(
                user=request.user, placement=placement, template=letter, addresses=addresses
            )
        ):
            words = ngettext(
                "%(count)s letter is marked as come back.",
                "%(count)s letters are marked as come back.",
                count,
            )
            toast(request, words % {"count": f"{count:,}"})
            return _back(placement, form)
    return _show(request, placement, returned=form if form.is_bound else None)


@require_POST
@staff_required
def addresses(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Check a file of e-mails before they are imported."""
    placement = find_placement(request, uuid)
    form = LetterForm.typed(request, user=request.user)
    back = _back(placement, form)
    try:
        return redirect(checked_upload(request, placement.cohort, ADDRESSES.key, back["Location"]))
    except Refusal as problem:
        toast(request, str(problem), error=True)
        return back


@require_POST
@staff_required
def stop(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Stop the letters that wait."""
    placement = find_placement(request, uuid)

    def act(*, letter: LetterTemplate) -> str:
        count = letters_stop(user=request.user, placement=placement, template=letter)
        return ngettext("%(count)s letter stopped.", "%(count)s letters stopped.", count) % {
            "count": f"{count:,}"
        }

    return _press(request, placement, LetterForm.typed(request, user=request.user), act)


@require_POST
@administrator_required
def send(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send to all students who are due."""
    placement = find_placement(request, uuid)
    moved = passed_on(request, {"retry": "letters:placement-retry"}, placement.pk)
    if moved is not None:
        return moved

    def act(*, letter: LetterTemplate, version: int) -> str:
        count = letters_queue(
            user=request.user, placement=placement, template=letter, version=version
        )
        return sent_in_words(count)

    return _press(request, placement, SendForm.typed(request, user=request.user), act)


@require_POST
@administrator_required
def retry(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send the letters again whose sending failed."""
    placement = find_placement(request, uuid)

    def act(*, letter: LetterTemplate) -> str:
        return sent_in_words(letters_retry(user=request.user, placement=placement, template=letter))

    return _press(request, placement, LetterForm.typed(request, user=request.user), act)


def _press(
    request: SignedInRequest, placement: Placement, form: LetterForm, act: Callable[..., str]
) -> HttpResponse:
    """Perform the act of a button; a refusal is a toast, since nothing was typed."""
    done: list[str] = []
    if form.submit(request, lambda **fields: done.append(act(**fields))):
        toast(request, done[0], icon="send")
    else:
        toast(request, form.first_error, error=True)
    return _back(placement, form)


@require_safe
@staff_required
def file(request: SignedInRequest, uuid: str) -> HttpResponseBase:
    """Download the letters for a mail merge; an audit line records who did."""
    placement = find_placement(request, uuid)
    template = get_owned_or_404(LetterTemplate, request.user, request.GET.get("letter", ""))
    shape = request.GET.get("shape", "csv")
    try:
        data, kind, ending = letters_file(
            user=request.user, placement=placement, template=template, shape=shape
        )
    except LetterError as problem:
        toast(request, str(problem), error=True)
        return redirect("letters:placement", uuid)
    name = plain_name(placement.name, "letters")
    response = HttpResponse(data, content_type=kind)
    return as_attachment(response, f"{name}-letters.{ending}")
