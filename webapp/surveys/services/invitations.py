"""Who is invited, and the mails with their links: queued in one transaction, sent once each."""

import re

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.outgoing import REFUSED, mails_send_due
from webapp.surveys.bounce_mailbox import HEADER, ticket_of
from webapp.surveys.links import token_of
from webapp.surveys.models import Mail, Participant, Questionnaire, new_nonce
from webapp.surveys.questions import QuestionnaireError

MAX_PEOPLE = 20_000
LINK = "[link]"


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
    people = people.filter(bounced_at=None)
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


def bounces_mark(
    *, user: User, questionnaires: QuerySet[Questionnaire], addresses: dict[str, str]
) -> int:
    """Note addresses that a mail server does not know, {address: why}; return how many were ours.

    They are written to no more. Called for what staff paste, for mails that came back, and by
    programs that read them.
    """
    count = 0
    with transaction.atomic():
        for address, why in list(addresses.items())[:MAX_PEOPLE]:
            found = Participant.objects.filter(
                questionnaire__in=questionnaires, email=address.lower(), bounced_at=None
            )
            count += found.update(bounced_at=timezone.now(), bounce=why[:200])
        if count:
            audit(user, "noted bounces", user.organisation, people=count)
    return count


def bounce_forget(*, user: User, questionnaire: Questionnaire, person: int) -> None:
    """Write to an address again: it was corrected there, or the server was wrong."""
    with transaction.atomic():
        found = questionnaire.participants.filter(pk=person)
        if not found.update(bounced_at=None, bounce=""):
            raise QuestionnaireError("There is no such person any more.")
        Mail.objects.filter(participant_id=person, state=Mail.FAILED).delete()
        audit(user, "writes again to an address", questionnaire)


def mails_send() -> int:
    """Send what is due and return how many went out; called again and again by the sweeper.

    One whose sender died is tried again after some minutes, for a mail twice is better than none.
    """
    sent = mails_send_due(Mail.objects.select_related("participant"), _message)
    refused = Mail.objects.filter(
        state=Mail.FAILED, error__startswith=REFUSED, participant__bounced_at=None
    )
    for key, error in refused.values_list("participant", "error"):
        why = error.removeprefix(REFUSED)
        Participant.objects.filter(pk=key).update(bounced_at=timezone.now(), bounce=why[:200])
    return sent


def _message(mail: Mail) -> EmailMessage:
    headers = {HEADER: ticket_of(mail.participant), "Auto-Submitted": "auto-generated"}
    return EmailMessage(mail.subject, mail.text, to=[mail.participant.email], headers=headers)
