"""Endpoints for webhooks, for administrators: add, change, test, read deliveries."""

from typing import Any
from uuid import UUID

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import webhooks as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.webhooks import services
from webapp.webhooks.models import Webhook

HEAD: dict[str, Any] = {"tag": "Webhooks", "role": Role.ADMINISTRATOR}


def _find(request: Request, key: UUID) -> Webhook:
    return get_owned_or_404(Webhook, request.user, key)


@endpoint("GET", "/webhooks", summary="List webhooks", query=Paging, **HEAD)
def list_webhooks(request: Request) -> Page[shapes.Webhook]:
    """Return the organisation's webhooks."""
    return page_of(request, owned_by(Webhook, request.user), shapes.Webhook)


@endpoint(
    "POST",
    "/webhooks",
    summary="Add a webhook",
    body=shapes.NewWebhook,
    status=201,
    description="The secret of the answer is not shown again. Deliveries are signed as Standard "
    "Webhooks are; redirects are not followed, and addresses inside a network are refused.",
    **HEAD,
)
def add_webhook(request: Request) -> shapes.Secret:
    """Add a webhook."""
    sent = read_body(request, shapes.NewWebhook)
    made, secret = services.webhook_create(user=request.user, url=sent.url, events=sent.events)
    return shapes.Secret(id=made.pk, secret=secret)


@endpoint("GET", "/webhooks/{webhook_id}", summary="Look at a webhook", **HEAD)
def get_webhook(request: Request, webhook_id: UUID) -> shapes.Webhook:
    """Return one webhook."""
    return shapes.Webhook.model_validate(_find(request, webhook_id))


@endpoint(
    "PUT", "/webhooks/{webhook_id}", summary="Change a webhook", body=shapes.NewWebhook, **HEAD
)
def change_webhook(request: Request, webhook_id: UUID) -> shapes.Webhook:
    """Change a webhook's URL, events or pause."""
    found = _find(request, webhook_id)
    sent = read_body(request, shapes.NewWebhook)
    changed = services.webhook_change(user=request.user, webhook=found, **sent.model_dump())
    return shapes.Webhook.model_validate(changed)


@endpoint("DELETE", "/webhooks/{webhook_id}", summary="Remove a webhook", status=204, **HEAD)
def remove_webhook(request: Request, webhook_id: UUID) -> None:
    """Delete a webhook with its deliveries."""
    services.webhook_remove(user=request.user, webhook=_find(request, webhook_id))


@endpoint("POST", "/webhooks/{webhook_id}/secret", summary="Make a new secret", **HEAD)
def renew_secret(request: Request, webhook_id: UUID) -> shapes.Secret:
    """Replace a webhook's secret; the old secret signs nothing from now on."""
    found = _find(request, webhook_id)
    secret = services.webhook_new_secret(user=request.user, webhook=found)
    return shapes.Secret(id=found.pk, secret=secret)


@endpoint("POST", "/webhooks/{webhook_id}/test", summary="Send a test", **HEAD)
def test_webhook(request: Request, webhook_id: UUID) -> shapes.Delivery:
    """Send a test now and return its delivery."""
    sent = services.webhook_test(user=request.user, webhook=_find(request, webhook_id))
    return shapes.Delivery.model_validate(sent)


@endpoint(
    "GET", "/webhooks/{webhook_id}/deliveries", summary="List deliveries", query=Paging, **HEAD
)
def list_deliveries(request: Request, webhook_id: UUID) -> Page[shapes.Delivery]:
    """Return the deliveries of the last 30 days, newest first."""
    return page_of(request, _find(request, webhook_id).deliveries.all(), shapes.Delivery)


@endpoint(
    "POST",
    "/webhooks/{webhook_id}/deliveries/{delivery_id}/repeat",
    summary="Send a delivery again",
    **HEAD,
)
def repeat_delivery(request: Request, webhook_id: UUID, delivery_id: int) -> shapes.Delivery:
    """Queue a failed delivery again, under the same key."""
    delivery = get_or_404(_find(request, webhook_id).deliveries.all(), delivery_id)
    services.delivery_repeat(user=request.user, delivery=delivery)
    delivery.refresh_from_db()
    return shapes.Delivery.model_validate(delivery)
