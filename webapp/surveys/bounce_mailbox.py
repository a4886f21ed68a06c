"""The mailbox to which undeliverable invitations and letters come back, read by IMAP.

Anybody can fake a returned mail to stop a student's reminders. So a returned mail counts only if it
holds the secret ticket of the mail that we sent, which a mail server copies into its reply.
"""

import email
import email.policy
import imaplib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from urllib.parse import unquote, urlsplit

import structlog
from django.conf import settings
from django.core import signing
from django.db import transaction
from django.utils import timezone

from webapp.audit.services import audit
from webapp.common.limits import is_first
from webapp.letters.services.returned import letters_returned
from webapp.surveys.bounces import addresses_of_mails
from webapp.surveys.models import Participant, Questionnaire

log = structlog.get_logger(__name__)

HEADER = "X-Invitation"
_EVERY = 300  # seconds between two reads
_AT_ONCE = 200
_MAX_BYTES = 300_000
_TIMEOUT = 10
_TICKET = re.compile(rf"{HEADER}:\s*(\d{{1,18}}~[\w-]{{20,60}})", re.I)


def ticket_of(participant: Participant) -> str:
    """Return the ticket of a mail to a participant, which identifies the mail if it is returned."""
    return _signer().sign(str(participant.pk))


def mailbox_read() -> int:
    """Read the mails returned since the last read; return how many mails were marked.

    One host reads the mailbox every five minutes. After a failure it tries again at the next time.
    """
    if not settings.BOUNCES_URL or not is_first("bounces", seconds=_EVERY):
        return 0
    try:
        return sum(note_returned(data) for data in _unseen())
    except (OSError, imaplib.IMAP4.error, ValueError) as error:
        log.warning("the mailbox of bounces cannot be read", error=str(error)[:200])
        return 0


def note_returned(data: bytes) -> int:
    """Mark the recipient of one returned invitation or letter; return how many mails are ours."""
    why = next(iter(addresses_of_mails(data).values()), "")
    if not why:
        return 0
    texts = quoted_texts(data)
    with transaction.atomic():
        return _invitations_returned(texts, why) + letters_returned(texts, why)


def _invitations_returned(texts: Sequence[str], why: str) -> int:
    found = Participant.objects.filter(pk__in=set(_people_of(texts)), bounced_at=None)
    counts = Counter(found.values_list("questionnaire", flat=True))
    count = found.update(bounced_at=timezone.now(), bounce=why[:200])
    for questionnaire in Questionnaire.objects.filter(pk__in=counts):
        organisation = questionnaire.organisation
        people = counts[questionnaire.pk]
        audit(None, "noted bounces", questionnaire, organisation=organisation, people=people)
    return count


def quoted_texts(data: bytes) -> list[str]:
    """Return the headers and text of each part of a mail, which quote our mail somewhere."""
    texts = []
    for part in email.message_from_bytes(data, policy=email.policy.compat32).walk():
        payload = part.get_payload(decode=True)
        lines = "\n".join(f"{name}: {value}" for name, value in part.items())
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
        texts.append(f"{lines}\n{text}")
    return texts


def _people_of(texts: Sequence[str]) -> Iterator[int]:
    """Yield the keys of people whose tickets are in a mail."""
    for ticket in _TICKET.findall("\n".join(texts)):
        with suppress(signing.BadSignature):
            yield int(_signer().unsign(ticket))


def _unseen() -> Iterator[bytes]:
    """Yield the unread mails, and mark each as read once it was processed."""
    place = urlsplit(settings.BOUNCES_URL)
    host = place.hostname or "localhost"
    if place.scheme == "imaps":
        server: imaplib.IMAP4 = imaplib.IMAP4_SSL(host, place.port or 993, timeout=_TIMEOUT)
    else:
        server = imaplib.IMAP4(host, place.port or 143, timeout=_TIMEOUT)
    with server:
        server.login(unquote(place.username or ""), unquote(place.password or ""))
        folder = unquote(place.path.strip("/")) or "INBOX"
        state, _ = server.select(f'"{folder}"')
        if state != "OK":
            raise ValueError(f"there is no folder {folder}")
        numbers = server.search(None, "UNSEEN")[1][0].split()[:_AT_ONCE]
        for number in numbers:
            parts = server.fetch(number.decode("ascii"), f"(BODY.PEEK[]<0.{_MAX_BYTES}>)")[1]
            yield next((part[1] for part in parts if isinstance(part, tuple)), b"")
            server.store(number.decode("ascii"), "+FLAGS", "\\Seen")


def _signer() -> signing.Signer:
    return signing.Signer(salt="webapp.surveys.bounces", sep="~")
