"""The history of a placement and its versions: viewing, comparing, putting into force."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.toasts import attempt, toast
from webapp.housing.decision_forms import VersionUseForm
from webapp.housing.models import Placement, PlacementVersion
from webapp.housing.selectors.buildings import latest_changes
from webapp.housing.selectors.history import history_context
from webapp.housing.selectors.versions import version_context, version_lines
from webapp.housing.services.versions import version_discard, version_use
from webapp.housing.views.placements import find_placement


@require_safe
@viewer_required
def history(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the versions of a placement and every act, with Undo where it can be undone."""
    found = find_placement(request, uuid)
    context = {
        "placement": found,
        "versions": version_lines(found),
        **history_context(found, request.GET),
    }
    if request.user.is_staff_member and not found.is_pairs:
        context["changes"] = latest_changes(found.buildings)
    return render(request, "housing/history.html", context)


@require_safe
@staff_required
def version(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Show the changes of putting a version into force."""
    found = find_placement(request, uuid)
    one = _find_version(found, number)
    context = {"placement": found, **version_context(found, one, request.GET, request.user)}
    return render(request, "housing/version.html", context)


def _find_version(placement: Placement, number: int) -> PlacementVersion:
    one = placement.versions.select_related("created_by").filter(number=number).first()
    if one is None:
        raise Http404(_("There is no such version."))
    return one


@require_POST
@staff_required
def use_version(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Put a version into force, or restore it, as the page before showed it."""
    found = find_placement(request, uuid)
    _find_version(found, number)
    form = VersionUseForm.typed(request)

    def act(*, digest: str) -> None:
        event = version_use(user=request.user, placement=found, number=number, digest=digest)
        undo = reverse("housing:placement-undo", args=[found.pk, event.pk])
        toast(request, event.sentence, undo_url=undo)

    if not form.press(request, act):
        return redirect("housing:version", found.pk, number)
    return redirect("housing:placement", found.pk)


@require_POST
@staff_required
def discard_version(request: SignedInRequest, uuid: str, number: int) -> HttpResponse:
    """Reject a version: the rooms stay as they are, and the version stays in the list."""
    found = find_placement(request, uuid)
    _find_version(found, number)
    attempt(
        request,
        lambda: version_discard(user=request.user, placement=found, number=number),
        _("Version %(number)s was discarded. The rooms stay as they are.") % {"number": number},
    )
    return redirect("housing:placement", found.pk)
