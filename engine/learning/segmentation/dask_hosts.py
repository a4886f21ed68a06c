"""Dask workers as hosts; the package ``distributed`` is needed only if these are used."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.hosts import HostLostError, HostRequest
from engine.core.progress import StopCallback, never_stop

POLL_SECONDS = 0.002  # first pause between two checks for answers; later pauses are longer
LONGEST_POLL = 0.1
LOOK_SECONDS = 1.0  # pause between two checks of the list of workers
NOTICE_SECONDS = 10.0  # time for a busy scheduler to notice that a worker is gone


class DaskHosts:
    """Hosts that are all workers of a Dask scheduler; a context manager, see `Hosts`.

    Each worker stores its object as an actor, which ends with this process. Workers that join later
    are used from the next learning run on.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as "tcp://10.0.0.7:8786", or "tls://..." with the
        certificates of Dask's own configuration.
    seconds : float
        Longest wait for the scheduler.
    """

    def __init__(self, address: str, *, seconds: float = 10.0) -> None:
        """Connect to the scheduler.

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
            connect: Any = Client  # has no type annotations
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
        """Return these hosts."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection; workers then free their objects."""
        self._actors, self._futures = [], []
        self._client.close()

    @property
    def count(self) -> int:
        """Number of workers; see `Hosts.count`."""
        return len(self._addresses)

    def place(self, make: Callable[[], Any]) -> None:
        """Create an object on every worker; see `Hosts.place`."""
        self._actors = []
        self._futures = [
            self._client.submit(
                make, actor=True, workers=[address], allow_other_workers=False, pure=False
            )
            for address in self._addresses
        ]
        self._wait(self._futures, list(range(self.count)), never_stop)
        with self._client.as_current():  # actors need a current client
            self._actors = [future.result() for future in self._futures]

    def ask(self, requests: Sequence[HostRequest], should_stop: StopCallback) -> list[Any]:
        """Run requests on the workers and return their answers; see `Hosts.ask`."""
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
        """Return True if a host is lost, after time for the scheduler to notice."""
        until = time.monotonic() + NOTICE_SECONDS
        while not (is_lost := self._lost(range(self.count))) and time.monotonic() < until:
            time.sleep(LONGEST_POLL)
        return is_lost

    def _lost(self, hosts: Sequence[int]) -> bool:
        """Return True if one of these hosts is no longer connected."""
        there = self._workers()
        return any(self._addresses[host] not in there for host in hosts)

    def _workers(self) -> set[str]:
        """Return the addresses of the workers, as last reported by the scheduler."""
        return set(self._client.scheduler_info(n_workers=-1)["workers"])
