"""A server that does not answer is asked by few, and all others go on without it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from socket import create_server
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.cache import caches
from redis.exceptions import TimeoutError as RedisTimeoutError

from webapp.common import limits, silence
from webapp.common.silence import RETRY_SECONDS, Silence
from webapp.jobs import dispatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock that the test sets forward."""
    now = [1000.0]
    monkeypatch.setattr(silence.time, "monotonic", lambda: now[0])

    def forward(seconds: float) -> None:
        now[0] += seconds

    return forward


def test_one_asks_again_after_a_while_and_the_others_wait_for_what_it_finds(
    clock: Callable[[float], None],
) -> None:
    server = Silence()
    assert [server.may_ask() for _ in range(3)] == [True, True, True]
    server.was_silent()
    assert not server.may_ask()
    clock(RETRY_SECONDS)
    assert [server.may_ask() for _ in range(3)] == [True, False, False]
    server.answered()
    assert [server.may_ask() for _ in range(2)] == [True, True]


def test_limits_are_counted_here_while_the_broker_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def never(*_: Any, **__: Any) -> None:
        asked.append(1)
        raise RedisTimeoutError("Timeout reading from socket")

    monkeypatch.setattr(limits, "broker", Silence())
    monkeypatch.setattr(caches["limits"], "add", never)
    who = str(uuid4())
    assert [limits.count_up("calls", who) for _ in range(3)] == [1, 2, 3]
    assert asked == [1]


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with closing(create_server(("127.0.0.1", 0), backlog=50)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


def test_a_broker_that_never_answers_takes_no_click_along(
    mute: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the fixture that records what would be sent
    settings.CELERY_BROKER_URL = settings.BROKER_URL = mute
    monkeypatch.setattr(dispatch, "broker", Silence())
    dispatch._sender.cache_clear()
    sent: list[bool] = []
    thread = threading.Thread(
        target=lambda: sent.extend(dispatch.send(uuid4(), "short") for _ in range(5)), daemon=True
    )
    thread.start()
    thread.join(30)  # five of them, of which one waits for a second
    dispatch._sender.cache_clear()
    assert sent == [False] * 5
