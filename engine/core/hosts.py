"""Hosts that keep objects and call their methods, so that a learner can use several machines."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from engine.core.progress import StopCallback


class HostLostError(RuntimeError):
    """Error for a host lost with all its objects: resume from a checkpoint on the others."""


class HostRequest(NamedTuple):
    """Call of a method of the object that a host keeps."""

    host: int
    method: str
    arguments: tuple[Any, ...]


class Hosts(Protocol):
    """Protocol of several hosts that each keep one object between calls.

    Arguments and answers are numbers, strings, arrays, and tuples and lists of these.
    """

    @property
    def count(self) -> int:
        """Number of hosts, at least one."""

    def place(self, make: Callable[[], Any]) -> None:
        """Make an object on every host, replacing the one that it kept before."""

    def ask(self, requests: Sequence[HostRequest], should_stop: StopCallback) -> list[Any]:
        """Call methods on all hosts at the same time; return the answers in order.

        Calls to one host are answered one after the other. Stopping calls the method ``stop`` of
        every object while its other calls still run.

        Raises
        ------
        HostLostError
            If a host was lost.
        StoppedError
            If ``should_stop`` returned True meanwhile.
        """
