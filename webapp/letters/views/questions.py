"""Questions to students about the targets of their requests: wording, preview, sending."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.addresses import address_of
from webapp.cohorts.models import Cohort
from webapp.common.acts import passed_on
from webapp.common.decorators import staff_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.housing.models import RoommateRequest
from webapp.housing.selectors.requests import unsure_requests
from webapp.letters.forms import QuestionForm
from webapp.letters.services.questions import (
    FIELDS,
    FIRST_SUBJECT,
    FIRST_TEXT,
    Wording,
    askable,
    asked_in_words,
    filled,
    questions_ask,
    without_address,
)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def ask(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the mail about one request, or about all uncertain requests; a POST previews it."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    moved = passed_on(request, {"send": "letters:ask-send"}, cohort.pk)
    if moved is not None:
        return moved
    form = _form(request)
    if request.method == "POST" and form.is_valid():
        form.attempt(lambda: _wording(form).checked())
    return _show(request, cohort, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def send(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send the mail to the students whose requests are uncertain."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    form = _form(request)
    if request.method == "POST" and form.is_valid():

        def act() -> None:
            _, chosen = _chosen(cohort, form)
            count = questions_ask(
                user=request.user,
                cohort=cohort,
                wording=_wording(form),
                requests=[one.pk for one in chosen],
                seen=form.cleaned_data["seen"] or 0,
            )
            toast(request, asked_in_words(count), icon="send")

        if form.attempt(act):
            return redirect("housing:requests", cohort.pk)
    return _show(request, cohort, form)


def _form(request: SignedInRequest) -> QuestionForm:
    first = {
        "request": request.GET.get("request", ""),
        "subject": FIRST_SUBJECT,
        "text": FIRST_TEXT,
        "reply_to": request.user.email,
    }
    return QuestionForm.typed(request, initial=first)


def _wording(form: QuestionForm) -> Wording:
    """Return the wording of a form as it was typed, valid or not."""
    return Wording(*(str(form[name].value() or "") for name in ("subject", "text", "reply_to")))


def _chosen(
    cohort: Cohort, form: QuestionForm
) -> tuple[RoommateRequest | None, list[RoommateRequest]]:
    """Return the request that a form names and it alone, or None and all that were not asked."""
    key = str(form["request"].value() or "")
    requests, wanted = askable(cohort), whole_number(key)
    one = next((r for r in requests if r.pk == wanted), None)
    if one is not None or key:
        return one, [one] if one else []
    unsure = unsure_requests(cohort)
    return None, [r for r in requests if r.pk in unsure and not hasattr(r, "question")]


def _show(request: SignedInRequest, cohort: Cohort, form: QuestionForm) -> HttpResponse:
    one, chosen = _chosen(cohort, form)
    wording = _wording(form)
    reachable = [found for found in chosen if address_of(found.student)]
    shown = reachable[0] if reachable else None
    subject, text = filled(wording, shown) if shown else ("", "")
    times = one.question.times if one and hasattr(one, "question") else 0
    form.initial["seen"] = times
    form.show_value("seen", str(times))
    context: dict[str, Any] = {
        "cohort": cohort,
        "form": form,
        "one": one,
        "reply_to": wording.reply_to,
        "fields": FIELDS,
        "n_asked": len(reachable),
        "without": without_address(chosen),
        "shown": shown,
        "subject": subject,
        "text": text,
    }
    return render(request, "letters/ask.html", context, status=form.status)
