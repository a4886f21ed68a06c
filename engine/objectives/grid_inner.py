"""The inner maximisation for pictures: warm tree-reweighted messages with a certificate."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.array_store import ArrayStore
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.crf.grid_features import GridExample, GridFeatures
from engine.kernels.grid_chains import (
    SCORE_LIMIT,
    bound_log_partition,
    fill_edge_tables,
    node_marginals,
    sum_over_edges,
    summarise,
    sweep,
)
from engine.objectives.protocol import InnerSolution, WarmStart

MAX_SWEEPS = 400
"""Safety limit of one inner solve; strong models need a few dozen sweeps from cold."""

EXPONENT_LIMIT = 150.0
"""Log table entries below minus this are raised to it (see `SCORE_LIMIT` of the kernel)."""

RATIO_LIMIT = 300.0
"""Log odds ratios are kept within this, so that their squares can be formed."""

IDLE, SPARING = 0.3, 0.7
"""After sweeps that left less than `IDLE` of the gap allowed, this share of them comes first."""

FIRST_ACCURACY = 1e-4
"""Nats a pixel: about a thousandth of the objective a pixel of a fitted model."""

MAX_VISITED = 150
"""Solved points kept for the curvature."""

CURVATURE_STRIDE = 37
"""One pixel in so many enters the estimate of the curvature; prime, so that no column repeats."""


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


class GridChains:
    """Messages of one picture at one theta: sweeps, upper bound, feasible pseudomarginals.

    Parameters
    ----------
    features : GridFeatures
    rho : float, in (0, 1/2]
    theta : ndarray, shape (K,)
    messages : ndarray, shape (4, rows, columns), optional
        Warm start, changed in place; ones by default.
    """

    def __init__(
        self,
        features: GridFeatures,
        rho: float,
        theta: FloatArray,
        messages: FloatArray | None = None,
    ) -> None:
        self._features, self._rho = features, rho
        self.codes = (features.edges.horizontal, features.edges.vertical)
        self.scores = features.scores(theta)
        node = self.scores.node
        self.odds = np.exp(np.clip(node, -SCORE_LIMIT, SCORE_LIMIT))
        self._offset = self.scores.offset
        if node.max() > SCORE_LIMIT:  # by so much at most does clipping lower log Z
            self._offset += float(np.maximum(node - SCORE_LIMIT, 0.0).sum())
        tables = []
        for codes, table in zip(
            self.codes, (self.scores.horizontal, self.scores.vertical), strict=True
        ):
            scaled = table / rho
            top = scaled.max(axis=1)
            self._offset += rho * float(sum_over_edges(codes, top))
            tables.append(np.exp(np.maximum(scaled - top[:, None], -EXPONENT_LIMIT)))
        self.tables = (tables[0], tables[1])
        self._ratios = (
            _odds_ratios(self.scores.horizontal / rho),
            _odds_ratios(self.scores.vertical / rho),
        )
        self.messages = np.ones((4, *features.shape)) if messages is None else messages

    def sweep(self, count: int) -> float:
        """Pass ``count`` times forward and backward; return the last largest relative change.

        It is NaN if a message is not a number: backward passes lead from all pixels to the first.
        """
        change = 0.0
        for _ in range(count):
            change = sweep(self.odds, *self.codes, *self.tables, self._rho, self.messages)
        into_first = self.messages[1, 0, 0] * self.messages[3, 0, 0]
        return float("nan") if np.isnan(into_first) else change

    def upper_bound(self) -> float:
        """Return a certified upper bound of log Z_rho(theta), nats."""
        bound = bound_log_partition(self.odds, *self.codes, *self.tables, self._rho, self.messages)
        return float(bound + self._offset)

    def node_marginals(self) -> FloatArray:
        """Return tau_i(1), shape (rows, columns); edges completed by ``summarise`` fit them."""
        nodes = np.empty(self._features.shape)
        node_marginals(self.odds, self._rho, self.messages, nodes)
        return nodes

    def summarise(self, nodes: FloatArray) -> tuple[FloatArray, float]:
        """Return phi(tau) and H_rho(tau) of node marginals with their best edge tables."""
        histograms = tuple(np.zeros((len(table), 4)) for table in self.tables)
        entropy = summarise(nodes, *self.codes, *self._ratios, self._rho, *histograms)
        return self._features.assemble_statistics(nodes, *histograms), float(entropy)

    def edge_marginals(self, nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the edge tables that fit ``nodes``, shapes (., ., 2, 2), right and down."""
        tables = tuple(np.empty((*codes.shape, 2, 2)) for codes in self.codes)
        for k in range(2):
            fill_edge_tables(nodes, self.codes[k], self._ratios[k], k == 1, tables[k])
        return tables[0], tables[1]

    def edge_curvature(self, nodes: FloatArray) -> FloatArray:
        """Return sum_ij cov(tau_ij) x v v^T, shape (4 D, 4 D): edges counted as independent."""
        edges = self._features.edges
        total = np.zeros((4 * edges.n_features, 4 * edges.n_features))
        bases = (edges.horizontal_basis, edges.vertical_basis)
        for codes, tables, basis in zip(self.codes, self.edge_marginals(nodes), bases, strict=True):
            flat = tables.reshape(-1, 4)
            for a in range(4):
                for b in range(a, 4):
                    product = (flat[:, a] if a == b else 0.0) - flat[:, a] * flat[:, b]
                    sums = np.bincount(codes.ravel(), product, minlength=len(basis))
                    block = (basis * sums[:, None]).T @ basis
                    d = edges.n_features
                    total[a * d : (a + 1) * d, b * d : (b + 1) * d] += block
                    if a != b:
                        total[b * d : (b + 1) * d, a * d : (a + 1) * d] += block
        return total


@runtime_checkable
class PictureGroup(Protocol):
    """Labelled pictures and their messages, wherever they live: on this host or on several.

    Every answer lists the pictures in the order of the group. Sums are taken over that order by
    whoever asks, so that they round alike however the pictures are spread.
    """

    def observe(self) -> list[tuple[FloatArray, int]]:
        """Return phi(Y), shape (K,), and the number of pixels of every picture."""

    def solve(self, theta: FloatArray, share: float) -> list[InnerSolution]:
        """Solve every picture from its last messages, to ``share`` nats a pixel."""

    def curvature(self, theta: FloatArray) -> list[FloatArray]:
        """Return an estimate of the Hessian of every picture's log Z_rho, shape (K, K)."""


class LocalPictures:
    """A `PictureGroup` on this host, worked on by several threads.

    The examples may be any sequence, for instance one that reads each example from disk: an example
    is asked for once a solve and let go. What stays between solves are the messages,
    ``messages[m]`` of shape (4, rows, columns).

    Parameters
    ----------
    examples : Sequence of GridExample
    rho : float, in (0, 1/2]
    threads : int
        Pictures worked on at the same time; the kernels run without the interpreter's lock.
    should_stop : StopCallback
        Asked before every picture; StoppedError then.
    places : sequence of int, optional
        Of the examples among all that are learned from; 0, 1, 2, ... by default.
    """

    def __init__(
        self,
        examples: Sequence[GridExample],
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
        self._messages: list[FloatArray] = []

    def observe(self) -> list[tuple[FloatArray, int]]:
        """See `PictureGroup.observe`; messages begin anew."""
        store, observed = ArrayStore(), []
        for example in self._examples:
            features = example.features
            observed.append((features.observed_statistics(example.labels), example.labels.size))
            self._messages.append(store.keep(np.ones((4, *features.shape))))
        return observed

    def solve(self, theta: FloatArray, share: float) -> list[InnerSolution]:
        """See `PictureGroup.solve`."""
        with ThreadPoolExecutor(self._threads) as pool:
            count = len(self._examples)
            return list(pool.map(lambda m: self._solve_one(m, theta, share), range(count)))

    def curvature(self, theta: FloatArray) -> list[FloatArray]:
        """See `PictureGroup.curvature`; nodes and edges count as independent."""
        with ThreadPoolExecutor(self._threads) as pool:
            count = len(self._examples)
            return list(pool.map(lambda m: self._curvature_one(m, theta), range(count)))

    def _solve_one(self, index: int, theta: FloatArray, share: float) -> InnerSolution:
        """Sweep until bound and feasible value of one picture agree to ``share`` a pixel.

        The number of sweeps that sufficed last time comes first, so that the comparison, which
        costs as much as several sweeps, is usually made once; fewer when they did too much.
        """
        if self._should_stop():
            raise StoppedError("Learning was stopped.")
        features = self._examples[index].features
        chains = GridChains(features, self._rho, theta, self._messages[index])
        accuracy = share * features.shape[0] * features.shape[1]
        batch, sweeps = self._sweeps[index], 0
        while True:
            chains.sweep(batch)
            sweeps += batch
            statistics, entropy = chains.summarise(chains.node_marginals())
            bound = chains.upper_bound()
            gap = bound - float(theta @ statistics) - entropy
            if gap <= accuracy or sweeps >= MAX_SWEEPS:
                break
            batch = max(2, sweeps // 3)
        self._sweeps[index] = max(1, int(SPARING * sweeps) if gap < IDLE * accuracy else sweeps)
        return InnerSolution(bound, statistics, entropy, sweeps, is_feasible=True, state={})

    def _curvature_one(self, index: int, theta: FloatArray) -> FloatArray:
        features = self._examples[index].features
        chains = GridChains(features, self._rho, theta, self._messages[index])
        nodes = chains.node_marginals()
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
    pictures : Sequence of GridExample, or PictureGroup
        The latter with an appearance probability of its own.
    rho : float, in (0, 1/2]
    threads : int
        Pictures of a sequence worked on at the same time.
    curvature : ndarray, shape (K, K), optional
        What ``curvature`` answers, for instance `learned_curvature` of a subset times the ratio
        of the numbers of pixels; by default an estimate from sampled pixels.
    should_stop : StopCallback
        Asked before every picture of a sequence; ``maximise`` then raises StoppedError.
    """

    def __init__(
        self,
        pictures: Sequence[GridExample] | PictureGroup,
        rho: float,
        *,
        threads: int = 2,
        curvature: FloatArray | None = None,
        should_stop: StopCallback = never_stop,
    ) -> None:
        """Count the observed statistics of all pictures.

        Raises
        ------
        InvalidProblemError
            If there are no pictures or rho is out of range.
        """
        check_rho(rho)
        if isinstance(pictures, Sequence):
            self._group: PictureGroup = LocalPictures(
                pictures, rho, threads=threads, should_stop=should_stop
            )
        else:
            self._group = pictures
        self._curvature = curvature
        self._visited: list[tuple[FloatArray, FloatArray]] = []
        self.theta: FloatArray | None = None
        observed = self._group.observe()
        if not observed:
            raise InvalidProblemError("Learning needs at least one labelled picture.")
        self.n_pixels = sum(size for _, size in observed)
        self.observed = np.zeros(len(observed[0][0]))
        for statistics, _ in observed:
            self.observed += statistics

    def maximise(
        self, theta: FloatArray, state: WarmStart | None, accuracy: float
    ) -> InnerSolution:
        """Solve every picture from its last messages; see `InnerProblem.maximise`.

        Before any bound is known the caller cannot say which accuracy it needs; the first solve
        therefore settles for `FIRST_ACCURACY` a pixel.
        """
        share = accuracy / self.n_pixels
        if self.theta is None:
            share = max(share, FIRST_ACCURACY)
        parts = self._group.solve(theta, share)
        self.theta = theta
        statistics = np.sum([part.statistics for part in parts], axis=0)
        self._visited.append((theta.copy(), statistics))
        del self._visited[:-MAX_VISITED]
        return InnerSolution(
            log_partition=sum(part.log_partition for part in parts),
            statistics=statistics,
            entropy=sum(part.entropy for part in parts),
            sweeps=sum(part.sweeps for part in parts),
            is_feasible=True,
            state={},
        )

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

        BFGS updates: the result maps each step in theta to the change of phi(tau) that was seen.
        """
        theta = np.zeros(len(self.observed)) if self.theta is None else self.theta
        matrix = self.curvature(theta, {}).copy()
        matrix += 1e-9 * np.trace(matrix) / len(matrix) * np.eye(len(matrix))
        for (before, phi_before), (after, phi_after) in pairwise(self._visited):
            step, change = after - before, phi_after - phi_before
            image = matrix @ step
            rise, expected = float(step @ change), float(step @ image)
            if rise > 1e-3 * expected > 0.0:
                matrix += np.outer(change, change) / rise - np.outer(image, image) / expected
        return matrix


def _odds_ratios(tables: FloatArray) -> FloatArray:
    """Odds ratio of exp(tables), shape (n_codes,), kept within the range of doubles."""
    interaction = tables[:, 0] + tables[:, 3] - tables[:, 1] - tables[:, 2]
    return np.exp(np.clip(interaction, -RATIO_LIMIT, RATIO_LIMIT))
