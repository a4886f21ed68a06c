"""The letters of one placement: preview, problems, test, sending and results."""

import re
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.views.student_files import checked_upload
from webapp.common.decorators import administrator_required, staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.models import Placement
from webapp.housing.views.placements import find_placement
from webapp.letters.errors import LetterError
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


@require_safe
@staff_required
def letters(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show a real student's letter, the problems of sending, and the state of sent letters."""
    placement = find_placement(request, uuid)
    context = letters_context(request.user, placement, request.GET)
    return render(request, "letters/placement.html", context)


def _address(request: SignedInRequest, uuid: str) -> str:
    kept = {name: request.POST[name] for name in ("letter", "student") if request.POST.get(name)}
    address = reverse("letters:placement", args=[uuid])
    return f"{address}?{urlencode(kept)}" if kept else address


def _back(request: SignedInRequest, uuid: str) -> HttpResponse:
    return redirect(_address(request, uuid))


def _letter(request: SignedInRequest, sent: Any) -> LetterTemplate:
    return get_owned_or_404(LetterTemplate, request.user, sent.get("letter", ""))


@require_POST
@staff_required
def act(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send a test to oneself, import addresses, note bounces, or stop waiting letters."""
    placement = find_placement(request, uuid)
    try:
        if request.POST.get("act") == ADDRESSES.key:
            back = _address(request, uuid)
            return redirect(checked_upload(request, placement.cohort, ADDRESSES.key, back))
        asked = _returned_to_ask(request, placement)
        if asked:
            shown = request.POST.copy()
            shown["show"] = "failed"  # the tab with the form
            context = letters_context(request.user, placement, shown) | {"asked": asked}
            return render(request, "letters/placement.html", context, status=422)
        toast(request, _act(request, uuid))
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return _back(request, uuid)


def _returned_to_ask(request: SignedInRequest, placement: Placement) -> int:
    """Return how many letters a list of addresses would mark if staff have not confirmed it."""
    if request.POST.get("act") != "bounced":
        return 0
    template = _letter(request, request.POST)
    count = len(letters_to(placement, template, _addresses(request)))
    return count if count > 1 and request.POST.get("asked") != str(count) else 0


def _addresses(request: SignedInRequest) -> list[str]:
    return re.split(r"[,;\s]+", request.POST.get("addresses", ""))


def _act(request: SignedInRequest, uuid: str) -> str:
    placement, wanted = find_placement(request, uuid), request.POST.get("act", "")
    options: dict[str, Any] = {
        "user": request.user,
        "placement": placement,
        "template": _letter(request, request.POST),
    }
    if wanted == "test":
        return _test(request, options)
    if wanted == "stop":
        return f"{counted(letters_stop(**options), 'letter')} stopped."
    if wanted == "bounced":
        count = letters_bounced(addresses=_addresses(request), **options)
        return f"{counted(count, 'letter is', 'letters are')} marked as come back."
    raise LetterError("There is no such action.")


def _test(request: SignedInRequest, options: dict[str, Any]) -> str:
    recipients = recipients_of(options["placement"], options["template"])
    number = whole_number(digits_of(request.POST.get("student", "")))
    chosen = next((r for r in recipients if r.number == number), None)
    if chosen is None:
        raise LetterError("Choose a student with a room, whose letter is the test.")
    address = request.POST.get("address", "")
    letter_test(user=request.user, template=options["template"], recipient=chosen, address=address)
    return f"The letter of S-{chosen.number} went to {address.strip()}."


@require_POST
@administrator_required
def send(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send to all students who are due, or again where sending failed."""
    placement = find_placement(request, uuid)
    template = _letter(request, request.POST)
    options: dict[str, Any] = {
        "user": request.user,
        "placement": placement,
        "template": template,
    }
    try:
        if request.POST.get("act") == "retry":
            count = letters_retry(**options)
        else:
            version = whole_number(request.POST.get("version", ""))
            count = letters_queue(version=-1 if version is None else version, **options)
        toast(request, sent_in_words(count), icon="send")
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return _back(request, uuid)


@require_safe
@staff_required
def file(request: SignedInRequest, uuid: str) -> HttpResponseBase:
    """Download the letters for a mail merge; an audit line records who did."""
    placement = find_placement(request, uuid)
    template = _letter(request, request.GET)
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
