"""Averaged structured perceptron, a baseline learner."""

from collections.abc import Sequence

import numpy as np

from engine.baselines.decoding import (
    LabelledStructure,
    TrainedCompetitor,
    count_features,
    decode,
)
from engine.core.arguments import read_only
from engine.core.options import check_generator, check_seconds, check_whole
from engine.core.status import Status
from engine.objectives.protocol import check_parts
from engine.solvers.control import Callbacks, Limits, Run


def train_structured_perceptron(
    examples: Sequence[LabelledStructure],
    *,
    rng: np.random.Generator,
    max_passes: int = 20,
    max_seconds: float | None = None,
    callbacks: Callbacks = Callbacks(),  # noqa: B008 - frozen
) -> TrainedCompetitor:
    """Train the averaged structured perceptron: add phi(Y) - phi(y) after each wrong decoding y.

    theta_t = theta_{t-1} + phi(Y^m) - phi(argmax_y <theta_{t-1}, phi^m(y)>); the result is the
    mean of all theta_t, which generalises better than the last one. The perceptron finds a
    separating theta if there is one; it has no objective and no regulariser.

    Parameters
    ----------
    examples : sequence of structures with labels
    rng : numpy.random.Generator, the order within each pass
    max_passes : int
    max_seconds : float, optional
    callbacks : Callbacks, called after each pass; checkpoints are not written

    Returns
    -------
    TrainedCompetitor
        CONVERGED when a whole pass made no mistake. The trajectory's objective is the smallest
        number of mistakes in one pass so far.

    Raises
    ------
    InvalidProblemError
        If there is no example or the examples differ in their number of features.

    References
    ----------
    Collins (2002), Discriminative training methods for hidden Markov models, section 2.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> train_structured_perceptron([pairs], rng=np.random.default_rng(0)).status.value
    'converged'
    """
    check_generator("rng", rng, optional=False)
    check_whole("max_passes", max_passes, at_least=1)
    check_seconds("max_seconds", max_seconds)
    check_parts(examples, "labels", "oracle.compute_extreme_point", "scores", "statistics")
    observed = [example.observed for example in examples]
    n_features = count_features(observed)
    run = Run(Limits(0.0, None, max_seconds), callbacks, "Training the perceptron")
    theta, total = np.zeros(n_features), np.zeros(n_features)
    calls, status = 0, Status.ITERATION_LIMIT
    passes = 0
    while passes < max_passes:
        mistakes = 0
        for m in rng.permutation(len(examples)):
            answer = decode(examples[m], theta)
            calls += 1
            if answer.loss > 0.0:
                theta = theta + observed[m] - answer.statistics
                mistakes += 1
            total += theta
        passes += 1
        run.record(passes, calls, float(mistakes), None)
        stop = Status.CONVERGED if mistakes == 0 else run.verdict(passes)
        if stop is not None:
            status = stop
            break
    average = total / max(calls, 1)
    return TrainedCompetitor(
        read_only(average), None, None, passes, calls, run.seconds, status, tuple(run.trajectory)
    )
