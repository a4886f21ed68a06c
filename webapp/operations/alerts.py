"""Mails about faults: one once a fault has lasted, and one when it is over.

The sweep of every host checks. A fault that only one host can see (its disk, its network) is that
host's alert and ends when that host reports it over; any other fault is one alert, whichever host
sees it. Without the database no mail can be queued: use ``/readyz`` and ``/metrics`` for that.
"""

import socket
import time
from datetime import timedelta

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from webapp.common import formats
from webapp.common.models import Installation
from webapp.common.outgoing import mails_send_due
from webapp.operations.alarms import Alarm, installation_alarms
from webapp.operations.models import Alert, AlertMail, AlertReader

LOOK_SECONDS = 20.0
LASTS = timedelta(seconds=45)  # a fault must last this long before anybody gets a mail
FORGET = timedelta(days=90)
_looked_at = float("-inf")


def alerts_note(*, fresh: bool = False) -> None:
    """Compare the current faults with the open alerts and queue mails; called by every sweep."""
    global _looked_at
    if not fresh and time.monotonic() - _looked_at < LOOK_SECONDS:
        return
    _looked_at = time.monotonic()
    host = socket.gethostname()[:120]
    found = {(alarm.key, host if alarm.is_local else ""): alarm for alarm in installation_alarms()}
    with transaction.atomic():
        # One sweep after the other, so that only one of several hosts queues the mails.
        if not Installation.objects.select_for_update().filter(pk=1).exists():
            return
        known = {
            (alert.key, alert.host): alert
            for alert in Alert.objects.filter(ended_at=None, host__in=("", host))
        }
        for where in found.keys() - known.keys():
            _begin(found[where], *where)
        lasting = Alert.objects.filter(told_at=None, began_at__lte=Now() - LASTS)
        for alert in lasting.filter(pk__in=[known[w].pk for w in found.keys() & known.keys()]):
            _tell(alert)
        for where in known.keys() - found.keys():
            _end(known[where])
        Alert.objects.filter(ended_at__lt=Now() - FORGET).delete()


def _begin(alarm: Alarm, key: str, host: str) -> None:
    alert = Alert(key=key, host=host, title=alarm.title[:200], detail=alarm.detail, began_at=Now())
    alert.save()


def _tell(alert: Alert) -> None:
    """Queue the mails about an alert to everybody who gets alert mails now."""
    Alert.objects.filter(pk=alert.pk).update(told_at=Now())
    began = formats.when(alert.began_at, timezone.localtime())
    where = f" (seen from {alert.host})" if alert.host else ""
    text = f"{alert.title}{where}, since {began}.\n\n{alert.detail}\n\n{_FOOT}"
    AlertMail.objects.bulk_create(
        AlertMail(
            alert=alert, user=reader.user, address=reader.address, subject=alert.title, text=text
        )
        for reader in _readers()
    )


def _end(alert: Alert) -> None:
    """Queue the mails that a fault is over, to everybody who got a mail that it began."""
    if alert.told_at is None:
        alert.delete()
        return
    Alert.objects.filter(pk=alert.pk).update(ended_at=Now())
    began = formats.when(alert.began_at, timezone.localtime())
    text = f"Since {began} this was wrong:\n\n{alert.title}\n\nIt is well again.\n\n{_FOOT}"
    AlertMail.objects.bulk_create(
        AlertMail(
            alert=alert,
            user_id=key,
            address=address,
            subject=f"Resolved: {alert.title}"[:200],
            text=text,
            is_end=True,
        )
        for key, address in alert.mails.filter(is_end=False).values_list("user_id", "address")
    )


_FOOT = (
    "You get this mail because you chose “Alert me” on the page Operations, where you can look at "
    "it and end these mails."
)


def _readers() -> list[AlertReader]:
    """Return the readers who are still active operators."""
    readers = AlertReader.objects.filter(user__is_active=True, user__is_operator=True)
    return list(readers.select_related("user"))


def alert_mails_send() -> int:
    """Send the mails that are due and return their number; a mail twice is better than none."""
    return mails_send_due(AlertMail.objects.all(), _message)


def _message(mail: AlertMail) -> EmailMessage:
    headers = {"Auto-Submitted": "auto-generated"}
    subject = f"Bethe Hall: {mail.subject}"
    return EmailMessage(subject, mail.text, to=[mail.address], headers=headers)
