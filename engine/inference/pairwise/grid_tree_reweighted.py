"""Tree-reweighted and Bethe belief propagation on binary grids, warm-started."""

from functools import cached_property
from math import atanh, inf

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag, check_number, check_whole
from engine.core.rounding import sum_allowance
from engine.core.status import Status
from engine.crf.grid_features import GridScores
from engine.graphs.grid import Grid, GridTables
from engine.graphs.pairwise import PairwiseModel
from engine.inference.marginals import Marginals
from engine.inference.pairwise.tree_reweighted import GAP_PERIOD, TreeReweighted
from engine.kernels.grid_chains import SCORE_LIMIT
from engine.kernels.long_sums import inner_product
from engine.objectives.grid_chains import EXPONENT_LIMIT, CodedChains, largest_entries

# Messages are plain ratios: logarithms of their products must stay far below float64's limit, 709.
LARGEST_REACH = 600.0
# Up to this rho every grid is a mixture of forests (all rows, all columns): the bound is proved.
LARGEST_CERTIFIED_RHO = 0.5
ROUNDINGS = 32  # of a number in the bound, besides the sums over a row and over rows


class GridTreeReweighted:
    """Message passing that maximises <tau, theta> + H_rho(tau) over a binary grid's local polytope.

    rho = 1/2 is tree-reweighted (concave, log Z_rho >= log Z); rho = 1 is loopy belief
    propagation on the Bethe free energy, without any bound.

    The solver keeps the messages between calls of ``solve`` (``warm=True``): use one object for
    each thread. The kernels release the GIL.

    Parameters
    ----------
    grid : Grid
        Two labels a node.
    rho : float
        In (0, 1]; bounds of log Z are proved up to 1/2.

    Notes
    -----
    An iteration passes forward and back in raster order and updates each message once, by the
    kernels for learning from pictures, with a table an edge. Damping, and scores so large that
    ratios of probabilities might overflow, are left to `TreeReweighted`, which works with
    logarithms and is some 30 times slower.

    References
    ----------
    Wainwright, Jaakkola and Willsky 2005; Domke 2013, equation 18.

    Examples
    --------
    >>> grid = Grid(2, 3)
    >>> answer = GridTreeReweighted(grid).solve(np.zeros(grid.size))
    >>> bool(np.isclose(answer.upper_bound, 6 * np.log(2))), answer.is_converged
    (True, True)
    """

    def __init__(self, grid: Grid, rho: float = 0.5) -> None:
        """Allocate messages for ``grid``; raise InvalidProblemError unless 0 < rho <= 1."""
        check_number("rho", rho, above=0.0, at_most=1.0)
        if grid.n_labels != 2:
            raise InvalidProblemError(
                f"This solver needs two labels a node, received {grid.n_labels}."
            )
        self.grid = grid
        self.rho = float(rho)
        self._messages = np.ones((4, grid.height, grid.width))
        across, down = (
            np.arange(count, dtype=np.int32) for count in (grid.n_horizontal, grid.n_vertical)
        )
        self._codes = (
            across.reshape(grid.height, grid.width - 1),
            down.reshape(grid.height - 1, grid.width),
        )

    def reset(self) -> None:
        """Reset all messages."""
        self._messages[:] = 1.0

    def solve(
        self,
        scores: FloatArray,
        *,
        max_iterations: int = 1000,
        tolerance: float = 1e-9,
        accuracy: float | None = None,
        damping: float = 0.0,
        warm: bool = False,
    ) -> Marginals:
        """Iterate until no log message to the left or up moves by more than ``tolerance``.

        The next forward pass computes all other messages from these.

        Parameters
        ----------
        scores : ndarray, shape (grid.size,), tables of log potentials.
        accuracy : float, nats, optional
            Stop also once upper bound - value <= accuracy (rho <= 1/2 only): certified.
        damping : float in [0, 1)
            Share of the old message kept.

        Raises
        ------
        InvalidProblemError
            If the scores are not finite.
        """
        check_whole("max_iterations", max_iterations)
        check_number("tolerance", tolerance, at_least=0.0)
        check_number("accuracy", accuracy, at_least=0.0, optional=True)
        check_number("damping", damping, at_least=0.0, below=1.0)
        check_flag("warm", warm)
        tables = self.grid.wrap("scores", scores)
        if not warm:
            self.reset()
        if damping or not self._is_within_reach(tables):
            model = PairwiseModel(self._general.graph, tables.flat)
            return self._general.solve(
                model,
                max_iterations=max_iterations,
                tolerance=tolerance,
                accuracy=accuracy,
                damping=damping,
                warm=warm,
            )
        has_bound = self.rho <= LARGEST_CERTIFIED_RHO
        return self._iterate(tables, max_iterations, tolerance, accuracy if has_bound else None)

    @cached_property
    def _general(self) -> TreeReweighted:
        """General solver for the same graph, with messages of its own."""
        is_mixture = self.rho <= LARGEST_CERTIFIED_RHO
        graph = self.grid.to_pairwise()
        return TreeReweighted(graph, self.rho, bounded=False, from_trees=is_mixture)

    def _is_within_reach(self, tables: GridTables) -> bool:
        """Return True if no product of ratios can overflow, judged by the tables' spreads."""
        largest = float(np.abs(tables.nodes[..., 1] - tables.nodes[..., 0]).max())
        edges = tables.flat[2 * self.grid.n_nodes :].reshape(-1, 4)
        spreads = largest_entries(edges) + largest_entries(-edges)
        spread = float(spreads.max(initial=0.0)) / self.rho
        reach = largest + (4.0 * self.rho + 2.0) * spread
        return largest <= SCORE_LIMIT and spread <= EXPONENT_LIMIT and reach <= LARGEST_REACH

    def _iterate(
        self, tables: GridTables, limit: int, tolerance: float, accuracy: float | None
    ) -> Marginals:
        """Sweep, and evaluate the certified gap every few iterations if requested."""
        scores = GridScores(
            np.ascontiguousarray(tables.nodes[..., 1] - tables.nodes[..., 0]),
            float(tables.nodes[..., 0].sum()),
            tables.horizontal.reshape(-1, 4),
            tables.vertical.reshape(-1, 4),
        )
        chains = CodedChains(self._codes, scores, self.rho, self._messages)
        change, iterations = inf, 0
        while iterations < limit:
            relative = chains.sweep(1)
            change = 2.0 * atanh(relative) if relative < 1.0 else inf  # also if relative is NaN
            iterations += 1
            if change <= tolerance:
                return self._result(chains, tables, iterations, Status.CONVERGED, change)
            if accuracy is not None and (iterations % GAP_PERIOD == 0 or iterations == limit):
                result = self._result(chains, tables, iterations, Status.CONVERGED, change)
                if result.dual_gap <= accuracy:
                    return result
        return self._result(chains, tables, iterations, Status.ITERATION_LIMIT, change)

    def _result(
        self,
        chains: CodedChains,
        tables: GridTables,
        iterations: int,
        status: Status,
        change: float,
    ) -> Marginals:
        """Compute the marginals and both values from the messages."""
        marginals = self.grid.zeros()
        nodes = chains.marginals()
        right, down, entropy = chains.complete(nodes)
        marginals.nodes[..., 0], marginals.nodes[..., 1] = 1.0 - nodes, nodes
        marginals.horizontal[:] = right.reshape(marginals.horizontal.shape)
        marginals.vertical[:] = down.reshape(marginals.vertical.shape)
        has_bound = self.rho <= LARGEST_CERTIFIED_RHO
        return Marginals(
            tables=read_only(marginals.flat),
            log_partition=inner_product(marginals.flat, tables.flat) + entropy,
            lower_bound=None,
            upper_bound=self._upper_bound(chains, tables) if has_bound else None,
            iterations=iterations,
            status=status,
            change=change,
        )

    def _upper_bound(self, chains: CodedChains, tables: GridTables) -> float:
        """Return the bound that the messages prove, with an allowance for rounding.

        It is never above the bound by one independent maximum a table, which needs no messages.
        """
        grid = self.grid
        bound = chains.upper_bound()
        # Each logarithm in the bound is that of a product of node ratios, messages and tables.
        magnitude = 4.0 * float(np.abs(tables.flat).sum() + np.abs(np.log(self._messages)).sum())
        allowance = sum_allowance(
            grid.height + grid.width + ROUNDINGS, magnitude + 4.0 * (grid.n_nodes + grid.n_edges)
        )
        simple = float(np.logaddexp(tables.nodes[..., 0], tables.nodes[..., 1]).sum())
        simple += float(largest_entries(tables.flat[2 * grid.n_nodes :].reshape(-1, 4)).sum())
        return (min(bound, simple) if np.isfinite(bound) else simple) + allowance
