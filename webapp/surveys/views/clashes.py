"""Staff pages of student numbers with several sets of answers, and the decisions."""

from functools import partial
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.common.decorators import staff_required
from webapp.common.listing import PAGE_SIZE, page_at
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import toast
from webapp.surveys.forms import ClashForm, NumberForm, RestoreForm, Which
from webapp.surveys.models import Questionnaire
from webapp.surveys.names import look_noted
from webapp.surveys.selectors.answers import n_open_texts
from webapp.surveys.selectors.clashes import Clash, sorted_answers
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
    return _show(request, found)


def _show(
    request: SignedInRequest, found: Questionnaire, form: NumberForm | None = None
) -> HttpResponse:
    """Return the page; ``form`` is a refused correction, on whose page its answers are."""
    several = sorted(sorted_answers(found)[1], key=lambda clash: not clash.is_open)
    corrected = form.cleaned_data.get("person") if form else None
    places = [k for k, clash in enumerate(several) if _has(clash, corrected)]
    page = page_at(several, 1 + places[0] // PAGE_SIZE if places else request.GET.get("page"))
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
        "corrected": corrected,
        "number_form": form,
    }
    status = form.status if form else 200
    return render(request, "surveys/clashes.html", context, status=status)


def _has(clash: Clash, person: int | None) -> bool:
    return any(one.pk == person for one in clash.answers)


@require_POST
@staff_required
def choose(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Count one set of answers, or the first or latest of every number."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)

    def act(*, person: int | None, which: Which | None) -> None:
        user = request.user
        if person is not None:
            aside = answers_choose(user=user, questionnaire=found, person=person)
        else:
            aside = answers_choose_all(user=user, questionnaire=found, which=which or "")
        # A long list does not fit an address: then each is restored on the page.
        query = urlencode([("person", key) for key in aside])
        undo = f"{reverse('surveys:clash-restore', args=[found.pk])}?{query}"
        words = ngettext(
            "%(count)s set of answers is set aside.",
            "%(count)s sets of answers are set aside.",
            len(aside),
        ) % {"count": f"{len(aside):,}"}
        toast(request, words, undo_url=undo if len(undo) < 2_000 else "")

    ClashForm.typed(request).press(request, act)
    return redirect("surveys:clashes", found.pk)


@require_POST
@staff_required
def restore(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Restore answers that were set aside; the address of Undo leads here."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = RestoreForm.typed(request)

    def act(*, person: list[int]) -> None:
        answers_restore(user=request.user, questionnaire=found, people=person)
        toast(request, gettext("The answers stand beside the others again."))

    (form if form.sent else RestoreForm(request.GET)).press(request, act)
    return redirect("surveys:clashes", found.pk)


@require_POST
@staff_required
def correct(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Correct a mistyped student number."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = NumberForm.typed(request)
    if form.submit(request, partial(number_correct, user=request.user, questionnaire=found)):
        toast(request, gettext("The student number was corrected."))
        return redirect("surveys:clashes", found.pk)
    person = form.cleaned_data.get("person")
    if any(_has(clash, person) for clash in sorted_answers(found)[1]):
        return _show(request, found, form)
    toast(request, form.first_error, error=True)
    return redirect("surveys:clashes", found.pk)
