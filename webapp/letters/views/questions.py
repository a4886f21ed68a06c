"""Questions to students about the targets of their requests: wording, preview, sending."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.housing.models import RoommateRequest
from webapp.housing.selectors.requests import unsure_requests
from webapp.letters.recipients import address_of
from webapp.letters.services.questions import (
    FIELDS,
    Wording,
    askable,
    asked_in_words,
    filled,
    questions_ask,
    without_address,
)


@require_http_methods(["GET", "POST"])
@staff_required
def ask(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the mail about one request, or about all uncertain requests, and send it."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    sent = request.POST or request.GET
    one, chosen = _chosen(cohort, sent.get("request", ""))
    first = Wording(reply_to=request.user.email)
    wording, error = first, ""
    if request.method == "POST":
        wording = Wording(*(request.POST.get(k, "") for k in ("subject", "text", "reply_to")))
        try:
            wording = wording.checked()
            if request.POST.get("act") == "send":
                return _send(request, cohort, wording, chosen)
        except Refusal as problem:
            error = str(problem)
    context = _context(cohort, one, chosen, wording) | {"error": error}
    return render(request, "letters/ask.html", context, status=422 if error else 200)


def _chosen(cohort: Cohort, key: str) -> tuple[RoommateRequest | None, list[RoommateRequest]]:
    """Return the request in the address and it alone, or None and all that were not asked about."""
    requests, wanted = askable(cohort), whole_number(key)
    one = next((r for r in requests if r.pk == wanted), None)
    if one is not None or key:
        return one, [one] if one else []
    unsure = unsure_requests(cohort)
    return None, [r for r in requests if r.pk in unsure and not hasattr(r, "question")]


def _send(
    request: SignedInRequest, cohort: Cohort, wording: Wording, chosen: list[RoommateRequest]
) -> HttpResponse:
    seen = whole_number(request.POST.get("seen", "")) or 0
    keys = [one.pk for one in chosen]
    count = questions_ask(
        user=request.user, cohort=cohort, wording=wording, requests=keys, seen=seen
    )
    toast(request, asked_in_words(count), icon="send")
    return redirect("housing:requests", cohort.pk)


def _context(
    cohort: Cohort, one: RoommateRequest | None, chosen: list[RoommateRequest], wording: Wording
) -> dict[str, Any]:
    reachable = [request for request in chosen if address_of(request.student)]
    shown = reachable[0] if reachable else None
    subject, text = filled(wording, shown) if shown else ("", "")
    return {
        "cohort": cohort,
        "one": one,
        "seen": one.question.times if one and hasattr(one, "question") else 0,
        "wording": wording,
        "fields": FIELDS,
        "n_asked": len(reachable),
        "without": without_address(chosen),
        "shown": shown,
        "subject": subject,
        "text": text,
    }
