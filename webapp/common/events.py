"""Events that other programs may need, sent as a signal to what delivers them.

An event is sent in the transaction of its act, so that both are kept or neither. Data holds ids on
screen and keys of objects: no names, no e-mails, no answers.
"""

from typing import Any

from django.dispatch import Signal

from webapp.translation.lazy import gettext_lazy as _

EVENTS = {
    "placement.finished": _("The rooms of a placement are computed."),
    "placement.published": _("A placement is the one that students get."),
    "student.moved": _("Students of a published placement have other rooms."),
    "letters.sent": _("The letters of a placement are sent, as far as they could be."),
    "job.failed": _("A computation failed."),
}

event_sent = Signal()  # sender: the name of the event; organisation: its key; data: JSON values


def send_event(organisation: Any, event: str, **data: Any) -> None:
    """Send an event of an organisation, by its key; values of data are JSON values."""
    if event not in EVENTS:
        raise ValueError(f"There is no event {event}.")
    event_sent.send(sender=event, organisation=organisation, data=data)
