"""Addresses of the proposals of earlier versions, which lead to placements."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import viewer_required
from webapp.common.selectors import get_owned_or_404
from webapp.housing.models import Placement


def moved_to(name: str) -> Callable[..., HttpResponseBase]:
    """Return a view that leads to a page of placements for good; a form is sent again."""

    @require_http_methods(["GET", "HEAD", "POST"])
    @viewer_required
    def moved(request: SignedInRequest, **parts: Any) -> HttpResponseBase:
        if "uuid" in parts:
            get_owned_or_404(Placement, request.user, parts["uuid"])
        query = request.GET.copy()
        if name == "placement-new":
            query["buildings"] = query.get("buildings", "pairs")
        address = reverse(f"housing:{name}", kwargs=parts)
        if query:
            address = f"{address}?{urlencode(list(query.lists()), doseq=True)}"
        return redirect(address, permanent=True, preserve_request=request.method == "POST")

    return moved
