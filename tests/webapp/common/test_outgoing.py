"""What waits to be sent, on a machine whose clock is set back an hour."""

from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.outgoing import send_due
from webapp.webhooks.models import Delivery, Webhook


@pytest.fixture
def webhook(bob: User) -> Webhook:
    return Webhook.objects.create(
        organisation=bob.organisation, url="https://example.org/", events=["job.failed"], nonce="n"
    )


def test_a_clock_set_back_holds_nothing_back(webhook: Webhook) -> None:
    """Rows that were due before the change waited until the clock had come to that time again."""
    ahead = timezone.now() + timedelta(hours=1)
    fresh = webhook.deliveries.create(event="job.failed", body="{}", due_at=ahead)
    failed = webhook.deliveries.create(
        event="job.failed", body="{}", attempts=2, due_at=ahead + timedelta(minutes=4)
    )
    claimed = webhook.deliveries.create(
        event="job.failed", body="{}", state=Delivery.SENDING, attempts=1, due_at=ahead
    )
    pausing = webhook.deliveries.create(
        event="job.failed", body="{}", attempts=3, due_at=timezone.now() + timedelta(minutes=8)
    )
    sent: list[Delivery] = []
    assert send_due(Delivery.objects.all(), sent.append) == 2
    assert {row.pk for row in sent} == {fresh.pk, failed.pk}
    pausing.refresh_from_db()
    assert pausing.state == Delivery.WAITING
    claimed.refresh_from_db()
    assert claimed.due_at <= timezone.now(), "its sender is waited for ten minutes, not seventy"
