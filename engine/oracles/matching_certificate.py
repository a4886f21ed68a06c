"""Integer proof of a perfect matching's optimality from its duals.

The dual of min sum c_e x_e, x(delta(v)) = 1, x(delta(B)) >= 1 for odd sets B, is
max sum_v y_v + sum_B z_B with z >= 0 and c_ij - y_i - y_j - sum of z_B over the B that separate i
and j >= 0. Equal values prove both solutions optimal (Edmonds 1965).
"""

import math
from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import CertificateError
from engine.kernels.laminar import LaminarFamily, laminar_family
from engine.kernels.matching_edges import edge_slacks

HEADROOM_BITS = 60  # a sum of n costs stays below 2^60, twice that below the kernel's NEVER


def scale_exponent(n_nodes: int, extent: float) -> int:
    """Return the exponent e such that n costs of size 2^e * extent add up without overflow.

    Weights are rounded to multiples of 2^(1 - e): for n = 10,000 that is 2^-45 of the largest one,
    for n = 100 it is 2^-52, as fine as the largest weight itself.
    """
    return HEADROOM_BITS - max(n_nodes, 1).bit_length() - math.frexp(extent)[1]


def round_costs(weights: FloatArray, exponent: int) -> IntArray:
    """Return even integer costs -2 rint(weight * 2^exponent / 2)."""
    return (-2 * np.rint(np.ldexp(weights, exponent - 1))).astype(np.int64)


@dataclass(frozen=True, slots=True)
class IntegerDuals:
    """Integer duals of a minimum-cost perfect matching, from the compiled kernel.

    ``dual`` (n,) includes the blossoms around a vertex; ``blossom_dual`` and ``parent`` (N,) are
    the laminar family, its first n entries standing for the vertices; ``family`` is derived
    from them.
    """

    dual: IntArray
    blossom_dual: IntArray
    parent: IntArray
    family: LaminarFamily = field(init=False)

    def __post_init__(self) -> None:
        family = laminar_family(len(self.dual), self.parent, self.blossom_dual)
        object.__setattr__(self, "family", family)

    @property
    def value(self) -> int:
        """Exact dual objective: the vertices' own duals and those of the blossoms."""
        n = len(self.dual)
        alone = self.dual - self.family.around[:n]
        return int(sum(alone.tolist(), sum(self.blossom_dual[n:].tolist())))


def check_partners(partner: IntArray) -> None:
    """Raise CertificateError unless every node is its partner's partner, and not its own."""
    nodes = np.arange(len(partner))
    inside = ((partner >= 0) & (partner < len(partner))).all()
    if not inside or (partner[partner] != nodes).any() or (partner == nodes).any():
        raise CertificateError("the answer is not a perfect matching.")


def check_values(duals: IntegerDuals, cost_of_matching: int) -> None:
    """Raise CertificateError unless blossom duals have their sign and the two values agree."""
    n = len(duals.dual)
    if (duals.blossom_dual[n:] < 0).any():
        raise CertificateError("a blossom has a negative dual.")
    value = duals.value
    if value != cost_of_matching:
        raise CertificateError(
            f"the matching costs {cost_of_matching} (scaled) but its dual proves {value}."
        )


def check_edges(duals: IntegerDuals, heads: IntArray, tails: IntArray, cost: IntArray) -> None:
    """Raise CertificateError unless every listed edge has a non-negative reduced cost."""
    slack = edge_slacks(heads, tails, cost, duals.dual, duals.family)
    if len(slack) and slack.min() < 0:
        k = int(slack.argmin())
        raise CertificateError(
            f"edge ({heads[k]}, {tails[k]}) has a reduced cost of {slack[k]} (scaled), below 0."
        )


def weight_bound(duals: IntegerDuals, exponent: int, *, roundings: int) -> float:
    """Return an upper bound on the maximum weight, in the unit of the weights.

    Each of the n/2 chosen weights is the sum of ``roundings`` numbers that rounding changed by up
    to 2^-exponent each: 0 if all were multiples of 2^(1 - exponent) already.
    """
    mantissa = roundings * (len(duals.dual) // 2) - duals.value
    return float(mantissa * 2**-exponent if exponent <= 0 else mantissa / 2**exponent)
