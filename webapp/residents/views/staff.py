"""Changes that students of a placement asked for, and the decisions about them."""

from functools import partial

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.addresses import address_of
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import names_on_page
from webapp.common.decorators import staff_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404
from webapp.common.toasts import attempt, toast
from webapp.housing.models import Placement
from webapp.housing.views.placements import find_placement
from webapp.residents.forms import DecideForm
from webapp.residents.models import AskState, ChangeAsk
from webapp.residents.selectors import asks_of
from webapp.residents.services import ask_decide, link_renew

A_PAGE = 50


@require_safe
@staff_required
def asks(request: SignedInRequest, uuid: str) -> HttpResponse:
    """List the changes that students asked for, those without a decision first."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    rows = asks_of(found)
    waiting = list(rows.filter(state=AskState.OPEN)[: 10 * A_PAGE])
    context = {
        "placement": found,
        "waiting": waiting,
        "decided": list(rows.exclude(state=AskState.OPEN).order_by("-decided_at")[:A_PAGE]),
        "sign_in": request.build_absolute_uri(
            reverse("residents:sign-in", args=[found.organisation.sign_in_code])
        ),
    }
    return render(request, "residents/asks.html", context)


def _ask(placement: Placement, ask_id: int) -> ChangeAsk:
    return get_object_or_404(asks_of(placement), pk=ask_id)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def decide(request: SignedInRequest, uuid: str, ask_id: int) -> HttpResponse:
    """Agree to a change or decline it, with an answer."""
    found = find_placement(request, uuid)
    names_on_page(request, found.cohort)
    ask = _ask(found, ask_id)
    decided = ask.state if ask.state in (AskState.ACCEPTED, AskState.DECLINED) else None
    initial = {"version": ask.version, "state": decided, "answer": ask.answer}
    form = DecideForm.typed(request, initial=initial)
    if form.submit(request, partial(ask_decide, user=request.user, ask=ask)):
        words = (
            gettext("%(student)s gets a mail and reads the decision on the personal page.")
            if address_of(ask.student)
            else gettext("%(student)s has no e-mail, but reads the decision on the personal page.")
        )
        toast(request, words % {"student": ask.student.label})
        return redirect("residents:asks", found.pk)
    form.show_value("version", str(ask.version))
    context = {"placement": found, "ask": ask, "form": form}
    return render(request, "residents/decide.html", context, status=form.status)


@require_POST
@staff_required
def renew(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Make the personal link of a student invalid."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    rows = Student.objects.select_related("cohort").filter(cohort=cohort)
    student = get_object_or_404(rows, number=number)
    attempt(
        request,
        lambda: link_renew(user=request.user, student=student),
        gettext("The personal link of %(student)s is not valid any more.")
        % {"student": student.label},
    )
    return redirect("students:student", cohort.pk, number)
