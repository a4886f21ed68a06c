"""Labelled pictures distributed over hosts; each host stores its pictures and their messages."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.hosts import HostRequest, Hosts
from engine.core.progress import StopCallback
from engine.kernels.threads import count_threads, one_blas_thread
from engine.learning.segmentation.example_store import (
    NO_MAPS,
    ExampleStore,
    ExampleView,
    PictureDigest,
)
from engine.objectives.grid_inner import LocalPictures
from engine.objectives.protocol import InnerSolution

SENT_PIXELS = 4_000_000
"""Number of waiting pixels per host from which pictures are sent: 12 MB of colours."""

Sent = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32]]
"""Picture in transfer: colours, labels packed eight to a byte, and maps."""

Solved = tuple[FloatArray, FloatArray, FloatArray, NDArray[np.int64]]


class PicturesHere:
    """Pictures of one host: their features, labels and messages."""

    def __init__(self) -> None:
        self._examples = ExampleStore()
        self._stopping = threading.Event()
        self._group: LocalPictures | None = None

    def append(self, pictures: Sequence[Sent]) -> None:
        """Compute and store the features of some pictures."""
        for colours, packed, maps in pictures:
            rows, columns = colours.shape[:2]
            bits = np.unpackbits(packed, count=rows * columns)
            with one_blas_thread():
                self._examples.append(colours, bits.reshape(rows, columns).astype(np.bool_), maps)

    def begin(
        self, chosen: Sequence[int], places: Sequence[int], rho: float
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Select pictures, at these places among all; return their phi(Y) and pixel counts."""
        self._stopping.clear()
        self._group = LocalPictures(
            ExampleView(self._examples, chosen),
            rho,
            threads=count_threads(),
            should_stop=self._stopping.is_set,
            places=places,
        )
        with one_blas_thread():
            observed = self._group.observe()
        return np.array([phi for phi, _ in observed]), np.array([size for _, size in observed])

    def solve(self, theta: FloatArray, share: float) -> Solved:
        """Solve the selected pictures; return bounds, statistics, entropies and sweeps."""
        with one_blas_thread():
            parts = self._chosen.solve(theta, share)
        return (
            np.array([part.log_partition for part in parts]),
            np.array([part.statistics for part in parts]),
            np.array([part.entropy for part in parts]),
            np.array([part.sweeps for part in parts]),
        )

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Return an estimate of the Hessian of each selected picture, shape (n, K, K)."""
        with one_blas_thread():
            return np.array(self._chosen.curvature(theta))

    async def stop(self) -> None:
        """End a solve before its next picture; as a coroutine it does not wait for the solve."""
        self._stopping.set()

    @property
    def _chosen(self) -> LocalPictures:
        if self._group is None:
            raise RuntimeError("begin comes before solve")
        return self._group


class SpreadPictures:
    """Pictures sent to hosts as they are read; only their sizes are stored here.

    Each picture goes to the host with the fewest pixels so far, and stays there.
    """

    def __init__(self, hosts: Hosts, should_stop: StopCallback) -> None:
        self._hosts, self._should_stop = hosts, should_stop
        self._pixels = [0] * hosts.count
        self._counts = [0] * hosts.count
        self._waiting: list[list[Sent]] = [[] for _ in range(hosts.count)]
        self._waiting_pixels = 0
        self._home: list[tuple[int, int]] = []  # host, and index among its pictures
        self._digest = PictureDigest()
        self.sizes: list[int] = []
        hosts.place(PicturesHere)

    def append(
        self,
        colours: NDArray[np.uint8],
        labels: NDArray[np.bool_],
        maps: NDArray[np.float32] = NO_MAPS,
    ) -> None:
        """Add a picture at the size of its model, with its labels and maps."""
        host = int(np.argmin(self._pixels))
        self._home.append((host, self._counts[host]))
        self._counts[host] += 1
        self._pixels[host] += labels.size
        packed = np.packbits(labels)
        self._digest.update(labels.shape, colours, packed, maps)
        self.sizes.append(labels.size)
        self._waiting[host].append((colours, packed, maps))
        self._waiting_pixels += labels.size
        if self._waiting_pixels >= SENT_PIXELS * self._hosts.count:
            self._send()

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.sizes)

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of all pictures, equal to `ExampleStore.digest` of the same."""
        return self._digest.hexdigest()

    def group(self, chosen: Sequence[int], rho: float) -> "SpreadGroup":
        """Return some of the pictures as a `PictureGroup`; earlier groups become invalid."""
        self._send()
        return SpreadGroup(self._hosts, [self._home[k] for k in chosen], rho, self._should_stop)

    def _send(self) -> None:
        requests = [
            HostRequest(k, "append", (sent,)) for k, sent in enumerate(self._waiting) if sent
        ]
        self._waiting = [[] for _ in self._waiting]
        self._waiting_pixels = 0
        if requests:
            self._hosts.ask(requests, self._should_stop)


class SpreadGroup:
    """Group of pictures on several hosts, a `PictureGroup`."""

    def __init__(
        self, hosts: Hosts, homes: Sequence[tuple[int, int]], rho: float, should_stop: StopCallback
    ) -> None:
        self._hosts, self._rho, self._should_stop = hosts, rho, should_stop
        self._chosen: list[list[int]] = [[] for _ in range(hosts.count)]
        self._places: list[list[int]] = [[] for _ in range(hosts.count)]
        for place, (host, index) in enumerate(homes):
            self._chosen[host].append(index)
            self._places[host].append(place)

    def observe(self) -> list[tuple[FloatArray, int]]:
        """Return phi(Y) and the pixel count of every picture; see `PictureGroup.observe`."""
        answers = self._ask("begin", lambda k: (self._chosen[k], self._places[k], self._rho))
        return [(phi, int(size)) for phi, size in self._in_order(answers)]

    def solve(self, theta: FloatArray, share: float) -> list[InnerSolution]:
        """Return the inner solution of every picture; see `PictureGroup.solve`."""
        answers = self._ask("solve", lambda k: (theta, share))
        return [
            InnerSolution(float(bound), phi, float(entropy), int(sweeps), is_feasible=True)
            for bound, phi, entropy, sweeps in self._in_order(answers)
        ]

    def curvature(self, theta: FloatArray) -> list[FloatArray]:
        """Return the Hessian estimate of every picture; see `PictureGroup.curvature`."""
        answers = self._ask("curvature", lambda k: (theta,))
        return [matrix for (matrix,) in self._in_order([(matrices,) for matrices in answers])]

    def _ask(self, method: str, arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        used = [k for k, chosen in enumerate(self._chosen) if chosen]
        requests = [HostRequest(k, method, arguments(k)) for k in used]
        return self._hosts.ask(requests, self._should_stop)

    def _in_order(self, answers: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Return the rows of the hosts' answers in the order of the pictures."""
        rows: list[tuple[Any, ...]] = [()] * sum(map(len, self._places))
        used = [places for places in self._places if places]
        for places, columns in zip(used, answers, strict=True):
            for place, row in zip(places, zip(*columns, strict=True), strict=True):
                rows[place] = row
        return rows
