"""Texts of mails about questionnaires, in the student's language, and composition of the mails.

A mail has the same text plain and as HTML. Texts keep their fields until a mail is sent: [link],
[name], [title], [day] and [office].
"""

from collections.abc import Mapping, Sequence
from email.utils import formataddr, parseaddr

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from webapp.accounts.models import Organisation
from webapp.surveys.bounce_mailbox import HEADER, ticket_of
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.links import token_of
from webapp.surveys.models import Mail, Participant, Questionnaire
from webapp.surveys.questions import languages_of, translator

LINK = "[link]"
MAX_TEXT = 4_000
_BETWEEN = "\n\n---\n\n"  # separator before the same text in another language


def invitation_text() -> str:
    """Return the text of an invitation in the active language."""
    return _(
        "Hello [name],\n\nplease answer the questionnaire “[title]”. This is your personal link:"
        "\n\n[link]\n\nYou can change your answers until [day]. Do not share the link: anybody "
        "who has it can answer for you.\n\n[office]"
    )


def reminder_text() -> str:
    """Return the text of a reminder in the active language."""
    return _(
        "Hello [name],\n\nyou have not finished the questionnaire “[title]” yet. It is open until "
        "[day]. This is your personal link:\n\n[link]\n\n[office]"
    )


def link_text() -> str:
    """Return the text of a mail that holds only the link, in the active language."""
    return _(
        "Hello [name],\n\nthis is your personal link to the questionnaire “[title]”:\n\n[link]\n\n"
        "You can change your answers until [day].\n\n[office]"
    )


def texts_in(questionnaire: Questionnaire, *, is_reminder: bool) -> dict[str, str]:
    """Return the default {language: text} of staff, for each language of the questionnaire.

    A language that the product is not translated into gets the English text.
    """
    known = settings.STUDENT_LANGUAGES
    found = {}
    for language in languages_of(questionnaire.content):
        with translation.override(language if language in known else "en"):
            found[language] = reminder_text() if is_reminder else invitation_text()
    return found


def checked_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts as they are stored; raise QuestionnaireError for one without a link."""
    kept = {language: text.replace("\r\n", "\n").strip() for language, text in texts.items()}
    kept = {language: text for language, text in kept.items() if text}
    if not kept:
        raise QuestionnaireError(gettext("Write a text."))
    for text in kept.values():
        if len(text) > MAX_TEXT:
            raise QuestionnaireError(
                gettext("A text has at most %(most)s letters.") % {"most": f"{MAX_TEXT:,}"}
            )
        if LINK not in text or "\x00" in text:
            raise QuestionnaireError(
                gettext("The text needs %(link)s where the personal link goes.") % {"link": LINK}
            )
    return kept


def text_for(person: Participant, texts: Mapping[str, str], order: Sequence[str]) -> str:
    """Return the text in a person's language; in every language if the person chose none."""
    if person.language in texts:
        return texts[person.language]
    ordered = [language for language in order if language in texts]
    ordered += [language for language in texts if language not in ordered]
    return _BETWEEN.join(dict.fromkeys(texts[language] for language in ordered))


def own_address(request: HttpRequest) -> str:
    """Return the address of the installation: PUBLIC_URL, else that of the request."""
    return settings.PUBLIC_URL or request.build_absolute_uri("/")[:-1]


def office_of(organisation: Organisation) -> str:
    """Return the name of the office that sends a mail."""
    return ", ".join(part for part in (organisation.department, organisation.name) if part)


def stop_token(participant: Participant) -> str:
    """Return the token that allows its holder to stop the mails to a participant."""
    return _stop_signer().sign(str(participant.pk))


def participant_of_stop(token: str) -> Participant | None:
    """Return the participant of a stop token; None for a forged one."""
    try:
        key = _stop_signer().unsign(token)
    except signing.BadSignature:
        return None
    people = Participant.objects.select_related("questionnaire__organisation")
    return people.filter(pk=key).first()


def compose(mail: Mail) -> EmailMultiAlternatives:
    """Return a mail ready to send: fields filled in, as text and as HTML, with its headers."""
    person = mail.participant
    questionnaire = person.questionnaire
    language = mail.language or person.language or questionnaire.content.language
    known = language if language in settings.STUDENT_LANGUAGES else "en"
    with translation.override(known), timezone.override(questionnaire.organisation.zone):
        base = mail.base or settings.PUBLIC_URL
        link = base + reverse("surveys:answer", args=[token_of(person)])
        stop = base + reverse("surveys:stop", args=[stop_token(person)])
        values = _values(questionnaire, person, language) | {LINK: link}
        subject, text = mail.subject, mail.text
        for field, value in values.items():
            if field != LINK:
                subject, text = subject.replace(field, value), text.replace(field, value)
        text = text.replace(" ,", ",")
        context = {
            "paragraphs": [p for p in text.split("\n\n") if p.strip()],
            "link": link,
            "stop": stop,
            "subject": subject,
            "office": values["[office]"],
            "language": known,
        }
        plain = render_to_string("surveys/mails/mail.txt", context | {"text": text})
        message = EmailMultiAlternatives(
            " ".join(subject.split())[:200],
            plain.replace(LINK, link).strip() + "\n",
            from_email=sender_of(questionnaire.organisation),
            to=[mail.address or person.email],
            headers=_headers(person, stop),
            reply_to=_reply_to(questionnaire),
        )
        message.attach_alternative(
            render_to_string("surveys/mails/mail.html", context), "text/html"
        )
    return message


def _values(questionnaire: Questionnaire, person: Participant, language: str) -> dict[str, str]:
    said = translator(questionnaire.content, language)
    closes_at = questionnaire.closes_at
    day = date_format(timezone.localtime(closes_at), _("j F")) if closes_at else ""
    return {
        "[name]": " ".join(person.name.split()),
        "[title]": said(questionnaire.title),
        "[day]": day,
        "[office]": office_of(questionnaire.organisation),
    }


def sender_of(organisation: Organisation) -> str:
    """Return the sender of a mail: the office, with the address of the installation."""
    _name, address = parseaddr(settings.DEFAULT_FROM_EMAIL)
    return formataddr((" ".join(office_of(organisation).split()), address))


def _reply_to(questionnaire: Questionnaire) -> list[str]:
    contact = questionnaire.contact.strip()
    try:
        validate_email(contact)
    except ValidationError:
        return []
    return [contact]


def _headers(person: Participant, stop: str) -> dict[str, str]:
    """Return the headers that bounces and mail programs use (RFC 2369, RFC 8058)."""
    return {
        HEADER: ticket_of(person),
        "Auto-Submitted": "auto-generated",
        "List-Unsubscribe": f"<{stop}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def _stop_signer() -> signing.Signer:
    return signing.Signer(salt="webapp.surveys.mails.stop", sep="~")
