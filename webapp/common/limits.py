"""How often somebody may do something a minute, counted for all processes together.

The counts lie in the broker, which every host of an installation reaches. They are no data: while
it is away each process counts for itself, and a restart forgets them.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from redis.exceptions import RedisError

from webapp.common.errors import Refusal

log = structlog.get_logger(__name__)

MINUTE = 60
T = TypeVar("T")


class TooManyError(Refusal):
    """A limit is reached; ``retry_after`` tells in how many seconds to try again."""

    def __init__(self, sentence: str, retry_after: int) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


def count_up(what: str, who: str, *, window: int = MINUTE, by: int = 1) -> int:
    """Count acts of this minute (or of so many seconds) and return how many there were.

    What is counted now is included; ``by=0`` only looks.
    """
    key = f"limit:{what}:{who}:{int(time.time()) // window}"
    return _shared(lambda cache: _count(cache, key, window, by))


def is_first(mark: str, *, seconds: int) -> bool:
    """Whether no process has asked this for so many seconds: of many askers, one is told yes."""
    return _shared(lambda cache: bool(cache.add(f"once:{mark}", 1, timeout=seconds)))


def seconds_left() -> int:
    """Return how long this minute still takes, rounded up."""
    return MINUTE - int(time.time()) % MINUTE


def _shared(ask: Callable[[BaseCache], T]) -> T:
    try:
        return ask(caches["limits"])
    except (RedisError, OSError) as error:
        log.warning("limits are counted by each process for itself", error=str(error))
        return ask(caches["default"])


def _count(cache: BaseCache, key: str, window: int, by: int) -> int:
    cache.add(key, 0, timeout=2 * window)
    try:
        return cache.incr(key, by) if by else int(cache.get(key, 0))
    except ValueError:  # it was thrown out between the two
        return by
