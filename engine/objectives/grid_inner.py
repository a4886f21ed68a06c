"""Inner maximisation for pictures: warm-started tree-reweighted messages with a certificate."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.array_store import ArrayStore
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.crf.class_features import ClassExample
from engine.crf.grid_features import GridExample, GridFeatures
from engine.objectives.grid_chains import GridChains
from engine.objectives.grid_messages import TWO_LABELS, effort_of, make_messages, start_messages
from engine.objectives.protocol import InnerSolution, WarmStart

IDLE, SPARING = 0.3, 0.7
"""If the gap is below `IDLE` of the allowed gap, the next solve starts with fewer sweeps."""

Example = GridExample | ClassExample

MAX_VISITED = 150
"""Number of solved points kept for the curvature."""

CURVATURE_STRIDE = 37
"""Stride of the pixels in the curvature estimate; prime, so that no column repeats."""


def check_rho(rho: float) -> float:
    """Return ``rho`` as float if H_rho is concave and log Z_rho a bound on every grid.

    Raises
    ------
    InvalidProblemError
        Unless 0 < rho <= 1/2, the appearance probability of an edge among rows and columns.
    """
    number = float(rho)
    if not 0.0 < number <= 0.5:
        raise InvalidProblemError(
            f"rho: expected a number above 0 and at most 0.5 on a grid, received {rho}."
        )
    return number


@runtime_checkable
class PictureGroup(Protocol):
    """Labelled pictures and their messages, on this host or on several.

    Every result lists the pictures in the order of the group. Callers sum in that order, so that
    sums round alike however the pictures are distributed.
    """

    def observe(self) -> list[tuple[FloatArray, int]]:
        """Return phi(Y), shape (K,), and the number of pixels of every picture."""

    def solve(self, theta: FloatArray, share: float) -> list[InnerSolution]:
        """Solve every picture from its last messages, to ``share`` nats a pixel."""

    def curvature(self, theta: FloatArray) -> list[FloatArray]:
        """Return an estimate of the Hessian of every picture's log Z_rho, shape (K, K)."""


class LocalPictures:
    """`PictureGroup` on this host, processed by several threads.

    The examples may be any sequence, for instance one that reads each example from disk: a solve
    reads each example once and keeps none. Only the messages remain between solves.

    Parameters
    ----------
    examples : Sequence of GridExample or of ClassExample
    rho : float, in (0, 1/2]; 1/2 for label maps
    threads : int
        Pictures processed at the same time; the kernels run without the interpreter's lock.
    should_stop : StopCallback
        Called before every picture; if it returns True, StoppedError is raised.
    places : sequence of int, optional
        Indices of the examples among all training examples; 0, 1, 2, ... by default.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        rho: float,
        *,
        threads: int,
        should_stop: StopCallback,
        places: Sequence[int] | None = None,
    ) -> None:
        self._examples, self._rho, self._threads = examples, check_rho(rho), threads
        self._should_stop = should_stop
        self._places = range(len(examples)) if places is None else places
        self._sweeps = [4] * len(examples)
        self._messages: list[NDArray[Any]] = []

    def observe(self) -> list[tuple[FloatArray, int]]:
        """Reset the messages and return the statistics; see `PictureGroup.observe`."""
        store, observed = ArrayStore(), []
        for example in self._examples:
            features = example.features
            observed.append((example.observed_statistics(), example.labels.size))
            self._messages.append(store.keep(start_messages(features)))
        return observed

    def solve(self, theta: FloatArray, share: float) -> list[InnerSolution]:
        """Solve every picture; see `PictureGroup.solve`."""
        with ThreadPoolExecutor(self._threads) as pool:
            count = len(self._examples)
            return list(pool.map(lambda m: self._solve_one(m, theta, share), range(count)))

    def curvature(self, theta: FloatArray) -> list[FloatArray]:
        """Estimate every Hessian with independent nodes and edges; see `PictureGroup.curvature`."""
        with ThreadPoolExecutor(self._threads) as pool:
            count = len(self._examples)
            return list(pool.map(lambda m: self._curvature_one(m, theta), range(count)))

    def _solve_one(self, index: int, theta: FloatArray, share: float) -> InnerSolution:
        """Sweep one picture until bound and feasible value agree to ``share`` nats a pixel.

        It starts with the number of sweeps that sufficed last time, or fewer if they were too many,
        so that the comparison, which costs as much as several sweeps, is usually made once.
        """
        if self._should_stop():
            raise StoppedError("Learning was stopped.")
        features = self._examples[index].features
        chains = make_messages(features, theta, self._rho, self._messages[index])
        accuracy = share * features.shape[0] * features.shape[1]
        max_sweeps = effort_of(features).max_sweeps
        batch, sweeps = self._sweeps[index], 0
        while True:
            chains.sweep(batch)
            sweeps += batch
            statistics, entropy = chains.summarise(chains.marginals())
            bound = chains.upper_bound()
            gap = bound - float(theta @ statistics) - entropy
            if gap <= accuracy or sweeps >= max_sweeps:
                break
            batch = max(2, sweeps // 3)
        self._sweeps[index] = max(1, int(SPARING * sweeps) if gap < IDLE * accuracy else sweeps)
        return InnerSolution(bound, statistics, entropy, sweeps, is_feasible=True)

    def _curvature_one(self, index: int, theta: FloatArray) -> FloatArray:
        features = self._examples[index].features
        if not isinstance(features, GridFeatures):
            raise InvalidProblemError("curvature: label maps need a given one.")
        chains = GridChains(features, self._rho, theta, self._messages[index])
        nodes = chains.marginals()
        pixels = np.arange(self._places[index] % CURVATURE_STRIDE, nodes.size, CURVATURE_STRIDE)
        rows = features.nodes.rows(pixels)
        marginals = nodes.ravel()[pixels]
        weights = marginals * (1 - marginals) * (nodes.size / max(len(pixels), 1))
        block = (rows * weights[:, None]).T @ rows
        n = 2 * features.nodes.n_features
        matrix = np.zeros((features.n_parameters, features.n_parameters))
        matrix[:n, :n] = np.kron(np.array([[1.0, -1.0], [-1.0, 1.0]]), block)
        matrix[n:, n:] = chains.edge_curvature(nodes)
        return matrix


class GridSetInnerProblem:
    """All pictures of a training set as one inner problem.

    Implements `engine.objectives.protocol.InnerProblem`.

    Parameters
    ----------
    pictures : Sequence of GridExample or of ClassExample, or PictureGroup
        The latter with an appearance probability of its own.
    rho : float, in (0, 1/2]
    threads : int
        Pictures of a sequence processed at the same time.
    curvature : ndarray, shape (K, K), optional
        Returned by ``curvature``, for instance `learned_curvature` of a subset times the ratio
        of the numbers of pixels; by default an estimate from sampled pixels, for masks only.
    observed : ndarray, shape (K,), optional
        Statistics in place of those of the labels, where some pixels are hidden.
    should_stop : StopCallback
        Called before every picture of a sequence; if True, ``maximise`` raises StoppedError.
    """

    def __init__(
        self,
        pictures: Sequence[Example] | PictureGroup,
        rho: float,
        *,
        threads: int = 2,
        curvature: FloatArray | None = None,
        observed: FloatArray | None = None,
        should_stop: StopCallback = never_stop,
    ) -> None:
        """Count the observed statistics of all pictures.

        Raises
        ------
        InvalidProblemError
            If there are no pictures or rho is out of range.
        """
        check_rho(rho)
        self.should_stop: StopCallback = never_stop  # set by solvers, see `Interruptible`
        self._first_accuracy = TWO_LABELS.first_accuracy
        if isinstance(pictures, Sequence):
            if len(pictures):
                self._first_accuracy = effort_of(pictures[0].features).first_accuracy
            self._group: PictureGroup = LocalPictures(
                pictures,
                rho,
                threads=threads,
                should_stop=lambda: should_stop() or self.should_stop(),
            )
        else:
            self._group = pictures
        self._curvature = curvature
        self._visited: list[tuple[FloatArray, FloatArray]] = []
        self.theta: FloatArray | None = None
        counted = self._group.observe()
        if not counted:
            raise InvalidProblemError("Learning needs at least one labelled picture.")
        self.n_pixels = sum(size for _, size in counted)
        self.observed = np.zeros(len(counted[0][0]))
        for statistics, _ in counted:
            self.observed += statistics
        if observed is not None:
            self.observed = observed

    def maximise(
        self, theta: FloatArray, state: WarmStart | None, accuracy: float
    ) -> InnerSolution:
        """Solve every picture from its last messages; see `InnerProblem.maximise`.

        Before any bound is known the caller does not know which accuracy it needs; the first solve
        therefore stops at an accuracy a pixel; see `engine.objectives.grid_messages.Effort`.
        """
        share = accuracy / self.n_pixels
        if self.theta is None:
            share = max(share, self._first_accuracy)
        parts = self._group.solve(theta, share)
        self.theta = theta
        whole = InnerSolution.total(parts)
        self._visited.append((theta.copy(), whole.statistics))
        del self._visited[:-MAX_VISITED]
        return whole

    def curvature(self, theta: FloatArray, state: WarmStart) -> FloatArray:
        """Return an estimate of the Hessian of log Z_rho, shape (K, K), from sampled pixels.

        Nodes and edges count as independent, each with the variance that its pseudomarginal
        has: right for weak coupling, too small where whole regions move together.
        """
        if self._curvature is not None:
            return self._curvature
        return np.asarray(sum(self._group.curvature(theta)))

    def learned_curvature(self) -> FloatArray:
        """Return the curvature corrected along every step between solved points, shape (K, K).

        BFGS updates: the result maps each step in theta to the observed change of phi(tau).
        """
        theta = np.zeros(len(self.observed)) if self.theta is None else self.theta
        matrix = self.curvature(theta, None).copy()
        matrix += 1e-9 * np.trace(matrix) / len(matrix) * np.eye(len(matrix))
        for (before, phi_before), (after, phi_after) in pairwise(self._visited):
            step, change = after - before, phi_after - phi_before
            image = matrix @ step
            rise, expected = float(step @ change), float(step @ image)
            if rise > 1e-3 * expected > 0.0:
                matrix += np.outer(change, change) / rise - np.outer(image, image) / expected
        return matrix
