"""Who is invited, and the mails with their links: queued in one transaction, sent once each."""

import re
from datetime import timedelta

import structlog
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.surveys.links import token_of
from webapp.surveys.models import Mail, Participant, Questionnaire, new_nonce
from webapp.surveys.questions import QuestionnaireError

log = structlog.get_logger(__name__)
MAX_PEOPLE = 20_000
LINK = "[link]"
_SENDING_MINUTES = 10  # after which a mail whose process died is tried again
_BATCH = 20  # of one sweep, which looks after jobs as well


def invitations_add(*, user: User, questionnaire: Questionnaire, text: str) -> tuple[int, int]:
    """Add one person a line: an e-mail, and a student number if there is one, in any order.

    Returns (added, already there). Raises QuestionnaireError naming the line that holds no e-mail.
    """
    people: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = [word for word in re.split(r"[,;\t ]+", line.strip()) if word]
        if words:
            mail, identifier = _read_line(words, number)
            people[mail] = identifier
    if not people:
        raise QuestionnaireError("Give one e-mail a line.")
    if len(people) > MAX_PEOPLE:
        raise QuestionnaireError(f"At most {MAX_PEOPLE:,} people are invited at once.")
    with transaction.atomic():
        Questionnaire.objects.select_for_update().get(pk=questionnaire.pk)
        known = set(questionnaire.participants.values_list("email", flat=True))
        made = [
            Participant(questionnaire=questionnaire, email=mail, identifier=identifier)
            for mail, identifier in people.items()
            if mail not in known
        ]
        Participant.objects.bulk_create(made, batch_size=500)
        audit(user, "invited", questionnaire, people=len(made))
    return len(made), len(people) - len(made)


def _read_line(words: list[str], number: int) -> tuple[str, str]:
    mails = [word.strip("<>").lower() for word in words if "@" in word]
    try:
        validate_email(mails[0] if mails else "")
    except ValidationError as error:
        raise QuestionnaireError(f"Line {number} holds no e-mail. Nobody was added.") from error
    return mails[0], " ".join(word for word in words if "@" not in word)[:200]


def invitation_revoke(*, user: User, questionnaire: Questionnaire, person: int) -> None:
    """Make the personal link of somebody worthless; the next mail has a new one."""
    with transaction.atomic():
        changed = questionnaire.participants.filter(pk=person).update(nonce=new_nonce())
        if not changed:
            raise QuestionnaireError("There is no such person any more.")
        audit(user, "revoked a link", questionnaire)


def mails_queue(
    *, user: User, questionnaire: Questionnaire, text: str, is_reminder: bool, base: str
) -> int:
    """Queue a mail to all who were invited and not yet written to, or who have not finished.

    ``text`` holds [link] where the personal link goes. Returns how many were queued.
    """
    if not questionnaire.is_open:
        raise QuestionnaireError("Open the questionnaire before you send links to it.")
    text = text.strip()
    if not 1 <= len(text) <= 4_000 or LINK not in text:
        raise QuestionnaireError(f"The text needs {LINK} where the personal link goes.")
    people = questionnaire.participants.exclude(email="").filter(finished_at=None)
    people = people.exclude(mails__state__in=(Mail.WAITING, Mail.SENDING))
    people = people.filter(mails__state=Mail.SENT) if is_reminder else people.filter(mails=None)
    subject = f"Reminder: {questionnaire.title}" if is_reminder else questionnaire.title
    with transaction.atomic():
        mails = [
            Mail(
                participant=person,
                is_reminder=is_reminder,
                subject=subject,
                text=text.replace(LINK, base + reverse("surveys:answer", args=[token_of(person)])),
            )
            for person in people.distinct()
        ]
        if not mails:
            raise QuestionnaireError("There is nobody to write to.")
        Mail.objects.bulk_create(mails, batch_size=500)
        audit(user, "reminded" if is_reminder else "wrote to", questionnaire, mails=len(mails))
    return len(mails)


def mails_send() -> int:
    """Send what is due and return how many went out; called again and again by the sweeper.

    A mail is claimed before it is sent, so that two senders never both send it; one whose sender
    died is tried again after some minutes, for a mail twice is better than none.
    """
    now = timezone.now()
    lost = Mail.objects.filter(
        state=Mail.SENDING, due_at__lt=now - timedelta(minutes=_SENDING_MINUTES)
    )
    lost.update(state=Mail.WAITING, due_at=now)
    due = Mail.objects.filter(state=Mail.WAITING, due_at__lte=now).values_list("pk", flat=True)
    keys = list(due[:_BATCH])
    if not keys:
        return 0
    connection, sent = get_connection(), 0
    for key in keys:
        if not _send(key, connection):
            break  # a mail server that does not answer now is asked again by the next sweep
        sent += 1
    return sent


def _send(key: int, connection: object) -> bool:
    claimed = Mail.objects.filter(pk=key, state=Mail.WAITING).update(
        state=Mail.SENDING, attempts=F("attempts") + 1, due_at=timezone.now()
    )
    mail = Mail.objects.select_related("participant").filter(pk=key).first()
    if not claimed or mail is None:
        return False
    message = EmailMessage(
        mail.subject, mail.text, to=[mail.participant.email], connection=connection
    )
    try:
        message.send()
    except Exception as error:  # whatever a mail server answers is kept with the mail
        _failed(mail, error)
        return False
    Mail.objects.filter(pk=key).update(state=Mail.SENT, sent_at=timezone.now(), error="")
    return True


def _failed(mail: Mail, error: Exception) -> None:
    is_last = mail.attempts >= Mail.MAX_ATTEMPTS
    wait = timedelta(minutes=2**mail.attempts)
    Mail.objects.filter(pk=mail.pk).update(
        state=Mail.FAILED if is_last else Mail.WAITING,
        error=f"{type(error).__name__}: {error}"[:200],
        due_at=timezone.now() + wait,
    )
    log.warning("mail failed", mail=mail.pk, attempt=mail.attempts, error=type(error).__name__)
