"""Marginals of the joint matching within one group of students."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.cascade import Aim, MatchingProblem, Method, solve_in_parts
from engine.inference.matching.potentials import DenseScores


@dataclass(frozen=True, slots=True)
class GroupMarginals:
    """Probabilities of the pairs of a group, with their accuracy.

    Parameters
    ----------
    tau : ndarray, shape (m, m), symmetric, rows summing to 1, read-only.
    is_exact : ndarray, shape (m,), bool, read-only
        True for students whose probabilities are summed over all perfect matchings. Those of the
        others are approximate: the optimum of the Bethe free energy over the matching polytope.
    gap : float, nats
        Certified bound on the shortfall of the free energy from that optimum; 0 if the optimum is
        known to the last digits, inf if no bound could be computed.
    methods : tuple of Method, that computed them; several if parts were solved apart.
    """

    tau: FloatArray
    is_exact: BoolArray
    gap: float
    methods: tuple[Method, ...]

    @property
    def accuracy(self) -> Literal["exact", "bethe"]:
        """Accuracy of the whole group: "exact" if all probabilities are, else "bethe"."""
        return "exact" if bool(self.is_exact.all()) else "bethe"


def compute_group_marginals(
    scores: FloatArray,
    rho: float,
    forbidden: IntArray,
    *,
    is_guide: bool = False,
    should_stop: StopCallback = never_stop,
) -> GroupMarginals:
    """Return the marginals of perfect matchings that avoid the forbidden pairs.

    Parameters
    ----------
    scores : ndarray, shape (m, m), symmetric up to rounding, nats; the diagonal is ignored.
    rho : float, reweighting; groups that are summed exactly need none.
    forbidden : ndarray, shape (f, 2), indices of the students.
    is_guide : bool
        Whether approximate marginals only guide a Markov chain: they are then accurate to 1e-4
        under the degree constraints, and the gap is inf, since no odd set is examined. Only if
        every student may live with half of the group; else some pairs might have to be clamped.
    should_stop : called before every sweep and every call of an oracle.

    Raises
    ------
    InfeasibleError
        If the forbidden pairs leave no perfect matching and that is detected.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    The methods and their order are those of ``engine.inference.matching.cascade``.
    """
    values = DenseScores(exclude_pairs(scores, forbidden))
    aim = Aim.GUIDE if is_guide else Aim.PROBABILITIES
    found = solve_in_parts(MatchingProblem(values, rho, aim, should_stop=should_stop))
    return GroupMarginals(read_only(found.tau), read_only(found.is_exact), found.gap, found.methods)


def exclude_pairs(scores: FloatArray, forbidden: IntArray) -> FloatArray:
    """Return symmetric scores (m, m) with -inf for the forbidden pairs (f, 2)."""
    values = np.minimum(scores, scores.T)  # matrix products are symmetric only up to rounding
    values[forbidden[:, 0], forbidden[:, 1]] = -np.inf
    values[forbidden[:, 1], forbidden[:, 0]] = -np.inf
    return values
