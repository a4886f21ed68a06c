"""Mailing a personal link on request."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils.translation import gettext as _

from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Mail, Participant, Questionnaire
from webapp.surveys.services.invitations import link_mail


def checked_address(text: str) -> str:
    """Return an e-mail as it is stored; raise QuestionnaireError, in the active language."""
    address = text.strip().lower()
    try:
        validate_email(address)
    except ValidationError as error:
        raise QuestionnaireError(_("Type an e-mail such as anna@example.org.")) from error
    return address


@transaction.atomic
def links_to_participants(*, questionnaire: Questionnaire, address: str, base: str) -> int:
    """Queue the link of every person invited with an address; return how many."""
    people = questionnaire.participants.filter(email=address, bounced_at=None)
    return sum(_queue(person, address="", base=base, language="") for person in people)


def link_to_address(*, participant: Participant, address: str, base: str, language: str) -> bool:
    """Queue a mail with a participant's own link, to an address of their choice."""
    own = "" if address == participant.email else address
    return _queue(participant, address=own, base=base, language=language)


def _queue(person: Participant, *, address: str, base: str, language: str) -> bool:
    waiting = person.mails.filter(state__in=(Mail.WAITING, Mail.SENDING), address=address)
    if waiting.exists():
        return False
    link_mail(person, base=base, address=address, language=language).save()
    return True
