"""How often somebody may do something a minute, counted for all processes together.

The counts lie in the broker, which every host of an installation reaches. They are no data: while
it is away each process counts for itself, and a restart forgets them.
"""

import time

import structlog
from django.core.cache import caches
from redis.exceptions import RedisError

from webapp.common.errors import Refusal

log = structlog.get_logger(__name__)

MINUTE = 60


class TooManyError(Refusal):
    """A limit is reached; ``retry_after`` tells in how many seconds to try again."""

    def __init__(self, sentence: str, retry_after: int) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


def count_up(what: str, who: str) -> int:
    """Count one more act of this minute and return how many there were, this one included."""
    key = f"limit:{what}:{who}:{int(time.time()) // MINUTE}"
    try:
        return _count(caches["limits"], key)
    except (RedisError, OSError) as error:
        log.warning("limits are counted by each process for itself", error=str(error))
        return _count(caches["default"], key)


def seconds_left() -> int:
    """Return how long this minute still takes, rounded up."""
    return MINUTE - int(time.time()) % MINUTE


def _count(cache: object, key: str) -> int:
    cache.add(key, 0, timeout=2 * MINUTE)
    try:
        return cache.incr(key)
    except ValueError:  # it was thrown out between the two
        return 1
