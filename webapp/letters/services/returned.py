"""Letters returned to the mailbox of bounces, each identified by its ticket.

A ticket is the key of a letter, signed together with its address: a faked returned mail has no
valid ticket, and a return from an address that staff have corrected since does not affect the new
address.
"""

import re
from collections.abc import Iterable
from contextlib import suppress

from django.core import signing
from django.db import transaction

from webapp.accounts.models import Organisation
from webapp.audit.services import audit
from webapp.letters.models import Letter
from webapp.monitoring.masking import mask_addresses

HEADER = "X-Letter"
_TICKET = re.compile(rf"{HEADER}:\s*(\d{{1,18}}~[\w-]{{20,60}})", re.I)


def ticket_of(letter: Letter) -> str:
    """Return the ticket of a letter, which identifies the letter if it is returned."""
    return _signer(letter.address).sign(str(letter.pk))


def letters_returned(
    texts: Iterable[str], why: str, *, organisation: Organisation | None = None
) -> int:
    """Mark the letters whose tickets are in a returned mail, and return how many.

    ``texts`` are the parts of the mail, ``why`` the server's reason. With an organisation only its
    own letters count. A letter that was sent again since to the same address counts as well.
    """
    tickets = {ticket for text in texts for ticket in _TICKET.findall(text)}
    count = 0
    with transaction.atomic():
        for ticket in sorted(tickets):
            found = _letter_of(ticket)
            if found is None:
                continue
            owner = found.template.organisation
            if organisation is not None and owner != organisation:
                continue
            sent = Letter.objects.filter(pk=found.pk, state=Letter.SENT)
            if sent.update(state=Letter.BOUNCED, error=f"Came back: {mask_addresses(why)}"[:200]):
                count += 1
                name = found.template.name
                audit(None, "noted bounces", found.placement or name, organisation=owner,
                      letter=name, letters=1)  # fmt: skip
    return count


def _letter_of(ticket: str) -> Letter | None:
    key = ticket.partition("~")[0]
    letters = Letter.objects.select_related("template__organisation", "placement").defer("text")
    found = letters.filter(pk=int(key)).first()
    if found is not None:
        with suppress(signing.BadSignature):
            _signer(found.address).unsign(ticket)
            return found
    return None


def _signer(address: str) -> signing.Signer:
    return signing.Signer(salt=f"webapp.letters.returned {address}", sep="~")
