"""Rate limits per minute, counted for all processes together.

The counts are in the broker, which every host of an installation reaches. They are not permanent:
while the broker is away each process counts for itself, and a restart drops the counts.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from redis.exceptions import RedisError

from webapp.common.errors import Refusal
from webapp.common.silence import broker

log = structlog.get_logger(__name__)

MINUTE = 60
T = TypeVar("T")


class TooManyError(Refusal):
    """Error of a reached limit; ``retry_after`` is the number of seconds until the next try."""

    def __init__(self, sentence: str, retry_after: int) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


def count_up(what: str, who: str, *, window: int = MINUTE, by: int = 1) -> int:
    """Count acts of this minute (or of ``window`` seconds) and return their number.

    The acts counted now are included; ``by=0`` only reads.
    """
    key = f"limit:{what}:{who}:{int(time.time()) // window}"
    return _shared(lambda cache: _count(cache, key, window, by))


def is_first(mark: str, *, seconds: int) -> bool:
    """Return True if no process called this for ``seconds``: only one of many callers gets True."""
    return _shared(lambda cache: bool(cache.add(f"once:{mark}", 1, timeout=seconds)))


def seconds_left() -> int:
    """Return the rest of this minute in seconds, rounded up."""
    return MINUTE - int(time.time()) % MINUTE


def _shared(ask: Callable[[BaseCache], T]) -> T:
    if broker.may_ask():
        try:
            answer = ask(caches["limits"])
        except (RedisError, OSError) as error:
            broker.was_silent()
            log.warning("limits are counted by each process for itself", error=str(error))
        else:
            broker.answered()
            return answer
    return ask(caches["default"])


def _count(cache: BaseCache, key: str, window: int, by: int) -> int:
    cache.add(key, 0, timeout=2 * window)
    try:
        return cache.incr(key, by) if by else int(cache.get(key, 0))
    except ValueError:  # it was evicted between the two calls
        return by
