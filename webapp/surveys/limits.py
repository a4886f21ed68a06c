"""How often one address may try: enough for a hall behind one router, too little to guess codes."""

from django.http import HttpRequest

from webapp.common.limits import count_up

WINDOW = 600  # seconds
STARTS = 600
WRONG_CODES = 30
SAVES = 6_000


def is_over(request: HttpRequest, what: str, most: int, *, count: bool = True) -> bool:
    """Count one try of an address, over all web processes, and tell whether it had too many."""
    who = request.META.get("REMOTE_ADDR", "")
    tries = count_up(f"surveys:{what}", who, window=WINDOW, by=int(count))
    return tries > most if count else tries >= most
