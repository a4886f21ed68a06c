"""What happens that other programs may want to know, told to whoever listens.

An event is told in the transaction of the act, so that both stand or neither. Data holds ids on
screen and keys of objects: no names, no e-mails, no answers.
"""

from collections.abc import Callable
from typing import Any

EVENTS = {
    "placement.finished": "A placement's rooms are worked out.",
    "placement.published": "A placement is the one that students get.",
    "student.moved": "Students of a published placement have other rooms.",
    "letters.sent": "The letters of a placement are sent, as far as they could be.",
    "job.failed": "A computation failed.",
}
Listener = Callable[[Any, str, dict[str, Any]], None]
_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Call a function of (key of the organisation, event, data) at every event."""
    if listener not in _listeners:
        _listeners.append(listener)


def tell(organisation: Any, event: str, **data: Any) -> None:
    """Tell an event of an organisation, by its key; values of data are as JSON has them."""
    if event not in EVENTS:
        raise ValueError(f"There is no event {event}.")
    for listener in _listeners:
        listener(organisation, event, data)
