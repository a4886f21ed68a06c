"""Outgoing messages, kept in rows, claimed before they are sent, and tried again.

Mails of questionnaires, letters and deliveries to other programs are rows of this shape. A row is
claimed by compare-and-set, so that only one of two senders sends it. The sweep calls
:func:`send_due` repeatedly; after each failure a row waits twice as long.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from smtplib import SMTPRecipientsRefused, SMTPResponseException
from typing import Any

import structlog
from django.core.mail import EmailMessage, get_connection
from django.db import models
from django.db.models import F
from django.utils import timezone

from webapp.monitoring.masking import mask_addresses

log = structlog.get_logger(__name__)

BUDGET_SECONDS = 4.0  # of one sweep, which also handles jobs
_CLAIM_MINUTES = 10  # after which a row with a dead sender is due again
_AT_ONCE = 500
REFUSED = "The mail server refused the address: "  # followed by the server's answer
_PERMANENT = 500  # SMTP: from this code on, another try will not help


class Outgoing(models.Model):
    """Message on its way; ``due_at`` is its time to go, or the time when it was claimed."""

    WAITING, SENDING, SENT, FAILED = "waiting", "sending", "sent", "failed"
    MAX_ATTEMPTS = 5

    state = models.CharField(max_length=8, default=WAITING, db_index=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True)
    due_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class OutgoingMail(Outgoing):
    """Mail on its way to one ``address``."""

    subject = models.CharField(max_length=200)
    text = models.TextField()

    class Meta:
        abstract = True


class RefusedError(Exception):
    """Error of a receiver that refused; another try will not help."""


class UnreachableError(Exception):
    """Error of a receiver that does not answer now; the rest of this turn would fail too."""


def send_due(
    rows: models.QuerySet[Any],
    send: Callable[[Any], None],
    *,
    lost: str = "",
    seconds: float = BUDGET_SECONDS,
) -> int:
    """Send the due rows for at most ``seconds``, and return how many were sent.

    Parameters
    ----------
    rows : queryset of one kind of :class:`Outgoing`
    send : function of a row
        Raises RefusedError to give up, UnreachableError to try this row later and no other now,
        anything else to try this row later.
    lost : str
        Error of a row whose sender died half-way, and which may have arrived. "": it is sent again,
        because twice is better than never.
    """
    _bring_back(rows)
    _find_lost(rows, lost)
    now, started, sent = timezone.now(), time.monotonic(), 0
    due = rows.filter(state=Outgoing.WAITING, due_at__lte=now).order_by("due_at", "pk")
    for key in list(due.values_list("pk", flat=True)[:_AT_ONCE]):
        if time.monotonic() - started > seconds:
            break
        claimed = rows.filter(pk=key, state=Outgoing.WAITING).update(
            state=Outgoing.SENDING, attempts=F("attempts") + 1, due_at=timezone.now()
        )
        row = rows.filter(pk=key).first() if claimed else None
        if row is None:
            continue
        try:
            send(row)
        except Exception as error:  # any answer of the other side is stored with the row
            _keep_failure(rows, row, error)
            if isinstance(error, UnreachableError):
                break
            continue
        held = rows.filter(pk=key, state=Outgoing.SENDING)
        sent += held.update(state=Outgoing.SENT, sent_at=timezone.now(), error="")
    return sent


def _bring_back(rows: models.QuerySet[Any]) -> None:
    """Make rows due now that would wait longer than any pause: the clock was set back."""
    now = timezone.now()
    for attempts in range(rows.model.MAX_ATTEMPTS + 1):
        latest = now + timedelta(minutes=2**attempts + 1)
        waiting = rows.filter(state=Outgoing.WAITING, attempts=attempts, due_at__gt=latest)
        waiting.update(due_at=now)
    claimed = rows.filter(state=Outgoing.SENDING, due_at__gt=now + timedelta(minutes=1))
    claimed.update(due_at=now)


def _find_lost(rows: models.QuerySet[Any], lost: str) -> None:
    now = timezone.now()
    found = rows.filter(state=Outgoing.SENDING, due_at__lt=now - timedelta(minutes=_CLAIM_MINUTES))
    if lost:
        found.update(state=Outgoing.FAILED, error=lost)
    else:
        found.update(state=Outgoing.WAITING, due_at=now)


def _keep_failure(rows: models.QuerySet[Any], row: Outgoing, error: Exception) -> None:
    words = mask_addresses(sentence_of(error))  # servers repeat the address of the person
    is_last = isinstance(error, RefusedError) or row.attempts >= row.MAX_ATTEMPTS
    rows.filter(pk=row.pk, state=Outgoing.SENDING).update(
        state=Outgoing.FAILED if is_last else Outgoing.WAITING,
        error=words[:200],
        due_at=timezone.now() + timedelta(minutes=2**row.attempts),
    )
    kind = row._meta.verbose_name
    log.warning("not sent", kind=kind, row=row.pk, attempt=row.attempts, error=words)


def sentence_of(error: Exception) -> str:
    """Return the error in a sentence; other libraries' errors get the name of their kind."""
    own = isinstance(error, RefusedError | UnreachableError)
    return str(error) if own else f"{type(error).__name__}: {error}"


def mails_send_due(
    rows: models.QuerySet[Any],
    compose: Callable[[Any], EmailMessage],
    *,
    lost: str = "",
    seconds: float = BUDGET_SECONDS,
) -> int:
    """Send the due mails over one connection, and return how many were sent."""
    if not rows.filter(state__in=(Outgoing.WAITING, Outgoing.SENDING)).exists():
        return 0
    connection = get_connection()

    def send(row: Any) -> None:
        message = compose(row)
        message.connection = connection
        try:
            connection.open()
        except Exception as error:
            raise UnreachableError(f"The mail server does not answer: {error}") from error
        _deliver(message)

    try:
        return send_due(rows, send, lost=lost, seconds=seconds)
    finally:
        connection.close()


def _deliver(message: EmailMessage) -> None:
    """Deliver a mail; distinguish a server that refuses this one from one that takes none now."""
    try:
        message.send()
    except SMTPRecipientsRefused as error:
        code, words = next(iter(error.recipients.values()))
        said = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
        if code >= _PERMANENT:
            raise RefusedError(f"{REFUSED}{code} {said}") from error
        raise
    except SMTPResponseException:
        raise
    except OSError as error:  # smtplib's own errors are OSErrors too, but concern only one mail
        raise UnreachableError(f"{type(error).__name__}: {error}") from error
