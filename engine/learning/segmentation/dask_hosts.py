"""Workers of Dask as hosts; the package ``distributed`` is needed only where these are used."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.hosts import HostLostError, HostRequest
from engine.core.progress import StopCallback, never_stop

POLL_SECONDS = 0.002  # at first between two looks at what is asked; longer after a while
LONGEST_POLL = 0.1
LOOK_SECONDS = 1.0  # between two looks at which workers are there
NOTICE_SECONDS = 10.0  # in which a busy scheduler notices that a worker is gone


class DaskHosts:
    """All workers of a Dask scheduler: `Hosts`, to be used as a context manager.

    Each keeps its object as an actor, which goes when this process does. A worker that comes later
    is used from the next learning on.

    Parameters
    ----------
    address : str
        Of the scheduler, such as "tcp://10.0.0.7:8786", or "tls://..." with certificates as Dask's
        own configuration names them.
    seconds : float
        How long to wait for the scheduler.
    """

    def __init__(self, address: str, *, seconds: float = 10.0) -> None:
        """Connect.

        Raises
        ------
        InvalidProblemError
            If the package ``distributed`` is not installed.
        HostLostError
            If the scheduler does not answer, or has no worker.
        """
        try:
            from distributed import Client
        except ImportError as error:
            raise InvalidProblemError(
                "Several hosts need the package distributed: pip install 'bethe-hall[hosts]'."
            ) from error
        try:
            connect: Any = Client  # without types
            self._client = connect(
                address, timeout=seconds, set_as_default=False, direct_to_workers=True
            )
        except (OSError, TimeoutError) as error:
            raise HostLostError(f"The scheduler {address} does not answer.") from error
        self._addresses = sorted(self._workers())
        self._futures: list[Any] = []
        self._actors: list[Any] = []
        if not self._addresses:
            self._client.close()
            raise HostLostError(f"The scheduler {address} has no worker.")

    def __enter__(self) -> "DaskHosts":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection: workers let go of what they keep."""
        self._actors, self._futures = [], []
        self._client.close()

    @property
    def count(self) -> int:
        """See `Hosts.count`."""
        return len(self._addresses)

    def place(self, make: Callable[[], Any]) -> None:
        """See `Hosts.place`."""
        self._actors = []
        self._futures = [
            self._client.submit(
                make, actor=True, workers=[address], allow_other_workers=False, pure=False
            )
            for address in self._addresses
        ]
        self._wait(self._futures, list(range(self.count)), never_stop)
        with self._client.as_current():  # actors look for it
            self._actors = [future.result() for future in self._futures]

    def ask(self, requests: Sequence[HostRequest], should_stop: StopCallback) -> list[Any]:
        """See `Hosts.ask`."""
        try:
            with self._client.as_current():
                asked = [
                    getattr(self._actors[request.host], request.method)(*request.arguments)
                    for request in requests
                ]
            self._wait(asked, [request.host for request in requests], should_stop)
            return [answer.result() for answer in asked]
        except StoppedError:
            with self._client.as_current():
                for actor in self._actors:
                    actor.stop()
            raise
        except (OSError, RuntimeError) as error:  # what the actor of a lost worker raises
            if isinstance(error, HostLostError) or self._is_found_lost():
                raise HostLostError("A host went away.") from error
            raise

    def _wait(self, asked: Sequence[Any], hosts: Sequence[int], should_stop: StopCallback) -> None:
        pause, looked = POLL_SECONDS, time.monotonic()
        while not all(answer.done() for answer in asked):
            if should_stop():
                raise StoppedError("Learning was stopped.")
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                if self._lost(hosts):
                    raise HostLostError("A host went away.")
            time.sleep(pause)
            pause = min(1.2 * pause, LONGEST_POLL)

    def _is_found_lost(self) -> bool:
        """Whether a host is gone, or soon found to be: its actor may tell before the scheduler."""
        until = time.monotonic() + NOTICE_SECONDS
        while not (is_lost := self._lost(range(self.count))) and time.monotonic() < until:
            time.sleep(LONGEST_POLL)
        return is_lost

    def _lost(self, hosts: Sequence[int]) -> bool:
        """Whether one of these hosts is not there any more."""
        there = self._workers()
        return any(self._addresses[host] not in there for host in hosts)

    def _workers(self) -> set[str]:
        """Addresses of the workers, as the scheduler told last."""
        return set(self._client.scheduler_info(n_workers=-1)["workers"])
