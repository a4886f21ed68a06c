"""Hosts that keep objects and work on them: how a learner uses more than one machine."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from engine.core.progress import StopCallback


class HostLostError(RuntimeError):
    """A host went away with all that it kept: begin again from a checkpoint, with the others."""


class HostRequest(NamedTuple):
    """A call of a method of the object that a host keeps."""

    host: int
    method: str
    arguments: tuple[Any, ...]


class Hosts(Protocol):
    """Some hosts, each of which keeps one object from call to call.

    Arguments and answers are numbers, strings, arrays, and tuples and lists of these.
    """

    @property
    def count(self) -> int:
        """Number of hosts, at least one."""

    def place(self, make: Callable[[], Any]) -> None:
        """Have every host make its object; those that it kept before go."""

    def ask(self, requests: Sequence[HostRequest], should_stop: StopCallback) -> list[Any]:
        """Call methods on all hosts at the same time; return the answers in order.

        Calls to one host are answered one after the other. Stopping calls the method ``stop`` of
        every object, at the same time as whatever it is doing.

        Raises
        ------
        HostLostError
            If a host went away.
        StoppedError
            If ``should_stop`` answered True meanwhile.
        """
