"""How often one address may try: enough for a hall behind one router, too little to guess codes."""

from django.core.cache import cache
from django.http import HttpRequest

WINDOW = 600  # seconds
STARTS = 600
WRONG_CODES = 30
SAVES = 6_000


def is_over(request: HttpRequest, what: str, most: int, *, count: bool = True) -> bool:
    """Count one try of an address and tell whether it had too many in this window."""
    key = f"surveys:{what}:{request.META.get('REMOTE_ADDR', '')}"
    cache.add(key, 0, WINDOW)
    if not count:
        return int(cache.get(key, 0)) >= most
    try:
        return cache.incr(key) > most
    except ValueError:  # it ended just now
        return False
