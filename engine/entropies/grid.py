"""Tree-reweighted entropy of a binary grid with one rho, without stored coefficients."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, as_kernel_input
from engine.core.options import check_number
from engine.kernels.grid_entropy import entropy_along, fill_gradient
from engine.oracles.protocol import Vertex


@dataclass(frozen=True, slots=True)
class GridEntropy:
    """Entropy H(tau) = sum_i H(tau_i) - rho sum_ij I(tau_ij) on the flat tables of a grid.

    It computes the function of `grid_entropy` for one rho, for sets of many pictures: it needs no
    work space, so that pictures on several threads share none.

    Parameters
    ----------
    shape : rows and columns
    rho : float, in (0, 1/2] for a concave function

    Examples
    --------
    >>> from engine.graphs.grid import Grid
    >>> round(GridEntropy((2, 2), 0.5).value(Grid(2, 2).uniform().flat) / float(np.log(2)), 9)
    4.0
    """

    shape: tuple[int, int]
    rho: float

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_number("rho", self.rho, at_least=0.0, at_most=1.0)

    def value(self, point: FloatArray) -> float:
        """Return H(tau) in nats."""
        point = as_kernel_input(point)
        return float(entropy_along(self.shape, self.rho, point, point, 0.0)[0])

    def gradient(self, point: FloatArray) -> FloatArray:
        """Return dH/dtau, flat, at a point in the interior."""
        out = np.empty(len(point))
        fill_gradient(self.shape, self.rho, point, out)
        return out

    def along(
        self, point: FloatArray, vertex: Vertex
    ) -> Callable[[float], tuple[float, float, float]]:
        """Return g -> H, H', H'' at tau + g (v - tau), for a vertex given by all its entries."""
        start, end = as_kernel_input(point), as_kernel_input(vertex.values)

        def evaluate(step: float) -> tuple[float, float, float]:
            value, slope, curvature = entropy_along(self.shape, self.rho, start, end, step)
            return float(value), float(slope), float(curvature)

        return evaluate
