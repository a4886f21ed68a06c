"""Pages of placements: the list, a new one, its rooms, scenarios side by side, and downloads."""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import names_on_page
from webapp.cohorts.selectors.cohorts import cohort_choices, rule_groups
from webapp.common.acts import passed_on
from webapp.common.decorators import administrator_required, staff_required, viewer_required
from webapp.common.errors import Refusal
from webapp.common.form_pages import remove_page, rename_page
from webapp.common.formats import counted
from webapp.common.free_names import free_name
from webapp.common.kept_forms import keeps_typed, sent_fields
from webapp.common.listing import light
from webapp.common.selectors import get_or_none, get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.files.downloads import download
from webapp.files.file_headers import as_attachment, plain_name
from webapp.housing.decision_forms import (
    ComputeForm,
    LeaveOut,
    PublishAct,
    PublishForm,
    SolveForm,
)
from webapp.housing.exports import (
    COLUMNS,
    LAYOUTS,
    SYSTEMS,
    layout_of_columns,
    rooms_export,
    roster_export,
    scenarios_export,
)
from webapp.housing.forms import (
    COUNT_WORDS,
    PAIRS,
    SUITE_RULES,
    ChangedRulesForm,
    NewPlacementForm,
)
from webapp.housing.models import BuildingList, Placement, Room
from webapp.housing.pairs.placing import pairs_compute, pairs_create
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.buildings import floors_by_hall, halls_by_list, with_open_beds
from webapp.housing.selectors.need_meanings import open_needs
from webapp.housing.selectors.pages import drawer_context, placement_context
from webapp.housing.selectors.placements import placement_listing
from webapp.housing.selectors.publication import withdrawal_notes
from webapp.housing.selectors.scenarios import scenarios_context, scenarios_table
from webapp.housing.selectors.wish_effects import strengths_context
from webapp.housing.services.placements import (
    clashes_solve,
    placement_compute,
    placement_copy,
    placement_create,
    placement_delete,
    placement_relearn,
    placement_rename,
    rules_change,
    rules_tried,
)
from webapp.housing.services.publication import (
    placement_publish,
    placement_unpublish,
    published_people,
)
from webapp.housing.views.pairs import pairs_page
from webapp.housing.views.questions import Question, ask, trail_of
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import learned_models, learned_since, model_choices

SHOWN_GROUPS = 12
MODELS_SIDE_BY_SIDE = 8  # more models are offered in a drop-down list
LISTS_WITH_ORDER = 12  # building lists whose order of halls the page of a new placement offers


def find_placement(request: SignedInRequest, uuid: str) -> Placement:
    """Return a placement of the user's organisation or answer 404."""
    placements = Placement.objects.select_related("cohort", "model", "job", "buildings", "term")
    return get_owned_or_404(placements, request.user, uuid)


@require_safe
@viewer_required
def placement_list(request: SignedInRequest) -> HttpResponse:
    """List the placements, last changed first."""
    context = {
        "listing": placement_listing(request.user, request.GET),
        "has_models": learned_models(request.user).exists(),
    }
    return render(request, "housing/placement_list.html", context)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def placement_new(request: SignedInRequest) -> HttpResponse:
    """Choose cohort, buildings, model and rules, and start placing."""
    cohorts = light(owned_by(Cohort, request.user))
    sent = sent_fields(request)
    cohort = get_or_none(cohorts, (sent or request.GET).get("cohort"))
    if sent is None and "cohort" not in request.GET:
        cohort = cohorts.filter(n_pairs=0).order_by("-created_at").first()
    models = model_choices(request.user)
    options = [(model.value, model.words) for model in models]
    context: dict[str, Any] = {
        "cohorts": cohort_choices(cohorts),
        "chosen_cohort": str(cohort.pk) if cohort else "",
        "cohort": cohort,
        "lists": with_open_beds(owned_by(BuildingList, request.user)),
        "models": models,
        "model_options": options if len(options) > MODELS_SIDE_BY_SIDE else [],
        "counts": COUNT_WORDS,
        "suite_rules": SUITE_RULES,
        "pairs": PAIRS,
        "chosen_list": (sent or request.GET).get("buildings", ""),
        "chosen_model": (sent or request.GET).get("model", ""),
    }
    if cohort is None:
        error = "" if sent is None else _("Choose a cohort first.")
        context |= {"error": error} | strengths_context(PlacementRules(), None)
        status = 422 if error else 200
        return render(request, "housing/placement_new.html", context, status=status)
    initial = {"name": request.GET.get("name") or _suggested_name(cohort)}
    initial["seed"] = request.GET.get("seed", "")
    halls = halls_by_list(context["lists"][:LISTS_WITH_ORDER])
    form = NewPlacementForm.typed(
        request, user=request.user, cohort=cohort, halls=halls, initial=initial
    )
    made: list[Placement] = []

    def create(*, name: str, buildings: BuildingList | None, model: LearnedModel,
               seed: int | None, **_: Any) -> None:  # fmt: skip
        if buildings is None:
            made.append(
                pairs_create(
                    user=request.user,
                    name=name,
                    cohort=cohort,
                    model=model,
                    same=form.rules.same,
                    seed=seed,
                )
            )
            return
        made.append(
            placement_create(
                user=request.user,
                name=name,
                cohort=cohort,
                buildings=buildings,
                model=model,
                rules=form.rules,
                seed=seed,
            )
        )

    if form.submit(request, create):
        return redirect("housing:placement", made[0].pk)
    rules = form.rules
    attributes = cohort.students.values_list("attributes", flat=True)
    rooms = Room.objects.filter(buildings__organisation=cohort.organisation_id)
    context["unnamed_needs"] = open_needs(cohort, rooms, attributes)
    context |= {"groups": rule_groups(cohort)[:SHOWN_GROUPS]}
    context["has_suites"] = any(item.n_suite_rooms for item in context["lists"])
    context |= {"form": form, "rules": rules} | strengths_context(rules, "")
    return render(request, "housing/placement_new.html", context, status=form.status)


def _suggested_name(cohort: Cohort) -> str:
    return free_name(cohort.name, cohort.placements.all())


@require_safe
@viewer_required
def placement(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show halls, floors and rooms, and the drawer of the room that the address names."""
    found = find_placement(request, uuid)
    if found.is_pairs:
        return pairs_page(request, uuid)
    if request.htmx and request.htmx.target == "drawer":
        context = drawer_context(found, request.GET, request.user)
        template = (
            "housing/_room_drawer.html" if context.get("drawer") else "housing/_room_gone.html"
        )
        return render(request, template, context)
    names_on_page(request, found.cohort)  # the look has its line, whichever rooms are shown
    context = placement_context(found, request.GET, request.user) | {"systems": SYSTEMS}
    return render(request, "housing/placement.html", context)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rules(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change the rules of a placement, as a new version of it."""
    found = find_placement(request, uuid)
    if found.is_pairs:
        return redirect("housing:placement", found.pk)  # its rules are a dialog there
    moved = passed_on(request, {"copy": "housing:placement-try"}, found.pk, field="as")
    return moved or _with_rules(request, found, rules_change)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def try_rules(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Copy a placement and compute the copy under other rules."""
    found = find_placement(request, uuid)
    if found.is_pairs:
        return redirect("housing:placement", found.pk)
    return _with_rules(request, found, placement_copy)


def _with_rules(
    request: SignedInRequest, found: Placement, act: Callable[..., Placement]
) -> HttpResponse:
    form = ChangedRulesForm.typed(
        request, cohort=found.cohort, now=rules_tried(found), halls=floors_by_hall(found.buildings)
    )
    changed: list[Placement] = []

    def perform(*, seed: int | None, **_: Any) -> None:
        changed.append(act(user=request.user, placement=found, rules=form.rules, seed=seed))

    if form.submit(request, perform):
        return redirect("housing:placement", changed[0].pk)
    now = form.rules
    context = {
        "placement": found,
        "cohort": found.cohort,
        "rules": now,
        "form": form,
        "counts": COUNT_WORDS,
        "suite_rules": SUITE_RULES,
        "has_suites": found.buildings.rooms.exclude(suite="").exists(),
    } | strengths_context(now, f"placement={found.pk}")
    return render(request, "housing/rules.html", context, status=form.status)


@require_POST
@staff_required
def compute(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Compute the rooms or pairs again around the decisions, as a new version."""
    found = find_placement(request, uuid)
    if found.is_pairs:
        attempt(request, lambda: pairs_compute(user=request.user, placement=found))
        return redirect("housing:placement", found.pk)

    def act(*, minutes: int | None) -> None:
        seconds = None if minutes is None else 60.0 * minutes
        placement_compute(user=request.user, placement=found, seconds=seconds)

    ComputeForm.typed(request).press(request, act)
    return redirect("housing:placement", found.pk)


@require_POST
@staff_required
def count_needs(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Compute the rooms again, counting the columns of needs that no rule names yet."""
    found = find_placement(request, uuid)
    attempt(request, lambda: placement_compute(user=request.user, placement=found, with_needs=True))
    return redirect("housing:placement", found.pk)


@require_POST
@staff_required
def relearn(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Place again with learned weights, as a scenario, if staff had set the weights by hand."""
    found = find_placement(request, uuid)
    if found.is_pairs:
        successor = learned_since(found.model)
        chosen = {
            "cohort": found.cohort_id,
            "model": successor.pk if successor else "",
            "buildings": PAIRS,
        }
        return redirect(f"{reverse('housing:placement-new')}?{urlencode(chosen)}")
    try:
        made = placement_relearn(user=request.user, placement=found)
    except Refusal as problem:
        toast(request, str(problem), error=True)
        return redirect("housing:placement", found.pk)
    return redirect("housing:placement", made.pk)


@require_POST
@staff_required
def solve(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Leave out requests, locks or pairs to keep apart that contradict others, and place again."""
    found = find_placement(request, uuid)

    def act(*, clash: int | None, leave: LeaveOut | None) -> None:
        leave = leave or LeaveOut.REQUESTS  # the button for all clashes sends neither
        words = clashes_solve(user=request.user, placement=found, clash=clash, leave=leave)
        toast(request, words)

    SolveForm.typed(request).press(request, act)
    return redirect("housing:placement", found.pk)


@require_POST
@administrator_required
def publish(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Publish a placement, or withdraw its publication once the number of beds is confirmed."""
    found = find_placement(request, uuid)
    form = PublishForm.typed(request)
    questions: list[Question] = []

    def act(*, action: PublishAct | None, people: int | None, version: int, back: str) -> None:
        user, names = request.user, {"name": found.name}
        if action is not PublishAct.WITHDRAW:
            placement_publish(user=user, placement=found, version=version)
            toast(request, _("%(name)s is published.") % names, icon="circle-check")
        elif people is None:
            questions.append(_withdrawal_question(found))
        else:
            placement_unpublish(user=user, placement=found, people=people)
            words = _("%(name)s is not published any more. The rooms stay as a draft.")
            toast(request, words % names)

    form.press(request, act)
    if questions:
        return ask(request, questions[0], found)
    if form["back"].value() == "scenarios":
        return redirect("housing:scenarios", found.cohort_id)
    return redirect("housing:placement", found.pk)


def _withdrawal_question(found: Placement) -> Question:
    placed = published_people(found)
    beds = counted(placed, "published bed")
    return Question(
        title=_("Withdraw the publication?"),
        sentences=[
            ngettext(
                "%(count)s student has a published bed in %(name)s. Without a publication "
                "nobody has one; the rooms stay as a draft.",
                "%(count)s students have a published bed in %(name)s. Without a publication "
                "nobody has one; the rooms stay as a draft.",
                placed,
            )
            % {"count": f"{placed:,}", "name": found.name},
            *withdrawal_notes(found),
        ],
        button=_("Withdraw %(beds)s") % {"beds": beds},
        address=reverse("housing:placement-publish", args=[found.pk]),
        fields={"action": "withdraw", "people": placed},
        is_danger=True,
        back=reverse("housing:placement", args=[found.pk]),
        trail=trail_of(found),
    )


@require_safe
@viewer_required
def scenarios(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the placements of one cohort side by side."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    return render(request, "housing/scenarios.html", scenarios_context(cohort, request.GET))


@require_safe
@staff_required
def scenarios_file(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download the comparison of scenarios; an audit line records who did."""
    cohort = get_owned_or_404(Cohort, request.user, uuid)
    if file_format not in ("csv", "xlsx"):
        raise Http404(_("There is no such format."))
    data, kind = scenarios_export(
        user=request.user, cohort=cohort, rows=scenarios_table(cohort), file_format=file_format
    )
    name = f"{plain_name(cohort.name)}-scenarios.{file_format}"
    return as_attachment(HttpResponse(data, content_type=kind), name)


@require_safe
@staff_required
def export(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download a roster with original ids; an audit line records who did."""
    found = find_placement(request, uuid)
    options: dict[str, Any] = {
        "user": request.user,
        "placement": found,
        "file_format": file_format,
        "exact": request.GET.get("ids") == "exact",
    }
    chosen = [name for name in request.GET.getlist("column") if name in COLUMNS]
    layout = LAYOUTS.get(request.GET.get("shape", ""), LAYOUTS["plain"])
    with_names = request.GET.get("names") == "1"
    return download(
        request,
        lambda: (
            rooms_export(**options, with_names=with_names)
            if request.GET.get("by") == "room"
            else roster_export(**options, layout=layout_of_columns(chosen) if chosen else layout)
        ),
        f"{plain_name(found.name)}.{file_format}",
        back=reverse("housing:placement", args=[found.pk]),
    )


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rename(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Rename a placement."""
    found = find_placement(request, uuid)
    act = partial(placement_rename, user=request.user, placement=found)
    return rename_page(request, "placement", act, trail_of(found))


@require_http_methods(["GET", "POST"])
@administrator_required
def delete(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove a placement, if its name was typed."""
    found = find_placement(request, uuid)
    act = partial(placement_delete, user=request.user, placement=found)
    words = _("This removes everybody's rooms and the history of every bed.")
    if found.is_pairs:
        words = ngettext(
            "This removes %(count)s pair with every decision about them.",
            "This removes %(count)s pairs with every decision about them.",
            found.n_pairs,
        ) % {"count": f"{found.n_pairs:,}"}
    return remove_page(request, _("Remove the placement"), act, trail_of(found), words=words)
