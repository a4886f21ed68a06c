"""Rate limits on tries by one address or one link.

A whole campus may share one address, and all of it answers in the hour after a mail. So the limits
of an address are far above that, and those of a link are above the use of one person. Wrong codes
are counted, but never block a right one, or an attacker could shut out the campus. The length of a
code protects against guessing: of 31^8 codes, 100 guesses a second find one of 10 open
questionnaires in 27 years.
"""

from django.http import HttpRequest

from webapp.common.limits import count_up

WINDOW = 600  # seconds
STARTS = 2_500
WRONG_CODES = 30
SAVES = 60_000
SAVES_OF_ONE = 600
LINKS_OF_ONE = 3  # mails with one person's link, per hour by the code and per day by the receipt


def is_over(request: HttpRequest, what: str, most: int) -> bool:
    """Count one try of an address, over all web processes; return True if it is over the limit."""
    who = request.META.get("REMOTE_ADDR", "")
    return count_up(f"surveys:{what}", who, window=WINDOW) > most


def is_over_for_one(participant: int) -> bool:
    """Count one save by a personal link; return True if it is over the limit."""
    return count_up("surveys:one", str(participant), window=WINDOW) > SAVES_OF_ONE
