"""How often an address, or a link, may try: too little to guess codes or to flood.

A whole campus may share one address, and all of it answers in the hour after a mail: what an
address may do in all is far beyond that, and what one link may do is beyond one person.
"""

from django.http import HttpRequest

from webapp.common.limits import count_up

WINDOW = 600  # seconds
STARTS = 2_500
WRONG_CODES = 30
SAVES = 60_000
SAVES_OF_ONE = 600


def is_over(request: HttpRequest, what: str, most: int, *, count: bool = True) -> bool:
    """Count one try of an address, over all web processes, and tell whether it had too many."""
    who = request.META.get("REMOTE_ADDR", "")
    tries = count_up(f"surveys:{what}", who, window=WINDOW, by=int(count))
    return tries > most if count else tries >= most


def is_over_for_one(participant: int) -> bool:
    """Count one save by a personal link, and tell whether it had too many."""
    return count_up("surveys:one", str(participant), window=WINDOW) > SAVES_OF_ONE
