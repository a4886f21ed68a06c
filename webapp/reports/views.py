"""Checks of a placement, its report by hall, and rosters in stored shapes."""

from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.files.downloads import download
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.exports import OWN, SYSTEMS, Layout, own_columns
from webapp.housing.selectors.pages import shown_hall
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.views.placements import find_placement
from webapp.reports.exports import report_export, shaped_roster
from webapp.reports.forms import LearnFromForm, RosterForm
from webapp.reports.models import RosterShape
from webapp.reports.outcomes import FEWEST_ROOMS, MEASURES, follow_up_of, follow_ups
from webapp.reports.selectors import checks_context, hall_reports
from webapp.reports.services import check_start, shape_remove, shape_save
from webapp.reports.together_again import FEWEST_PAIRS, couples_learn_from, couples_of
from webapp.surveys.models import Questionnaire


@require_safe
@viewer_required
def checks(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the uncertainty, vetoes, groups or drift."""
    found = find_placement(request, uuid)
    return render(request, "reports/checks.html", checks_context(found, request.GET))


@require_POST
@staff_required
def start(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Start the checks."""
    found = find_placement(request, uuid)
    attempt(request, lambda: check_start(user=request.user, placement=found))
    return redirect("reports:checks", found.pk)


@require_safe
@viewer_required
def report(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the report by hall, ready to be printed."""
    found = find_placement(request, uuid)
    rooms = PlacementRooms(found) if found.is_computed else None
    halls = hall_reports(rooms) if rooms else []
    hall = shown_hall(rooms, request.GET.get("hall")) if rooms else ""
    context = {
        "placement": found,
        "rooms": rooms,
        "reports": halls,
        "halls": [one.name for one in halls],
        "hall": hall,
        "printed": [one for one in halls if hall in ("", one.name)],
    }
    return render(request, "reports/report.html", context)


@require_safe
@staff_required
def report_file(request: SignedInRequest, uuid: str) -> HttpResponseBase:
    """Download the report by hall as a workbook; an audit line records who did."""
    found = find_placement(request, uuid)
    halls = hall_reports(PlacementRooms(found))
    data, kind = report_export(user=request.user, placement=found, halls=halls)
    return as_attachment(
        HttpResponse(data, content_type=kind), f"{plain_name(found.name)}-halls.xlsx"
    )


@require_safe
@staff_required
def afterwards(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the answers of residents after a term against the scores of their rooms."""
    found = find_placement(request, uuid)
    asked = follow_ups(request.user)
    wanted = request.GET.get("asked", "")
    chosen = next((one for one in asked if str(one.pk) == wanted), asked[0] if asked else None)
    is_ready = chosen is not None and found.is_computed
    context = {
        "placement": found,
        "asked": asked,
        "chosen": chosen,
        "measures": [words for _, words in MEASURES],
        "fewest": FEWEST_ROOMS,
        "table": follow_up_of(found, chosen) if chosen and is_ready else None,
        "couples": couples_of(found, chosen) if chosen and is_ready else None,
        "fewest_pairs": FEWEST_PAIRS,
    }
    return render(request, "reports/afterwards.html", context)


@require_POST
@staff_required
def learn_from(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Make a cohort of the couples who would live together again, to learn from."""
    found = find_placement(request, uuid)
    form = LearnFromForm.typed(request, asked=follow_ups(request.user))
    made: list[Cohort] = []

    def act(*, asked: Questionnaire, pairs: int) -> None:
        made.append(
            couples_learn_from(user=request.user, placement=found, questionnaire=asked, pairs=pairs)
        )

    if form.submit(request, act):
        toast(
            request,
            _("%(made)s has the pairs. Choose it as a past year to learn from.")
            % {"made": made[0].name},
        )
        return redirect("cohorts:cohort", made[0].pk)
    toast(request, form.first_error, error=True)
    return redirect("reports:afterwards", found.pk)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rosters(request: SignedInRequest, uuid: str) -> HttpResponse:
    """List the layouts of student systems and the organisation's own, and store another.

    ``?layout=`` or ``?roster=`` fills the form with a layout to change.
    """
    found = find_placement(request, uuid)
    shapes = list(owned_by(RosterShape, request.user))
    kept = [key for shape in shapes for key, _ in shape.layout.columns if key.startswith(OWN)]
    own = list(dict.fromkeys([*own_columns(found.cohort), *kept]))
    start, name, is_exact = _start(request, shapes)
    form = RosterForm.typed(
        request,
        own=own,
        layout=start,
        initial={
            "name": name,
            "dates": start.dates if start else "iso",
            "ids": "exact" if is_exact else "safe",
        },
    )

    def save(*, name: str, ids: str, dates: str, **others: Any) -> None:
        shape = shape_save(
            user=request.user,
            name=name,
            columns=form.columns,
            is_exact=ids == "exact",
            dates=dates or "iso",
        )
        toast(request, _("%(shape)s is kept for every placement.") % {"shape": shape.name})

    if form.submit(request, save):
        return redirect("reports:rosters", found.pk)
    context = {
        "placement": found,
        "shapes": shapes,
        "systems": SYSTEMS,
        "form": form,
        "is_changed": start is not None,
    }
    return render(request, "reports/rosters.html", context, status=form.status)


def _start(request: SignedInRequest, shapes: list[RosterShape]) -> tuple[Layout | None, str, bool]:
    """Return the layout that fills the form, its name, and whether it leaves values unmarked."""
    system = SYSTEMS.get(request.GET.get("layout", ""))
    if system is not None:
        return system, _("%(system)s import") % {"system": system.title}, False
    wanted = request.GET.get("roster", "")
    shape = next((shape for shape in shapes if str(shape.pk) == wanted), None)
    return (shape.layout, shape.name, shape.is_exact) if shape else (None, "", False)


@require_safe
@staff_required
def roster_file(
    request: SignedInRequest, uuid: str, shape: str, file_format: str
) -> HttpResponseBase:
    """Download a roster in a stored shape; an audit line records who did."""
    found, kept = find_placement(request, uuid), get_owned_or_404(RosterShape, request.user, shape)
    if file_format not in ("csv", "xlsx"):
        raise Http404(_("There is no such format."))
    return download(
        request,
        lambda: shaped_roster(
            user=request.user, placement=found, shape=kept, file_format=file_format
        ),
        f"{plain_name(found.name)}-{plain_name(kept.name)}.{file_format}",
        back=reverse("reports:rosters", args=[found.pk]),
    )


@require_POST
@staff_required
def remove(request: SignedInRequest, uuid: str, shape: str) -> HttpResponse:
    """Delete a stored roster."""
    found, kept = find_placement(request, uuid), get_owned_or_404(RosterShape, request.user, shape)
    shape_remove(user=request.user, shape=kept)
    toast(request, _("%(kept)s is not kept any more.") % {"kept": kept.name})
    return redirect("reports:rosters", found.pk)
