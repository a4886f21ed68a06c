"""Views of learned models."""

from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.cohorts.models import Cohort
from webapp.common.decorators import administrator_required, staff_required, viewer_required
from webapp.common.form_pages import Trail, remove_page, rename_page
from webapp.common.kept_forms import keeps_typed
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt
from webapp.files.file_headers import as_attachment
from webapp.matching.charts import model_charts, question_chart
from webapp.matching.forms import CheckForm, LearnForm
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import (
    again_query,
    certificate_of,
    cohorts_to_check,
    compared_weights,
    learned_since,
    live_certificate_of,
    model_listing,
    model_state,
    suggest_check,
    suggest_sources,
)
from webapp.matching.services.exports import weights_export
from webapp.matching.services.learning import (
    model_check,
    model_delete,
    model_estimate,
    model_learn,
    model_rename,
    model_stop,
)
from webapp.tabular.tables_out import CSV


@require_safe
@viewer_required
def model_list(request: SignedInRequest) -> HttpResponse:
    """List the models, newest first."""
    listing = model_listing(request.user, request.GET)
    context = {
        "listing": listing,
        "models": [(model, model_state(model)) for model in listing.rows],
        "has_pairs": owned_by(Cohort, request.user).filter(n_pairs__gt=1).exists(),
    }
    return render(request, "matching/model_list.html", context)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def model_new(request: SignedInRequest) -> HttpResponse:
    """Choose cohorts and settings, and start learning."""
    past = owned_by(Cohort, request.user).filter(n_pairs__gt=0)
    cohorts = list(past.select_related("half_of"))
    form = LearnForm.typed(request, cohorts=cohorts, initial=_initial(request, cohorts))
    made: list[LearnedModel] = []

    def learn(*, cohort: list[str], check_on: str, gap: float, method: str, **options: Any) -> None:
        chosen = [one for key, one in form.by_key.items() if key in cohort]
        made.append(
            model_learn(
                user=request.user,
                cohorts=sorted(chosen, key=lambda one: one.created_at),
                check_on=form.by_key.get(check_on),
                relative_gap=gap,
                method=method or "auto",
                **options,
            )
        )

    if form.submit(request, learn):
        return redirect("matching:model", made[0].pk)
    context = {"cohorts": cohorts, "form": form}
    return render(request, "matching/model_new.html", context, status=form.status)


def _initial(request: SignedInRequest, cohorts: list[Cohort]) -> dict[str, Any]:
    """Return what the address asks for, or the suggested cohorts."""
    sent = request.GET
    names = ("name", "ridge", "gap", "method", "rho", "seed", "check_on")
    initial: dict[str, Any] = {name: sent[name] for name in names if name in sent}
    chosen = sent.getlist("cohort")
    if "check_on" not in sent:
        chosen, initial["check_on"] = (
            (chosen, suggest_check(cohorts, chosen)) if chosen else suggest_sources(cohorts)
        )
    return initial | {"cohort": chosen}


def _find(request: SignedInRequest, uuid: str) -> LearnedModel:
    models = LearnedModel.objects.select_related("job", "check_job", "intervals_job")
    return get_owned_or_404(models, request.user, uuid)


@require_safe
@viewer_required
def model(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show a model: progress while it learns, its weights and checks afterwards."""
    found = _find(request, uuid)
    state = model_state(found)
    context: dict[str, Any] = {"model": found, "state": state, "by": request.GET.get("by", "time")}
    if found.is_set_by_hand:
        successor = learned_since(found)
        context |= {
            "placements": found.placements.all()[:5],
            "successor": successor,
            "weights": compared_weights(found, successor),
        }
        return render(request, "matching/model_set.html", context)
    if found.is_learned:
        index = whole_number(request.GET.get("question", ""))
        index = index if index is not None and index < len(found.weights) else None
        context |= {
            "certificate": certificate_of(found),
            "charts": model_charts(found),
            "opened": index,
            "has_intervals": any("interval" in row for row in found.weights),
            "has_drift": any("drift" in row for row in found.weights),
            "question": found.weights[index] if index is not None else None,
            "question_chart": question_chart(found.weights[index]) if index is not None else None,
            "checkable": cohorts_to_check(request.user, found),
            "placements": found.placements.all()[:5],
        }
        return render(request, "matching/model.html", context)
    context |= {"certificate": live_certificate_of(found), "again": again_query(found)}
    return render(request, "matching/model_learning.html", context)


@require_safe
@viewer_required
def certificate(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the certificate and badge of a running job, for polling; polling stops with the job."""
    found = _find(request, uuid)
    context = {
        "model": found,
        "certificate": live_certificate_of(found),
        "state": model_state(found),
    }
    return render(request, "matching/_polled_certificate.html", context)


@require_POST
@staff_required
def check(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Compare the model with the pairs of a held-out cohort."""
    found = _find(request, uuid)
    form = CheckForm.typed(request, user=request.user)
    form.press(request, partial(model_check, user=request.user, model=found))
    return redirect("matching:model", found.pk)


@require_POST
@staff_required
def stop(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Stop learning and keep the weights so far."""
    found = _find(request, uuid)
    attempt(
        request,
        lambda: model_stop(user=request.user, model=found),
        _("Learning stops after the current step and keeps the best weights so far."),
    )
    return redirect("matching:model", found.pk)


@require_POST
@staff_required
def estimate(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Estimate the confidence intervals of the weights."""
    found = _find(request, uuid)
    attempt(request, lambda: model_estimate(user=request.user, model=found))
    return redirect("matching:model", found.pk)


@require_safe
@viewer_required
def weights(request: SignedInRequest, uuid: str) -> HttpResponseBase:
    """Download the weights as CSV; an audit line names the reader."""
    data = weights_export(user=request.user, model=_find(request, uuid))
    return as_attachment(HttpResponse(data, content_type=CSV), "weights.csv")


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def rename(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Change the name of the model."""
    found = _find(request, uuid)
    act = partial(model_rename, user=request.user, model=found)
    return rename_page(request, "model", act, _trail(found))


def _trail(found: LearnedModel) -> Trail:
    own = reverse("matching:model", args=[found.pk])
    return [(_("Models"), reverse("matching:models")), (found.name, own)]


@require_http_methods(["GET", "POST"])
@administrator_required
def delete(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Delete the model if its name was typed."""
    found = _find(request, uuid)
    act = partial(model_delete, user=request.user, model=found)
    words = _("This removes the weights and the check.")
    return remove_page(request, _("Remove the model"), act, _trail(found), words=words)
