"""Mails that tell students their time slots, with the link to the personal page.

The text is made as a mail leaves: it holds the slot of then, and no stored row holds a link.
"""

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.outgoing import RefusedError, mails_send_due
from webapp.housing.services.locking import lock_placement
from webapp.letters.recipients import address_of
from webapp.residents.links import link_to
from webapp.residents.selectors import shown_name
from webapp.room_choice.errors import ChoiceError
from webapp.room_choice.models import ChoiceRound, ChoiceSlot, SlotMail
from webapp.room_choice.times import time_in_words
from webapp.translation.lazy import gettext_lazy

LOST = gettext_lazy(
    "Its sending was cut off, and it may have arrived. Mail the slots again if it did not."
)
LANGUAGES = ("en", "es")  # a mail is in both: nobody knows which one the student reads
_UNDERWAY = (SlotMail.WAITING, SlotMail.SENDING)


def slots_to_tell(round: ChoiceRound) -> list[ChoiceSlot]:
    """Return the slots whose students have an e-mail, and no mail with the present times yet.

    A mail that failed counts as none.
    """
    slots = round.slots.select_related("student", "mail").defer(
        "student__answers", "student__attributes"
    )
    return [slot for slot in slots if address_of(slot.student) and _is_due(slot)]


def _is_due(slot: ChoiceSlot) -> bool:
    mail = getattr(slot, "mail", None)
    return mail is None or mail.state == SlotMail.FAILED or mail.told != _times(slot)


def _times(slot: ChoiceSlot) -> list[str]:
    return [slot.starts_at.isoformat(), slot.ends_at.isoformat()]


def slot_mails_queue(round: ChoiceRound) -> int:
    """Queue a mail to each student who is due one, and return how many."""
    due = slots_to_tell(round)
    for slot in due:
        SlotMail.objects.update_or_create(
            slot=slot,
            defaults={
                "address": address_of(slot.student),
                "told": _times(slot),
                "state": SlotMail.WAITING,
                "attempts": 0,
                "error": "",
                "due_at": timezone.now(),
                "sent_at": None,
            },
        )
    return len(due)


@transaction.atomic
def slots_mail(*, user: User, round: ChoiceRound) -> int:
    """Mail the slots to students who were not mailed the present times; return how many."""
    lock_placement(round.placement)
    if not ChoiceRound.objects.get(pk=round.pk).is_live:
        raise ChoiceError(_("Only slots of a published round are mailed."))
    if not settings.PUBLIC_URL:
        raise ChoiceError(
            _("This installation has no public address, so mails could hold no link.")
        )
    count = slot_mails_queue(round)
    if not count:
        raise ChoiceError(_("Everybody with an e-mail has a mail with the present times already."))
    audit(user, "mailed slots of room choice", round.placement, round=round.name, mails=count)
    return count


def slot_mails_send() -> int:
    """Send the due mails and return how many were sent; the sweep calls it."""
    rows = SlotMail.objects.select_related(
        "slot__student", "slot__round__placement__organisation", "slot__round__placement__cohort"
    )
    return mails_send_due(rows, _compose, lost=str(LOST))


def _compose(mail: SlotMail) -> EmailMessage:
    round = mail.slot.round
    if not round.is_live or round.placement.is_published:
        raise RefusedError(_("The round is closed."))
    link = link_to(mail.slot.student)
    if not link:
        raise RefusedError(_("This installation has no public address for links."))
    texts = []
    for language in LANGUAGES:
        with translation.override(language):
            texts.append(_text(mail.slot, link))
    with translation.override(LANGUAGES[0]):
        subject = _("Your time to choose a room")
    return EmailMessage(
        subject,
        "\n\n---\n\n".join(texts),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[mail.address],
        headers={"Auto-Submitted": "auto-generated"},
    )


def _text(slot: ChoiceSlot, link: str) -> str:
    organisation = slot.round.placement.organisation
    words = _(
        """Hello %(name)s,

you can choose a room from %(start)s to %(end)s.

Open your personal page then. You choose for you and everybody with whom you asked for each other:
%(link)s

Whoever has this link can choose for you. Do not pass it on.

%(organisation)s"""
    )
    return words % {
        "name": shown_name(slot.student),
        "start": time_in_words(slot.starts_at, organisation.zone),
        "end": time_in_words(slot.ends_at, organisation.zone),
        "link": link,
        "organisation": organisation.name,
    }
