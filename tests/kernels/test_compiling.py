"""The collector of cyclic garbage pauses while a kernel compiles, and only then."""

import gc
from collections.abc import Iterator

import pytest
from numba import njit
from numba.core import event
from numba.core.errors import TypingError

import engine.kernels  # noqa: F401  # registers the pause


class _Seen(event.Listener):
    def __init__(self) -> None:
        self.was_enabled: list[bool] = []

    def on_start(self, event: event.Event) -> None:
        """Note whether the collector works."""
        self.was_enabled.append(gc.isenabled())

    def on_end(self, event: event.Event) -> None:
        """Do nothing."""


@pytest.fixture
def seen() -> Iterator[list[bool]]:
    listener = _Seen()
    with event.install_listener("numba:run_pass", listener):
        yield listener.was_enabled


def test_the_collector_pauses_until_the_outermost_function_is_compiled(seen: list[bool]) -> None:
    below = njit(lambda x: x + 1.0)
    assert njit(lambda x: below(x) + 1.0)(1.0) == 3.0
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_the_collector_goes_on_after_an_error(seen: list[bool]) -> None:
    with pytest.raises(TypingError):
        njit(lambda x: x.nothing)(1.0)
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        njit(lambda x: x + 2.0)(1.0)
        assert not gc.isenabled()
    finally:
        gc.enable()
