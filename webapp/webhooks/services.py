"""Adding, changing and testing webhooks; queueing and sending their events."""

import json
import secrets
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.events import EVENTS
from webapp.common.limits import TooManyError, count_up, seconds_left
from webapp.common.outgoing import Outgoing, RefusedError, UnreachableError, send_due
from webapp.webhooks.errors import WebhookError
from webapp.webhooks.models import Delivery, Webhook
from webapp.webhooks.signing import secret_of, signed_headers
from webapp.webhooks.transport import check_url, post

TEST_EVENT = "test"
MAX_WEBHOOKS = 20  # per organisation
TESTS_A_MINUTE = 10
KEPT = timedelta(days=30)
_GONE = 410  # the other program wants no more deliveries
_SECONDS_EACH = 3.0  # per webhook and turn


def webhook_create(*, user: User, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """Add a webhook; return it with its secret, which is shown once.

    Raises WebhookError in one sentence: the URL is invalid, inside a private network or already
    there, or no event was chosen.
    """
    url, events = check_url(url), _checked(events)
    with transaction.atomic():
        if Webhook.objects.filter(organisation=user.own_organisation).count() >= MAX_WEBHOOKS:
            raise WebhookError(
                _("An organisation has at most %(max_webhooks)s webhooks.")
                % {"max_webhooks": MAX_WEBHOOKS}
            )
        try:
            with transaction.atomic():
                webhook = Webhook.objects.create(
                    organisation=user.own_organisation,
                    created_by=user,
                    url=url,
                    events=events,
                    nonce=secrets.token_urlsafe(18),
                )
        except IntegrityError as error:
            raise WebhookError(_("This address is there already. Change its events.")) from error
        audit(user, "added a webhook", webhook, events=events)
    return webhook, secret_of(webhook)


def _checked(events: Sequence[str]) -> list[str]:
    unknown = [name for name in events if name not in EVENTS]
    if unknown or not events:
        raise WebhookError(_("Choose at least one of the events."), "event")
    return [name for name in EVENTS if name in events]


def webhook_change(
    *, user: User, webhook: Webhook, url: str, events: Sequence[str], is_paused: bool
) -> Webhook:
    """Change a webhook's URL, events or pause; waiting deliveries go to the new URL."""
    url, events = check_url(url), _checked(events)
    try:
        with transaction.atomic():
            Webhook.objects.filter(pk=webhook.pk).update(
                url=url, events=events, is_paused=is_paused, pause_reason=""
            )
            audit(user, "changed a webhook", webhook, url=url, events=events, paused=is_paused)
    except IntegrityError as error:
        raise WebhookError(_("Another webhook has this address.")) from error
    webhook.refresh_from_db()
    return webhook


def webhook_new_secret(*, user: User, webhook: Webhook) -> str:
    """Replace a webhook's secret and return the new one; the old one signs nothing from now on."""
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(nonce=secrets.token_urlsafe(18))
        audit(user, "made a new secret", webhook)
    webhook.refresh_from_db()
    return secret_of(webhook)


def webhook_remove(*, user: User, webhook: Webhook) -> None:
    """Delete a webhook with its deliveries."""
    with transaction.atomic():
        audit(user, "removed a webhook", webhook)
        webhook.delete()


def webhook_test(*, user: User, webhook: Webhook) -> Delivery:
    """Send a test delivery now and return its result; it is tried once."""
    if count_up("webhook-tests", str(user.organisation_id)) > TESTS_A_MINUTE:
        wait = seconds_left()
        raise TooManyError(
            _("%(tests_a_minute)s tests a minute are enough. Wait %(wait)s s.")
            % {"tests_a_minute": TESTS_A_MINUTE, "wait": wait},
            wait,
        )
    with transaction.atomic():
        data = {"sentence": "This is a test of a webhook. Nothing happened."}
        delivery = _delivery(webhook, TEST_EVENT, data)
        delivery.state, delivery.attempts = Delivery.SENDING, 1
        delivery.save()
        audit(user, "tested a webhook", webhook)
    state, error = Delivery.SENT, ""
    try:
        _send(delivery)
    except (RefusedError, UnreachableError, WebhookError) as problem:
        state, error = Delivery.FAILED, str(problem)[:200]
    sent_at = timezone.now() if state == Delivery.SENT else None
    Delivery.objects.filter(pk=delivery.pk).update(state=state, error=error, sent_at=sent_at)
    delivery.refresh_from_db()
    return delivery


def delivery_repeat(*, user: User, delivery: Delivery) -> None:
    """Send a failed delivery again, under the same key."""
    with transaction.atomic():
        failed = Delivery.objects.filter(pk=delivery.pk, state=Delivery.FAILED)
        if not failed.update(state=Delivery.WAITING, attempts=0, due_at=timezone.now()):
            raise WebhookError(_("Only what failed is sent again."))
        audit(user, "sent a delivery again", delivery.webhook, event=delivery.event)


def deliveries_queue(
    *, sender: str, organisation: Any, data: dict[str, Any], **kwargs: Any
) -> None:
    """Queue the event named ``sender`` to every webhook that has chosen it.

    It receives `webapp.common.events.event_sent`, in the transaction of the act.
    """
    listening = Webhook.objects.filter(organisation_id=organisation, is_paused=False)
    found = [_delivery(one, sender, data) for one in listening if sender in one.events]
    Delivery.objects.bulk_create(found)


def _delivery(webhook: Webhook, event: str, data: dict[str, Any]) -> Delivery:
    content = {"type": event, "timestamp": timezone.now().isoformat(), "data": data}
    return Delivery(webhook=webhook, event=event, body=json.dumps(content, cls=DjangoJSONEncoder))


def deliveries_send() -> int:
    """Send the deliveries that are due and return how many arrived.

    Each webhook has its own turn, so that one that does not answer delays no other.
    """
    waiting = Delivery.objects.filter(state__in=(Outgoing.WAITING, Outgoing.SENDING))
    keys = waiting.filter(webhook__is_paused=False).order_by().values_list("webhook", flat=True)
    sent = 0
    for key in keys.distinct():
        mine = Delivery.objects.filter(webhook=key, webhook__is_paused=False)
        sent += send_due(mine.select_related("webhook"), _send, seconds=_SECONDS_EACH)
    return sent


def _send(delivery: Delivery) -> None:
    webhook = delivery.webhook
    headers = signed_headers(webhook, str(delivery.key), int(time.time()), delivery.body)
    headers |= {"Content-Type": "application/json", "User-Agent": "Bethe-Hall-Webhooks/1"}
    started = time.monotonic()
    try:
        status = post(webhook.url, delivery.body, headers)
    except WebhookError as error:  # the name resolves to a private network by now
        raise RefusedError(str(error)) from error
    milliseconds = round(1000 * (time.monotonic() - started))
    Delivery.objects.filter(pk=delivery.pk).update(answer=status, milliseconds=milliseconds)
    if status == _GONE:
        reason = "The program answered that it wants no more (410)."
        Webhook.objects.filter(pk=webhook.pk).update(is_paused=True, pause_reason=reason)
        raise RefusedError(reason)
    if 300 <= status < 400:
        raise UnreachableError(f"Answered {status}; redirects are not followed.")
    if not 200 <= status < 300:
        raise UnreachableError(f"Answered {status}.")


def deliveries_expire() -> int:
    """Delete old finished deliveries and return their number."""
    old = Delivery.objects.filter(created_at__lt=timezone.now() - KEPT)
    count, _rest = old.exclude(state__in=(Outgoing.WAITING, Outgoing.SENDING)).delete()
    return count
