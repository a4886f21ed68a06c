"""Pages of a placement in pairs: its pairs, its numbers and its file."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required, viewer_required
from webapp.common.selectors import get_owned_or_404
from webapp.files.downloads import download
from webapp.files.file_headers import plain_name
from webapp.housing.models import Placement
from webapp.housing.pairs.charts import compare_scores, probability_heatmap
from webapp.housing.pairs.exports import pairs_export
from webapp.housing.pairs.numbers import PairNumbers
from webapp.housing.pairs.pages import pairs_context
from webapp.housing.pairs.table import with_questions


def find_pairs(request: SignedInRequest, uuid: str) -> Placement:
    """Return a placement in pairs of the user's organisation or answer 404."""
    return get_owned_or_404(with_questions(), request.user, uuid)


def find_pairs_to_change(request: SignedInRequest, uuid: str) -> Placement:
    """Return what :func:`find_pairs` does, without relations: the act locks and reads it again."""
    return get_owned_or_404(Placement.objects.filter(is_pairs=True), request.user, uuid)


def pairs_page(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the pairs of a placement under the URL's tab, order, filter and page."""
    found = find_pairs(request, uuid)
    context = pairs_context(found, request.GET, request.user)
    is_part = request.htmx and request.htmx.target == "pairs"
    if not is_part:
        return render(request, "housing/pairs/page.html", context)
    response = render(request, "housing/pairs/_body.html", context)
    kept = {name: value for name, value in request.GET.items() if value}
    response["HX-Push-Url"] = f"{request.path}?{urlencode(kept)}"
    return response


@require_safe
@viewer_required
def numbers(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the charts of a placement in pairs."""
    found = find_pairs(request, uuid)
    context: dict[str, Any] = {"placement": found}
    if found.is_computed:
        known = PairNumbers(found)
        context |= {"scores": compare_scores(known), "heatmap": probability_heatmap(known)}
    return render(request, "housing/pairs/look.html", context)


@require_safe
@staff_required
def export(request: SignedInRequest, uuid: str, file_format: str) -> HttpResponseBase:
    """Download the pairs with original ids; an audit line names the reader."""
    found = find_pairs(request, uuid)
    return download(
        request,
        lambda: pairs_export(
            user=request.user,
            placement=found,
            file_format=file_format,
            decided_only=request.GET.get("only") == "decided",
            with_names=request.GET.get("names") == "1",
        ),
        f"{plain_name(found.name, 'pairs')}.{file_format}",
        back=reverse("housing:placement", args=[found.pk]),
    )
