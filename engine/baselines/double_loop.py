"""Double-loop baseline: gradient ascent with gradients from belief propagation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.baselines.decoding import count_features
from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.options import check_flag, check_number, check_whole
from engine.core.progress import Progress
from engine.core.status import Status
from engine.crf.bipartite import BipartiteItems, check_assignment
from engine.inference.matching.bipartite_propagation import Messages, propagate_bipartite
from engine.solvers.control import Callbacks, Limits, Run


@dataclass(frozen=True, slots=True)
class Propagation:
    """Options of the inner loop, belief propagation.

    Parameters
    ----------
    damping : float
        In [0, 1): weight of the old log message in the update.
    max_sweeps : int
    tolerance : float
        Largest change of a marginal at convergence.
    is_warm : bool
        True to start from the messages of the previous step of the outer loop.

    Examples
    --------
    >>> Propagation(damping=0.5, is_warm=True).max_sweeps
    100
    """

    damping: float = 0.0
    max_sweeps: int = 100
    tolerance: float = 1e-6
    is_warm: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_number("damping", self.damping, at_least=0.0, below=1.0)
        check_whole("max_sweeps", self.max_sweeps, at_least=1)
        check_number("tolerance", self.tolerance, at_least=0.0)
        check_flag("is_warm", self.is_warm)


@dataclass(frozen=True, slots=True)
class DoubleLoopStep:
    """Measurements of one step of the outer loop, made before the step.

    ``gradient_norm`` is computed from belief propagation; ``n_unconverged`` counts the examples on
    which it did not converge; ``margin_error`` is the largest error of a row or column sum of its
    marginals.
    """

    gradient_norm: float
    n_unconverged: int
    margin_error: float


@dataclass(frozen=True, slots=True)
class DoubleLoopResult:
    """Parameters learned by the double loop, with the history of its steps.

    Parameters
    ----------
    theta : ndarray, shape (K,)
    parameters : ndarray, shape (steps, K)
        Theta before each step.
    steps : tuple of DoubleLoopStep
    sweeps : int
        Total number of sweeps of belief propagation.
    seconds : float
        Wall clock.
    status : Status
        CONVERGED only if the gradient fell below the target norm *and* every inner loop converged,
        so that the gradient is reliable.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> example = PropagatedExample(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> len(train_double_loop([example], ridge=1.0, step_size=0.5, max_steps=3).parameters)
    3
    """

    theta: FloatArray
    parameters: FloatArray
    steps: tuple[DoubleLoopStep, ...]
    sweeps: int
    seconds: float
    status: Status


class PropagatedExample:
    """Items with their observed assignment, and marginals by belief propagation.

    Parameters
    ----------
    items : BipartiteItems
    columns : ndarray, shape (n,), int, a permutation

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> example = PropagatedExample(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> example.propagate(np.zeros(1), Propagation()).is_converged
    True
    """

    def __init__(self, items: BipartiteItems, columns: IntArray) -> None:
        self._items = items
        self.observed = items.assignment_statistics(check_assignment(columns, items.n_items))
        self._messages: Messages | None = None

    def propagate(self, theta: FloatArray, inner: Propagation) -> "_Believed":
        """Run belief propagation at ``theta`` and return its statistics."""
        result = propagate_bipartite(
            self._items.scores(theta),
            damping=inner.damping,
            tolerance=inner.tolerance,
            max_sweeps=inner.max_sweeps,
            start=self._messages if inner.is_warm else None,
        )
        self._messages = result.messages
        tau = result.marginals
        errors = [np.abs(tau.sum(axis=axis) - 1.0).max() for axis in (0, 1)]
        return _Believed(
            self._items.statistics(tau),
            result.sweeps,
            result.status.is_converged,
            float(max(errors)),
        )


@dataclass(frozen=True, slots=True)
class _Believed:
    statistics: FloatArray
    sweeps: int
    is_converged: bool
    margin_error: float


def train_double_loop(
    examples: Sequence[PropagatedExample],
    *,
    ridge: float,
    step_size: float,
    inner: Propagation = Propagation(),
    max_steps: int = 200,
    gradient_norm: float = 1e-3,
    callbacks: Callbacks = Callbacks(),  # noqa: B008 - frozen
) -> DoubleLoopResult:
    """Ascend l(theta) by theta += step_size (sum_m phi(Y^m) - phi(tau^m) - ridge theta).

    Every step needs the marginals tau^m(theta) of all examples, and uses those that belief
    propagation returns after at most ``inner.max_sweeps`` sweeps. The result has no certificate: if
    the inner loop did not converge, the gradient is wrong, and no line search can detect it.

    Parameters
    ----------
    examples : sequence of PropagatedExample
    ridge : float, lambda > 0
    step_size : float
        With exact marginals, ascent is monotone for step sizes below
        2 / (lambda + largest curvature of sum_m log Z^m).
    inner : Propagation
    max_steps : int
    gradient_norm : float, Euclidean norm that counts as converged
    callbacks : Callbacks, called after each step; checkpoints are not written

    Returns
    -------
    DoubleLoopResult

    Raises
    ------
    InvalidProblemError
        If there is no example, their numbers of features differ, or ridge or step is not above 0.

    References
    ----------
    Tang et al. (2015), section 4.1.2: "very unstable, because BP often failed to converge after
    taking several gradient steps".

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> example = PropagatedExample(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> result = train_double_loop([example], ridge=1.0, step_size=0.5)
    >>> result.theta.round(2).tolist(), result.status.value
    ([0.06], 'iteration limit')
    """
    check_number("ridge", ridge, above=0.0)
    check_number("step_size", step_size, above=0.0)
    check_whole("max_steps", max_steps)
    check_number("gradient_norm", gradient_norm, at_least=0.0)
    theta = np.zeros(count_features([example.observed for example in examples]))
    observed = np.sum([example.observed for example in examples], axis=0)
    run = Run(Limits(), callbacks, "Ascending with belief propagation")
    steps: list[DoubleLoopStep] = []
    path: list[FloatArray] = []
    sweeps, status = 0, Status.ITERATION_LIMIT
    while len(steps) < max_steps:
        found = [example.propagate(theta, inner) for example in examples]
        sweeps += sum(f.sweeps for f in found)
        gradient = observed - np.sum([f.statistics for f in found], axis=0) - ridge * theta
        steps.append(_summarise(gradient, found))
        path.append(theta)
        callbacks.on_progress(Progress(run.sentence, iteration=len(steps), seconds=run.seconds))
        if steps[-1].gradient_norm <= gradient_norm and not steps[-1].n_unconverged:
            status = Status.CONVERGED
            break
        if callbacks.should_stop():
            status = Status.CANCELLED
            break
        theta = theta + step_size * gradient
    return DoubleLoopResult(
        read_only(theta), read_only(np.array(path)), tuple(steps), sweeps, run.seconds, status
    )


def _summarise(gradient: FloatArray, found: Sequence[_Believed]) -> DoubleLoopStep:
    return DoubleLoopStep(
        gradient_norm=float(np.linalg.norm(gradient)),
        n_unconverged=sum(not f.is_converged for f in found),
        margin_error=max(f.margin_error for f in found),
    )
