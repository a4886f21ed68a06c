"""Adding, changing and testing webhooks; queueing and sending what they are told."""

import json
import secrets
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.utils import timezone

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
MAX_WEBHOOKS = 20  # of one organisation
TESTS_A_MINUTE = 10
KEPT = timedelta(days=30)
_GONE = 410  # the other program wants no more
_SECONDS_EACH = 3.0  # of one turn, for each address


def webhook_create(*, user: User, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """Add an address; return it with its secret, which is shown once.

    Raises WebhookError in one sentence: the address is none or inside a network, is there already,
    or no event was chosen.
    """
    url, events = check_url(url), _checked(events)
    with transaction.atomic():
        if Webhook.objects.filter(organisation=user.organisation).count() >= MAX_WEBHOOKS:
            raise WebhookError(f"An organisation has at most {MAX_WEBHOOKS} webhooks.")
        try:
            with transaction.atomic():
                webhook = Webhook.objects.create(
                    organisation=user.organisation,
                    created_by=user,
                    url=url,
                    events=events,
                    nonce=secrets.token_urlsafe(18),
                )
        except IntegrityError as error:
            raise WebhookError("This address is there already. Change its events.") from error
        audit(user, "added a webhook", webhook, events=events)
    return webhook, secret_of(webhook)


def _checked(events: Sequence[str]) -> list[str]:
    unknown = [name for name in events if name not in EVENTS]
    if unknown or not events:
        raise WebhookError("Choose at least one of the events.")
    return [name for name in EVENTS if name in events]


def webhook_change(
    *, user: User, webhook: Webhook, url: str, events: Sequence[str], is_paused: bool
) -> Webhook:
    """Change address, events or rest; what waits goes to the new address."""
    url, events = check_url(url), _checked(events)
    try:
        with transaction.atomic():
            Webhook.objects.filter(pk=webhook.pk).update(
                url=url, events=events, is_paused=is_paused, pause_reason=""
            )
            audit(user, "changed a webhook", webhook, url=url, events=events, paused=is_paused)
    except IntegrityError as error:
        raise WebhookError("Another webhook has this address.") from error
    webhook.refresh_from_db()
    return webhook


def webhook_new_secret(*, user: User, webhook: Webhook) -> str:
    """Make another secret and return it; the old one signs nothing from now on."""
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(nonce=secrets.token_urlsafe(18))
        audit(user, "made a new secret", webhook)
    webhook.refresh_from_db()
    return secret_of(webhook)


def webhook_remove(*, user: User, webhook: Webhook) -> None:
    """Forget an address with what was delivered to it."""
    with transaction.atomic():
        audit(user, "removed a webhook", webhook)
        webhook.delete()


def webhook_test(*, user: User, webhook: Webhook) -> Delivery:
    """Send a test now and return what became of it; it is tried once."""
    if count_up("webhook-tests", str(user.organisation_id)) > TESTS_A_MINUTE:
        wait = seconds_left()
        raise TooManyError(f"{TESTS_A_MINUTE} tests a minute are enough. Wait {wait} s.", wait)
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
    """Send a delivery that failed again, under the same key."""
    with transaction.atomic():
        failed = Delivery.objects.filter(pk=delivery.pk, state=Delivery.FAILED)
        if not failed.update(state=Delivery.WAITING, attempts=0, due_at=timezone.now()):
            raise WebhookError("Only what failed is sent again.")
        audit(user, "sent a delivery again", delivery.webhook, event=delivery.event)


def deliveries_queue(organisation: Any, event: str, data: dict[str, Any]) -> None:
    """Queue an event to everybody who wants it; call it in the transaction of the act."""
    listening = Webhook.objects.filter(organisation_id=organisation, is_paused=False)
    found = [_delivery(one, event, data) for one in listening if event in one.events]
    Delivery.objects.bulk_create(found)


def _delivery(webhook: Webhook, event: str, data: dict[str, Any]) -> Delivery:
    content = {"type": event, "timestamp": timezone.now().isoformat(), "data": data}
    return Delivery(webhook=webhook, event=event, body=json.dumps(content, cls=DjangoJSONEncoder))


def deliveries_send() -> int:
    """Send what is due to every address, and return how many arrived.

    Each address has its own turn, so that one who is away keeps nobody else waiting.
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
    except WebhookError as error:  # the address leads inside by now
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
    """Forget deliveries that are long over, and return how many."""
    old = Delivery.objects.filter(created_at__lt=timezone.now() - KEPT)
    count, _ = old.exclude(state__in=(Outgoing.WAITING, Outgoing.SENDING)).delete()
    return count
