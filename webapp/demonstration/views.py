"""The state of the demonstration for polling, its retry, and the steps of its tour."""

from http import HTTPStatus

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.toasts import attempt, toast
from webapp.demonstration import services, shared_pages, tour
from webapp.demonstration.catalogue import STEP_OF
from webapp.demonstration.selectors import has_demonstration


@require_safe
def state(request: SignedInRequest) -> HttpResponse:
    """Return the panel of Home alone, for polling.

    The answer is empty while nothing has changed, since screen readers speak each new one.
    """
    panel = shared_pages.home_panel(request.user)
    if panel is not None and request.GET.get("mark") == panel["mark"]:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return render(request, "demonstration/_home_panel.html", {"panel": panel})


@require_POST
@staff_required
def retry(request: SignedInRequest, key: str) -> HttpResponse:
    """Prepare a failed result again."""
    if key not in STEP_OF or not has_demonstration(request.user):
        raise Http404
    words = _("%(step_of)s: being prepared again.") % {"step_of": STEP_OF[key].title}
    attempt(
        request,
        lambda: services.result_retry(user=request.user, key=key),
        words,
        icon="refresh-cw",
    )
    return redirect("common:home")


@require_safe
def step(request: SignedInRequest, number: int) -> HttpResponse:
    """Lead to the result of a step of the tour, or say that it is still being prepared."""
    if not 1 <= number <= len(tour.STEPS) or not has_demonstration(request.user):
        raise Http404
    shown = tour.shown_step(request.user, number)
    if shown.url:
        return redirect(shown.url)
    panel = shared_pages.home_panel(request.user)
    return render(request, "demonstration/tour.html", {"shown": shown, "panel": panel})


@require_POST
def close(request: SignedInRequest) -> HttpResponse:
    """Close the tour for the signed-in person, for good."""
    services.tour_close(user=request.user)
    toast(request, _("The tour is closed. “Show the tour” in Help brings it back."), icon="check")
    return redirect("common:home")


@require_POST
def show(request: SignedInRequest) -> HttpResponse:
    """Show the tour again and lead to its first step."""
    if not has_demonstration(request.user):
        raise Http404
    services.tour_show(user=request.user)
    return redirect("demonstration:step", number=1)
