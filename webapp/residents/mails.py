"""Mails that lead students to their personal pages, in every language of the product.

A mail holds no answer and no reason: the student reads them on the page. The language of a student
is not known before the first visit.
"""

from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from webapp.accounts.models import Organisation
from webapp.cohorts.addresses import address_of
from webapp.cohorts.models import Student
from webapp.common.outgoing import RefusedError, mails_send_due
from webapp.housing.models import WaitingOffer
from webapp.residents.links import link_to
from webapp.residents.models import ChangeAsk, ResidentMail
from webapp.surveys.mails import office_of, sender_of

PAGE = "[page]"  # becomes the personal link as the mail leaves, so that no link is stored
_BETWEEN = "\n\n---\n\n"


def moment_in_words(moment: datetime, organisation: Organisation) -> str:
    """Return a day and time in the organisation's time zone, which it names."""
    local = timezone.localtime(moment, organisation.zone)
    words = date_format(local, _("j F Y, H:i"))
    return f"{words} ({local:%Z})"


def mail_offer(offer: WaitingOffer) -> bool:
    """Queue the mail about an offered bed, or about its new deadline; False without an address."""
    organisation = offer.placement.organisation

    def text() -> str:
        return _(
            "Hello,\n\na bed in %(room)s is offered to you. Accept or decline it on your page "
            "until %(until)s:\n\n%(page)s\n\nWithout an answer until then, the bed is offered to "
            "somebody else. Do not share the link: anybody who has it can answer for you."
        ) % {
            "room": offer.room_label,
            "until": moment_in_words(offer.deadline, organisation),
            "page": PAGE,
        }

    return _queue(offer.student, organisation, lambda: _("A bed is offered to you"), text, offer)


def mail_offer_ended(offer: WaitingOffer) -> bool:
    """Queue the mail that an offer was withdrawn; False without an address."""

    def text() -> str:
        return _(
            "Hello,\n\nyour housing office withdrew its offer of a bed in %(room)s. Your page says "
            "how things stand:\n\n%(page)s"
        ) % {"room": offer.room_label, "page": PAGE}

    organisation = offer.placement.organisation
    return _queue(offer.student, organisation, lambda: _("An offer was withdrawn"), text)


def mail_decision(ask: ChangeAsk) -> bool:
    """Queue the mail that staff decided about a change; False without an address."""
    ask.mails.filter(state=ResidentMail.WAITING).update(state=ResidentMail.STOPPED)

    def text() -> str:
        return _(
            "Hello,\n\nyour housing office decided about the change that you asked for. Read the "
            "answer on your page:\n\n%(page)s"
        ) % {"page": PAGE}

    organisation = ask.placement.organisation
    return _queue(
        ask.student, organisation, lambda: _("Your housing office answered"), text, ask=ask
    )


def _queue(
    student: Student,
    organisation: Organisation,
    subject: Callable[[], str],
    text: Callable[[], str],
    offer: WaitingOffer | None = None,
    ask: ChangeAsk | None = None,
) -> bool:
    address = address_of(student)
    if not address:
        return False
    subjects, texts = [], []
    for language in settings.STUDENT_LANGUAGES:
        with translation.override(language):
            subjects.append(subject())
            texts.append(text())
    ResidentMail.objects.create(
        student=student,
        offer=offer,
        ask=ask,
        address=address,
        subject=" / ".join(subjects)[:200],
        text=f"{_BETWEEN.join(texts)}\n\n{office_of(organisation)}",
    )
    return True


def resident_mails_send() -> int:
    """Send the due mails and return how many were sent; the sweep calls it."""
    rows = ResidentMail.objects.select_related(
        "student__cohort__organisation", "offer__placement", "ask__placement"
    )
    return mails_send_due(rows, _compose)


def _compose(mail: ResidentMail) -> EmailMessage:
    if mail.offer is not None and (not mail.offer.is_open or mail.offer.is_late):
        raise RefusedError(gettext("The offer ended before the mail was sent."))
    if mail.ask is not None and not mail.ask.placement.is_published:
        raise RefusedError(gettext("The placement is not published any more."))
    link = link_to(mail.student)
    if not link:
        raise RefusedError(gettext("This installation has no public address for links."))
    return EmailMessage(
        mail.subject,
        mail.text.replace(PAGE, link),
        from_email=sender_of(mail.student.cohort.organisation),
        to=[mail.address],
        headers={"Auto-Submitted": "auto-generated"},
    )
