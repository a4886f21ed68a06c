"""Structured support vector machine, trained by block-coordinate Frank-Wolfe."""

from collections.abc import Sequence

import numpy as np

from engine.baselines.decoding import (
    LabelledStructure,
    TrainedCompetitor,
    count_features,
    decode,
)
from engine.core.arguments import FloatArray, read_only
from engine.core.options import (
    check_generator,
    check_number,
    check_seconds,
    check_whole,
)
from engine.core.status import Status
from engine.kernels.threads import one_blas_thread
from engine.objectives.protocol import check_parts
from engine.solvers.control import Callbacks, Limits, Run
from engine.solvers.simplex_ascent import ascend_faces

RUN_NEVER_CONVERGES = 1e-12
"""Relative gap for `Run`, too small to be met: `Run` divides by at least one nat, and hinge
objectives fall far below, so convergence is tested here."""

BOLDNESS = 0.5
"""Position of the decoding point between the best theta (0) and the dual's theta (1)."""

SLACK = 0.1
"""Accuracy of the reweighting of known corners, as a share of the certified gap."""

MAX_SOLVES = 100
"""Largest number of solves after each decoding; a few suffice, the limit is for rounding."""

MAX_CORNERS = 4
"""Stored corners per feature and example above which corners of weight zero are dropped; an
optimum needs only one per feature and one per example."""


def train_structured_svm(
    examples: Sequence[LabelledStructure],
    *,
    ridge: float,
    rng: np.random.Generator,
    relative_gap: float = 1e-3,
    max_passes: int = 1000,
    max_seconds: float | None = None,
    callbacks: Callbacks = Callbacks(),  # noqa: B008 - frozen
) -> TrainedCompetitor:
    """Minimise lambda/2 ||theta||^2 + sum_m max_y [ loss(y) - <theta, phi(Y^m) - phi(y)> ].

    With matchings of a bipartite graph this is max-margin linear assignment ("linear + learning").
    Every step decodes one example with its loss added to the scores, and then moves all examples'
    blocks to the optimum over the answers seen so far: plain Frank-Wolfe steps need thousands of
    times more decodings for the same accuracy, and approximate steps stall if examples are few and
    large. A full pass of decodings certifies the result; the first pass certifies theta = 0.

    Parameters
    ----------
    examples : sequence of structures with labels
    ridge : float
        lambda > 0, in the scale of a *sum* over examples.
    rng : numpy.random.Generator, the order within each pass
    relative_gap : float
        Primal minus dual value, divided by the primal value, at which training has converged.
    max_passes : int
    max_seconds : float, optional
    callbacks : Callbacks, called after each pass; checkpoints are not written

    Returns
    -------
    TrainedCompetitor
        ``objective`` is the smallest primal value found and ``theta`` the point that attains it;
        ``lower_bound`` is the dual value.

    Raises
    ------
    InvalidProblemError
        If there is no example, their numbers of features differ, or ridge is not above 0.

    Notes
    -----
    A pass needs two decodings per example, one for the step and one for the certificate; the first
    pass needs one. Both decode between the dual's theta and the best theta so far. With few large
    examples the dual's theta oscillates, and the objective at it falls only near convergence; the
    total number of decodings is then of the order of K.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), algorithm 4; Shah, Kolmogorov and Lampert
    (2015), A multi-plane block-coordinate Frank-Wolfe algorithm for training structural SVMs with a
    costly max-oracle (corners kept); Lacoste-Julien and Jaggi (2015), On the global linear
    convergence of Frank-Wolfe optimization variants (fully corrective steps); Franc and Sonnenburg
    (2008), Optimized cutting plane algorithm (cuts near the best point); Caetano, McAuley, Cheng,
    Le and Smola (2009), Learning graph matching.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> result = train_structured_svm([pairs], ridge=1.0, rng=np.random.default_rng(0))
    >>> round(result.objective, 3), result.status.value
    (0.125, 'converged')
    """
    check_number("ridge", ridge, above=0.0)
    check_generator("rng", rng, optional=False)
    check_number("relative_gap", relative_gap, at_least=0.0)
    check_whole("max_passes", max_passes, at_least=1)
    check_seconds("max_seconds", max_seconds)
    check_parts(examples, "labels", "oracle.compute_extreme_point", "scores", "statistics")
    dual = _HingeDual(examples, ridge)
    limits = Limits(RUN_NEVER_CONVERGES, max_passes, max_seconds)
    run = Run(limits, callbacks, "Training the support vectors")
    best_theta, best_value = dual.theta, np.inf
    passes, oracle_calls = 0, 0

    def stabilise() -> FloatArray:
        return best_theta + BOLDNESS * (dual.theta - best_theta)

    with one_blas_thread():  # entered only once: entering takes as long as a small decoding
        while True:
            theta = stabilise()
            primal = dual.certify(theta)
            if primal < best_value:
                best_theta, best_value = theta, primal
            passes, oracle_calls = passes + 1, oracle_calls + len(examples)
            run.record(passes, oracle_calls, primal, dual.value)
            gap = run.upper - run.lower
            status = Status.CONVERGED if gap <= relative_gap * run.upper else run.verdict(passes)
            if status is not None:
                break
            for m in rng.permutation(len(examples)):
                dual.learn(int(m), stabilise())
                dual.reweigh(SLACK * gap / len(examples))
            oracle_calls += len(examples)
    return TrainedCompetitor(
        theta=read_only(best_theta),
        objective=run.upper,
        lower_bound=run.lower,
        passes=passes,
        oracle_calls=oracle_calls,
        seconds=run.seconds,
        status=status,
        trajectory=tuple(run.trajectory),
    )


class _HingeDual:
    """Dual iterate: for every example, a convex combination of the corners found so far.

    D = sum losses - ridge/2 ||theta||^2, theta = sum parts, over the combinations of the corners
    ((phi(Y) - phi(y)) / ridge, loss(y)). An example's first corner is the observed structure
    itself: no loss, no change of theta.
    """

    def __init__(self, examples: Sequence[LabelledStructure], ridge: float) -> None:
        n_features = count_features([example.observed for example in examples])
        self._examples, self._ridge = examples, ridge
        self._parts = np.zeros((len(examples), n_features))
        self._losses = np.zeros(len(examples))
        self._owners = np.arange(len(examples))
        self._weights = np.ones(len(examples))
        self._gram = np.zeros((len(examples), len(examples)))
        self.theta = np.zeros(n_features)

    @property
    def value(self) -> float:
        """Dual value D at the current weights."""
        penalty = 0.5 * self._ridge * float(self.theta @ self.theta)
        return float(self._weights @ self._losses) - penalty

    def certify(self, theta: FloatArray) -> float:
        """Return the objective at theta, and add the corners of the same decodings.

        If the oracle is inexact, the returned value is an upper bound on the objective.
        """
        hinges = [self.learn(m, theta) for m in range(len(self._examples))]
        primal = sum(hinges) + 0.5 * self._ridge * float(theta @ theta)
        self.reweigh(SLACK * (primal - self.value))
        return primal

    def learn(self, m: int, theta: FloatArray) -> float:
        """Decode example m, keep the corner if it is new, and return a bound on its hinge loss."""
        example = self._examples[m]
        answer = decode(example, theta, 1.0)
        difference = example.observed - answer.statistics
        hinge = answer.loss - float(theta @ difference)
        own = self._owners == m
        if hinge > (self._losses[own] - self._ridge * (self._parts[own] @ theta)).max():
            self._add(m, difference / self._ridge, answer.loss)
        return max(hinge + answer.excess, 0.0)

    def reweigh(self, tolerance: float) -> None:
        """Maximise the dual over the known corners and recompute theta."""
        ascend_faces(
            self._gram,
            self._losses,
            self._owners,
            len(self._examples),
            self._weights,
            tolerance,
            MAX_SOLVES,
        )
        self.theta = self._weights @ self._parts

    def _add(self, m: int, part: FloatArray, loss: float) -> None:
        """Append a corner with weight zero; drop other corners of weight zero if there are many."""
        if len(self._losses) > MAX_CORNERS * (len(self.theta) + len(self._examples)):
            kept = self._weights > 0.0
            kept[: len(self._examples)] = True
            self._parts, self._losses = self._parts[kept], self._losses[kept]
            self._owners, self._weights = self._owners[kept], self._weights[kept]
            self._gram = self._gram[np.ix_(kept, kept)]
        self._parts = np.vstack([self._parts, part])
        self._losses = np.append(self._losses, loss)
        self._owners = np.append(self._owners, m)
        self._weights = np.append(self._weights, 0.0)
        self._gram = np.pad(self._gram, ((0, 1), (0, 1)))
        self._gram[-1] = self._gram[:, -1] = self._ridge * (self._parts @ part)
