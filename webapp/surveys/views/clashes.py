"""Staff pages of student numbers with several sets of answers, and the decisions."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.listing import page_at
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast
from webapp.surveys.models import Questionnaire
from webapp.surveys.names import look_noted
from webapp.surveys.selectors.answers import n_open_texts
from webapp.surveys.selectors.clashes import sorted_answers
from webapp.surveys.services.clashes import (
    answers_choose,
    answers_choose_all,
    answers_restore,
    number_correct,
)


@require_safe
@staff_required
def clashes(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show every number with several sets of answers, those with an open decision first."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    several = sorted(sorted_answers(found)[1], key=lambda clash: not clash.is_open)
    page = page_at(several, request.GET.get("page"))
    shown = [one for clash in page.object_list for one in (*clash.answers, *clash.set_aside)]
    if shown:
        audit(request.user, "compared answers", found, people=len(shown))
        look_noted(request.user, found, request.path)
    context = {
        "questionnaire": found,
        "tab": "people",
        "page": page,
        "n_open": sum(clash.is_open for clash in several),
        "n_open_texts": n_open_texts(found),
    }
    return render(request, "surveys/clashes.html", context)


@require_POST
@staff_required
def choose(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Count one set of answers, or the first or latest of every number."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    person, which = whole_number(request.POST.get("person", "")), request.POST.get("which", "")
    try:
        if person is not None:
            aside = answers_choose(user=request.user, questionnaire=found, person=person)
        else:
            aside = answers_choose_all(user=request.user, questionnaire=found, which=which)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    else:
        # A long list does not fit an address: then each is restored on the page.
        query = urlencode([("person", key) for key in aside])
        undo = f"{reverse('surveys:clash-restore', args=[found.pk])}?{query}"
        words = ngettext(
            "%(count)s set of answers is set aside.",
            "%(count)s sets of answers are set aside.",
            len(aside),
        ) % {"count": f"{len(aside):,}"}
        toast(request, words, undo_url=undo if len(undo) < 2_000 else "")
    return redirect("surveys:clashes", found.pk)


@require_POST
@staff_required
def restore(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Restore answers that were set aside; the address of Undo leads here."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    sent = request.POST if "person" in request.POST else request.GET
    people = [key for text in sent.getlist("person") if (key := whole_number(text)) is not None]
    attempt(
        request,
        lambda: answers_restore(user=request.user, questionnaire=found, people=people),
        gettext("The answers stand beside the others again."),
    )
    return redirect("surveys:clashes", found.pk)


@require_POST
@staff_required
def correct(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Correct a mistyped student number."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    person = whole_number(request.POST.get("person", "")) or 0
    number = request.POST.get("number", "")
    attempt(
        request,
        lambda: number_correct(
            user=request.user, questionnaire=found, person=person, number=number
        ),
        gettext("The student number was corrected."),
    )
    return redirect("surveys:clashes", found.pk)
