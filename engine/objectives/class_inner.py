"""Inner maximisation for pictures of several classes: warm-started messages with a certificate."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.crf.class_features import ClassExample
from engine.kernels.threads import count_threads
from engine.objectives.class_messages import ClassMessages, Messages
from engine.objectives.protocol import InnerSolution, WarmStart

MAX_SWEEPS = 80
"""Maximum number of sweeps of one inner solve, a safety limit."""

FIRST_ACCURACY = 1e-3
"""Accuracy of the first solve, before any bound is known, nats a pixel."""


class ClassSetInnerProblem:
    """All pictures of a training set as one inner problem, solved on several threads.

    Implements `engine.objectives.protocol.InnerProblem`.

    Parameters
    ----------
    examples : sequence of ClassExample
    observed : ndarray, shape (K,), phi of the labels: `observed_statistics` of all pictures, or
        `expected_statistics` where some pixels are hidden.
    curvature : ndarray, shape (K, K), returned by ``curvature``.
    should_stop : StopCallback
        Called before every picture; if it returns True, ``maximise`` raises StoppedError.
    """

    def __init__(
        self,
        examples: Sequence[ClassExample],
        observed: FloatArray,
        curvature: FloatArray,
        *,
        should_stop: StopCallback = never_stop,
    ) -> None:
        self._examples, self.observed, self._curvature = examples, observed, curvature
        self.should_stop = should_stop
        self.n_pixels = sum(example.labels.size for example in examples)
        self._messages: list[Messages] = []
        for example in examples:
            shape = example.features.trees.shape
            self._messages.append(np.ones((4, *shape), dtype=np.float32))
        self._is_first = True

    def maximise(
        self, theta: FloatArray, state: WarmStart | None, accuracy: float
    ) -> InnerSolution:
        """Solve every picture from its last messages; see `InnerProblem.maximise`."""
        share = accuracy / self.n_pixels
        if self._is_first:
            share = max(share, FIRST_ACCURACY)
        with ThreadPoolExecutor(count_threads()) as pool:
            count = len(self._examples)
            parts = list(pool.map(lambda m: self._solve_one(m, theta, share), range(count)))
        self._is_first = False
        return InnerSolution.total(parts)

    def curvature(self, theta: FloatArray, state: WarmStart) -> FloatArray:
        """Return the estimate of the Hessian of log Z_rho, shape (K, K)."""
        return self._curvature

    def _solve_one(self, index: int, theta: FloatArray, share: float) -> InnerSolution:
        """Sweep one picture until bound and feasible value agree to ``share`` nats a pixel."""
        if self.should_stop():
            raise StoppedError("Learning was stopped.")
        example = self._examples[index]
        chains = ClassMessages(example.features, theta, self._messages[index])
        sweeps, batch = 0, 3
        while True:
            chains.sweep(batch)
            sweeps += batch
            statistics, entropy = chains.summarise(chains.marginals())
            bound = chains.upper_bound()
            gap = bound - float(theta @ statistics) - entropy
            if gap <= share * example.labels.size or sweeps >= MAX_SWEEPS:
                return InnerSolution(bound, statistics, entropy, sweeps, is_feasible=True)
            batch = max(2, sweeps // 2)


def observed_statistics(example: ClassExample) -> FloatArray:
    """Return phi(Y), shape (K,), of a picture in which every pixel's label is known."""
    n = example.features.layout.n_classes
    labels = example.labels.astype(np.int64)
    nodes = np.eye(n)[labels]
    by_code, by_pair = [], []
    ends = ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:]))
    bases = (example.features.edges.horizontal_basis, example.features.edges.vertical_basis)
    for (first, second), codes, basis in zip(ends, example.features.codes, bases, strict=True):
        equal = codes[first == second]
        by_code.append(np.bincount(equal, minlength=len(basis)).astype(np.float64))
        joint = np.bincount((n * first + second).ravel(), minlength=n * n)
        by_pair.append(joint.reshape(n, n).astype(np.float64))
    return example.features.pull_back(nodes, np.stack(by_code), np.stack(by_pair))


def expected_statistics(example: ClassExample, theta: FloatArray) -> FloatArray:
    """Return phi of the pseudomarginals given the known labels, shape (K,).

    The E step of surrogate EM: messages run with every known pixel fixed to its label.

    References
    ----------
    Domke 2013, section 4.
    """
    n = example.features.layout.n_classes
    if (example.labels < n).all():
        return observed_statistics(example)
    chains = ClassMessages(example.features, theta)
    chains.hold(example.labels)
    chains.sweep(MAX_SWEEPS // 4)
    return chains.summarise(chains.marginals())[0]
