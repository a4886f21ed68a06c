"""Pages of webhooks, for administrators."""

from typing import Any

from django.db.models import OuterRef, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.requests import SignedInRequest
from webapp.common.acts import passed_on
from webapp.common.decorators import administrator_required
from webapp.common.errors import Refusal
from webapp.common.events import EVENTS
from webapp.common.kept_forms import keeps_typed
from webapp.common.listing import list_page
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.webhooks.errors import WebhookError
from webapp.webhooks.forms import DeliveryForm, NewWebhookForm, WebhookForm
from webapp.webhooks.models import Delivery, Webhook
from webapp.webhooks.services import (
    delivery_repeat,
    webhook_change,
    webhook_create,
    webhook_new_secret,
    webhook_remove,
    webhook_test,
)

_MOVED = {
    "secret": "webhooks:secret",
    "remove": "webhooks:remove",
    "test": "webhooks:test",
    "repeat": "webhooks:repeat",
}


@keeps_typed
@require_http_methods(["GET", "POST"])
@administrator_required
def webhook_list(request: SignedInRequest) -> HttpResponse:
    """Show the webhooks with their last delivery, and add a webhook."""
    form = NewWebhookForm.typed(request, initial={"event": list(EVENTS)})
    made: list[tuple[Webhook, str]] = []

    def create(*, url: str, event: list[str]) -> None:
        made.append(webhook_create(user=request.user, url=url, events=event))

    if form.submit(request, create):
        found, secret = made[0]
        return _page(request, found, _settings(found), secret)
    last = Delivery.objects.filter(webhook=OuterRef("pk")).order_by("-pk")
    webhooks = owned_by(Webhook, request.user).annotate(
        last_state=Subquery(last.values("state")[:1]),
        last_at=Subquery(last.values("created_at")[:1]),
    )
    context = {"webhooks": webhooks, "form": form}
    return render(request, "webhooks/list.html", context, status=form.status)


def _settings(found: Webhook) -> WebhookForm:
    return WebhookForm(initial=_values(found))


def _values(found: Webhook) -> dict[str, Any]:
    return {"url": found.url, "event": found.events, "is_paused": found.is_paused}


def _page(
    request: SignedInRequest, found: Webhook, form: WebhookForm, secret: str = ""
) -> HttpResponse:
    context: dict[str, Any] = {
        "webhook": found,
        "form": form,
        "secret": secret,
        "listing": list_page(found.deliveries.all(), request.GET, search=()),
    }
    response = render(request, "webhooks/webhook.html", context, status=form.status)
    response["Cache-Control"] = "no-store"
    return response


@keeps_typed
@require_http_methods(["GET", "POST"])
@administrator_required
def webhook(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show a webhook with its deliveries, and change it."""
    found = get_owned_or_404(Webhook, request.user, uuid)
    form = WebhookForm.typed(request, initial=_values(found))

    def change(*, url: str, event: list[str], is_paused: bool) -> None:
        webhook_change(user=request.user, webhook=found, url=url, events=event, is_paused=is_paused)

    if form.submit(request, change):
        toast(request, _("The webhook was changed."))
        return redirect("webhooks:webhook", found.pk)
    return _page(request, found, form)


@require_POST
@administrator_required
def test(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send a test now, and show the answer."""
    found = get_owned_or_404(Webhook, request.user, uuid)
    try:
        sent = webhook_test(user=request.user, webhook=found)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    else:
        failed = sent.state != Delivery.SENT
        words = (
            sent.error if failed else _("Arrived: answered %(answer)s.") % {"answer": sent.answer}
        )
        toast(request, words, error=failed)
    return redirect("webhooks:webhook", found.pk)


@require_POST
@administrator_required
def repeat(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send a failed delivery again."""
    found = get_owned_or_404(Webhook, request.user, uuid)
    form = DeliveryForm.typed(request)
    key = form.cleaned_data["delivery"] if form.is_valid() else None

    def act() -> None:
        delivery = found.deliveries.filter(pk=key).first() if key is not None else None
        if delivery is None:
            raise WebhookError(_("There is no such delivery any more."))
        delivery_repeat(user=request.user, delivery=delivery)

    attempt(request, act, _("It goes out again in a few seconds."))
    return redirect("webhooks:webhook", found.pk)


@require_POST
@administrator_required
def secret(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Replace the secret, and show the new one once."""
    found = get_owned_or_404(Webhook, request.user, uuid)
    made = webhook_new_secret(user=request.user, webhook=found)
    return _page(request, found, _settings(found), made)


@require_POST
@administrator_required
def remove(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remove a webhook with the list of its deliveries."""
    found = get_owned_or_404(Webhook, request.user, uuid)
    webhook_remove(user=request.user, webhook=found)
    toast(request, _("%(url)s receives nothing from now on.") % {"url": found.url})
    return redirect("webhooks:list")


@require_POST
@administrator_required
def act(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Repeat an act at its own address; until version 0.2 this address took four of them."""
    found = get_owned_or_404(Webhook, request.user, uuid)
    moved = passed_on(request, _MOVED, found.pk)
    if moved is not None:
        return moved
    toast(request, _("There is no such action."), error=True)
    return redirect("webhooks:webhook", found.pk)
