"""The page that asks which rooms meet needs in other words."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.common.decorators import staff_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.housing.models import NeedMeaning
from webapp.housing.need_forms import NeedMeaningForm
from webapp.housing.selectors.need_meanings import NeedWords, needs_in_words, offers_of
from webapp.housing.services.need_meanings import need_meaning_remove, need_meaning_set


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def needs(request: SignedInRequest, uuid: str) -> HttpResponse:
    """List the needs of a cohort with the rooms that meet them, and keep an answer."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    offers = offers_of(request.user.organisation_id)
    sent = NeedMeaningForm.typed(request, offers=offers)

    def save(*, need: str, offers: list[str], **others: object) -> None:
        rooms = need_meaning_set(user=request.user, need=need, offers=offers)
        toast(
            request,
            ngettext(
                "%(count)s room meets “%(need)s” now, in placing, checks and messages.",
                "%(count)s rooms meet “%(need)s” now, in placing, checks and messages.",
                rooms,
            )
            % {"count": f"{rooms:,}", "need": need},
        )

    if sent.submit(request, save):
        return redirect("housing:needs", cohort.pk)
    rows = [
        (one, sent if _is_about(sent, one) else _form(one, offers))
        for one in needs_in_words(cohort)
    ]
    context = {"cohort": cohort, "rows": rows, "has_offers": bool(offers), "sent": sent}
    return render(request, "housing/needs.html", context, status=sent.status)


def _form(one: NeedWords, offers: list[str]) -> NeedMeaningForm:
    chosen = one.meaning.offers if one.meaning else one.guess
    initial = {"need": one.need, "offers": list(chosen)}
    return NeedMeaningForm(offers=offers, initial=initial, auto_id=False)


def _is_about(form: NeedMeaningForm, one: NeedWords) -> bool:
    return form.is_bound and str(form["need"].value()).casefold() == one.need.casefold()


@require_POST
@staff_required
def ask_again(request: SignedInRequest, uuid: str, meaning_id: int) -> HttpResponse:
    """Remove an answer, so that the question is asked again."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    meaning = get_owned_or_404(owned_by(NeedMeaning, request.user), request.user, meaning_id)
    attempt(
        request,
        lambda: need_meaning_remove(user=request.user, meaning=meaning),
        _("“%(need)s” is asked again.") % {"need": meaning.need},
    )
    return redirect("housing:needs", cohort.pk)
