"""Pages of webhooks, for administrators."""

from typing import Any

from django.db.models import OuterRef, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import administrator_required
from webapp.common.errors import Refusal
from webapp.common.events import EVENTS
from webapp.common.listing import list_page
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import toast
from webapp.webhooks.errors import WebhookError
from webapp.webhooks.models import Delivery, Webhook
from webapp.webhooks.services import (
    delivery_repeat,
    webhook_change,
    webhook_create,
    webhook_new_secret,
    webhook_remove,
    webhook_test,
)


@require_http_methods(["GET", "POST"])
@administrator_required
def webhook_list(request: SignedInRequest) -> HttpResponse:
    """Show the webhooks with their last delivery, and add a webhook."""
    error, url, chosen = "", "", list(EVENTS)
    if request.method == "POST":
        url, chosen = request.POST.get("url", ""), request.POST.getlist("event")
        try:
            made, secret = webhook_create(user=request.user, url=url, events=chosen)
            return _page(request, made, secret)
        except WebhookError as problem:
            error = str(problem)
    last = Delivery.objects.filter(webhook=OuterRef("pk")).order_by("-pk")
    webhooks = owned_by(Webhook, request.user).annotate(
        last_state=Subquery(last.values("state")[:1]),
        last_at=Subquery(last.values("created_at")[:1]),
    )
    context = {
        "webhooks": webhooks,
        "events": EVENTS,
        "url": url,
        "chosen": chosen,
        "error": error,
    }
    return render(request, "webhooks/list.html", context, status=422 if error else 200)


def _page(
    request: SignedInRequest, found: Webhook, secret: str = "", error: str = ""
) -> HttpResponse:
    context: dict[str, Any] = {
        "webhook": found,
        "events": EVENTS,
        "secret": secret,
        "error": error,
        "listing": list_page(found.deliveries.all(), request.GET, search=()),
    }
    response = render(request, "webhooks/webhook.html", context, status=422 if error else 200)
    response["Cache-Control"] = "no-store"
    return response


@require_http_methods(["GET", "POST"])
@administrator_required
def webhook(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show a webhook with its deliveries, and change it."""
    found, error = get_owned_or_404(Webhook, request.user, uuid), ""
    if request.method == "POST":
        try:
            webhook_change(
                user=request.user,
                webhook=found,
                url=request.POST.get("url", ""),
                events=request.POST.getlist("event"),
                is_paused=bool(request.POST.get("is_paused")),
            )
            toast(request, "The webhook was changed.")
            return redirect("webhooks:webhook", found.pk)
        except WebhookError as problem:
            error = str(problem)
    return _page(request, found, error=error)


@require_POST
@administrator_required
def act(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send a test, repeat a delivery, replace the secret, or remove the webhook."""
    found = get_owned_or_404(Webhook, request.user, uuid)
    wanted = request.POST.get("act", "")
    try:
        if wanted == "secret":
            return _page(request, found, webhook_new_secret(user=request.user, webhook=found))
        if wanted == "remove":
            webhook_remove(user=request.user, webhook=found)
            toast(request, f"{found.url} receives nothing from now on.")
            return redirect("webhooks:list")
        if wanted == "test":
            sent = webhook_test(user=request.user, webhook=found)
            failed = sent.state != Delivery.SENT
            words = sent.error if failed else f"Arrived: answered {sent.answer}."
            toast(request, words, error=failed)
        elif wanted == "repeat":
            key = whole_number(request.POST.get("delivery", ""))
            delivery = found.deliveries.filter(pk=key).first() if key is not None else None
            if delivery is None:
                raise WebhookError("There is no such delivery any more.")
            delivery_repeat(user=request.user, delivery=delivery)
            toast(request, "It goes out again in a few seconds.")
        else:
            raise WebhookError("There is no such action.")
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return redirect("webhooks:webhook", found.pk)
