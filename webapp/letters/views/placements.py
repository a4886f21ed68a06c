"""The letters of one placement: preview, problems, test, sending, what became of each."""

import re
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from webapp.common.decorators import administrator_required, staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.views.placements import find_placement
from webapp.letters.errors import LetterError
from webapp.letters.models import LetterTemplate
from webapp.letters.recipients import recipients_of
from webapp.letters.selectors import letters_context
from webapp.letters.services.addresses import addresses_import
from webapp.letters.services.letters import (
    letter_test,
    letters_bounced,
    letters_file,
    letters_queue,
    letters_retry,
    letters_stop,
    sent_in_words,
)


@require_GET
@staff_required
def letters(request: HttpRequest, uuid: str) -> HttpResponse:
    """Show a letter with a real student, what stands in the way, and what became of those sent."""
    placement = find_placement(request, uuid)
    context = letters_context(request.user, placement, request.GET)
    return render(request, "letters/placement.html", context)


def _back(request: HttpRequest, uuid: str) -> HttpResponse:
    kept = {name: request.POST[name] for name in ("letter", "student") if request.POST.get(name)}
    address = reverse("letters:placement", args=[uuid])
    return redirect(f"{address}?{urlencode(kept)}" if kept else address)


def _letter(request: HttpRequest, sent: Any) -> LetterTemplate:
    return get_owned_or_404(LetterTemplate, request.user, sent.get("letter", ""))


@require_POST
@staff_required
def act(request: HttpRequest, uuid: str) -> HttpResponse:
    """Send a test to oneself, take addresses, note bounces, or stop what waits."""
    find_placement(request, uuid)
    try:
        toast(request, _act(request, uuid))
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return _back(request, uuid)


def _act(request: HttpRequest, uuid: str) -> str:
    placement, wanted = find_placement(request, uuid), request.POST.get("act", "")
    if wanted == "addresses":
        file = request.FILES.get("file")
        if file is None:
            raise LetterError("Choose a CSV or XLSX file with ids and e-mails first.")
        found, strangers = addresses_import(
            user=request.user,
            cohort=placement.cohort,
            filename=file.name,
            size=file.size,
            read=file.read,
        )
        rest = f"; {counted(strangers, 'row')} of nobody left out" if strangers else ""
        return f"{counted(found, 'student')} found{rest}."
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
        addresses = re.split(r"[,;\s]+", request.POST.get("addresses", ""))
        count = letters_bounced(addresses=addresses, **options)
        return f"{counted(count, 'letter is', 'letters are')} marked as come back."
    raise LetterError("There is no such act.")


def _test(request: HttpRequest, options: dict[str, Any]) -> str:
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
def send(request: HttpRequest, uuid: str) -> HttpResponse:
    """Send to everybody who is due, or again to whom it failed."""
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


@require_GET
@staff_required
def file(request: HttpRequest, uuid: str) -> HttpResponseBase:
    """Download the letters for a mail merge; an audit line says who did."""
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
