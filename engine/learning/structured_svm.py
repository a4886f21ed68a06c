"""The structured support vector machine, by block-coordinate Frank-Wolfe."""

from collections.abc import Sequence

import numpy as np

from engine.core.arguments import FloatArray, check_positive, read_only
from engine.core.status import Status
from engine.kernels.simplex_master import ascend_pairwise
from engine.learning.structured_example import (
    StructuredExample,
    TrainedCompetitor,
    count_features,
)
from engine.solvers.control import Limits, Run, Watch

RUN_NEVER_CONVERGES = 1e-12
"""A run divides the gap by at least one nat; hinge objectives fall far below, so we divide here."""

MAX_PAIRWISE_STEPS = 20_000
"""After each decoding; a step costs microseconds, a decoding up to seconds."""

BOLDNESS = 0.5
"""Where certificates are made: this far from the best theta towards the dual's, which swings."""

MAX_CORNERS = 20
"""Corners kept per example before those without weight are forgotten."""


def train_structured_svm(
    examples: Sequence[StructuredExample],
    *,
    ridge: float,
    rng: np.random.Generator,
    relative_gap: float = 1e-3,
    max_passes: int = 1000,
    max_seconds: float | None = None,
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> TrainedCompetitor:
    """Minimise lambda/2 ||theta||^2 + sum_m max_y [ loss(y) - <theta, phi(Y^m) - phi(y)> ].

    With matchings of a bipartite graph this is max-margin linear assignment ("linear + learning").
    Every step decodes one example with its loss added to the scores, and then moves all examples'
    blocks by pairwise steps over the answers seen so far: plain Frank-Wolfe steps need thousands of
    times more decodings for the same digits. A full pass of decodings certifies the result.

    Parameters
    ----------
    examples : sequence of StructuredExample
    ridge : float
        lambda > 0, in the scale of a *sum* over examples.
    rng : numpy.random.Generator, the order within each pass
    relative_gap : float
        Primal minus dual value, over the primal value, that counts as converged.
    max_passes : int
    max_seconds : float, optional
    watch : Watch, callbacks asked after each pass; checkpoints are not written

    Returns
    -------
    TrainedCompetitor
        ``objective`` is the smallest primal value seen and ``theta`` where it was seen;
        ``lower_bound`` the dual value.

    Raises
    ------
    InvalidProblemError
        If there is no example, their numbers of features differ, or ridge is not above 0.

    Notes
    -----
    A pass costs two decodings an example: one for the step at the dual's theta, one for the
    certificate between there and the best theta so far. With few large examples the dual's theta
    swings, and its own objective would hardly fall before the last digits.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), algorithm 4; Osokin et al. (2016), Minding
    the gaps for block Frank-Wolfe optimization of structured SVMs (pairwise steps, caching);
    Franc and Sonnenburg (2008), Optimized cutting plane algorithm (cuts near the best point);
    Caetano, McAuley, Cheng, Le and Smola (2009), Learning graph matching.
    """
    ridge = check_positive("ridge", ridge)
    dual = _HingeDual(examples, ridge)
    limits = Limits(RUN_NEVER_CONVERGES, max_passes, max_seconds)
    run = Run(limits, watch, "Training the support vectors")
    best_theta, best_value = dual.theta, np.inf
    passes, status = 0, None
    while status is None:
        for m in rng.permutation(len(examples)):
            dual.step(int(m))
        passes += 1
        theta = best_theta + BOLDNESS * (dual.theta - best_theta)
        primal, lower_bound = dual.certify(theta)
        if primal < best_value:
            best_theta, best_value = theta, primal
        run.record(passes, 2 * passes * len(examples), primal, lower_bound)
        is_closed = run.upper - run.lower <= relative_gap * run.upper
        status = Status.CONVERGED if is_closed else run.verdict(passes)
    return TrainedCompetitor(
        theta=read_only(best_theta),
        objective=run.upper,
        lower_bound=run.lower,
        passes=passes,
        oracle_calls=2 * passes * len(examples),
        seconds=run.seconds,
        status=status,
        trajectory=tuple(run.trajectory),
    )


class _HingeDual:
    """The dual iterate: a convex combination of the corners met so far, for every example.

    D = sum losses - ridge/2 ||theta||^2, theta = sum parts, over the combinations of the corners
    ((phi(Y) - phi(y)) / ridge, loss(y)). An example's first corner is the observed structure
    itself: no loss, no change of theta.
    """

    def __init__(self, examples: Sequence[StructuredExample], ridge: float) -> None:
        n_features = count_features([example.observed for example in examples])
        self._examples, self._ridge = examples, ridge
        self._parts = np.zeros((len(examples), n_features))
        self._losses = np.zeros(len(examples))
        self._owners = np.arange(len(examples))
        self._weights = np.ones(len(examples))
        self._gram = np.zeros((len(examples), len(examples)))
        self.theta = np.zeros(n_features)

    def step(self, m: int) -> None:
        """Decode example m and reweigh all corners to a tenth of the gap found in its block."""
        gap = self._learn(m, self.theta)[1]
        self._reweigh(0.1 * gap)

    def certify(self, theta: FloatArray) -> tuple[float, float]:
        """Return the objective at any theta and the dual value; learn from the same decodings.

        The objective is what bounds it from above if the oracle is loose.
        """
        dual = self._dual_value()
        hinges = [self._learn(m, theta)[0] for m in range(len(self._examples))]
        primal = sum(hinges) + 0.5 * self._ridge * float(theta @ theta)
        self._reweigh(0.1 * (primal - dual))
        return primal, self._dual_value()

    def _dual_value(self) -> float:
        penalty = 0.5 * self._ridge * float(self.theta @ self.theta)
        return float(self._weights @ self._losses) - penalty

    def _learn(self, m: int, theta: FloatArray) -> tuple[float, float]:
        """Decode example m and keep the corner that attains its hinge loss, if it is new.

        Returns a bound on the hinge loss at theta, and its excess over the mean of the known
        corners: at the dual's own theta the Frank-Wolfe gap of the block.
        """
        example = self._examples[m]
        answer = example.decode(theta, 1.0)
        difference = example.observed - answer.statistics
        hinge = max(answer.loss - float(theta @ difference) + answer.excess, 0.0)
        own = self._owners == m
        slopes = self._losses[own] - self._ridge * (self._parts[own] @ theta)
        gap = hinge - float(self._weights[own] @ slopes)
        if hinge > slopes.max():
            self._add(m, difference / self._ridge, answer.loss)
        return hinge, gap

    def _add(self, m: int, part: FloatArray, loss: float) -> None:
        """Append a corner with weight zero; forget corners without weight when there are many."""
        if len(self._losses) > MAX_CORNERS * len(self._examples):
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

    def _reweigh(self, tolerance: float) -> None:
        """Maximise the dual over the known corners and form theta anew."""
        ascend_pairwise(
            self._gram,
            self._losses,
            self._owners,
            len(self._examples),
            self._weights,
            tolerance,
            MAX_PAIRWISE_STEPS,
        )
        self.theta = self._weights @ self._parts
