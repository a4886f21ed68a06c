"""Tree-reweighted and Bethe belief propagation on binary grids, warm-started."""

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.rounding import sum_allowance
from engine.core.status import Status
from engine.entropies.pairwise import grid_entropy
from engine.graphs.grid import Grid, GridTables
from engine.graphs.pairwise import PairwiseModel
from engine.inference.marginals import Marginals
from engine.inference.pairwise.tree_reweighted import Schedule, TreeReweighted
from engine.kernels.long_sums import inner_product
from engine.kernels.trw_grid import (
    MESSAGES,
    largest_residual,
    pack_scores,
    read_marginals,
    sweep,
    upper_bound,
)

# Messages are plain ratios: their logarithms must stay far inside the range of float64 (709),
# also when four of them are multiplied and once more by a table entry.
LARGEST_REACH = 600.0
# Up to here every grid is a mixture of forests (all rows, all columns) and the bound is proven.
LARGEST_CERTIFIED_RHO = 0.5
# Iterations between two evaluations of the certified gap, which cost a few iterations each.
GAP_PERIOD = 10
ROUNDINGS = 32  # of a number on its way into the bound, besides the sums over a row and over rows


class GridTreeReweighted:
    """Maximise <tau, theta> + H_rho(tau) over the local polytope of a binary grid by messages.

    rho = 1/2 is tree-reweighted (concave, log Z_rho >= log Z); rho = 1 is loopy belief
    propagation on the Bethe free energy, without any bound.

    Keeps the messages between calls of ``solve`` (``warm=True``) and all work space; one object a
    thread; the kernels release the GIL.

    Parameters
    ----------
    grid : Grid
        Two labels a node.
    rho : float
        In (0, 1]; bounds of log Z are proven up to 1/2.

    Notes
    -----
    A sequential iteration sweeps anti-diagonals forward and back, which is raster order, with
    each message updated once; "checkerboard" updates all messages out of the even nodes, then out
    of the odd ones. Both cost the same; sequential sweeps converge more often.

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
        if grid.n_labels != 2:
            raise InvalidProblemError(
                f"This solver needs two labels a node, received {grid.n_labels}."
            )
        if not 0.0 < rho <= 1.0:
            raise InvalidProblemError(f"rho: expected a number in (0, 1], received {rho}.")
        self.grid = grid
        self.rho = float(rho)
        self.entropy = grid_entropy(grid, rho)
        self._packed = np.ones((11, grid.height + grid.width + 1, grid.height + 2))
        self._beliefs = np.zeros((grid.height, grid.width))

    def reset(self) -> None:
        """Forget the messages."""
        self._packed[MESSAGES:] = 1.0

    def solve(
        self,
        scores: FloatArray,
        *,
        max_iterations: int = 1000,
        tolerance: float = 1e-9,
        accuracy: float | None = None,
        schedule: Schedule = "sequential",
        damping: float = 0.0,
        warm: bool = False,
    ) -> Marginals:
        """Iterate until no log message moves by more than ``tolerance``.

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

        Notes
        -----
        Scores so large that ratios of probabilities might overflow are handed to the general
        solver, which works with logarithms and starts cold.
        """
        tables = self.grid.wrap("scores", scores)
        if not warm:
            self.reset()
        reach = pack_scores(
            tables.nodes, tables.horizontal, tables.vertical, self.rho, self._packed
        )
        if reach > LARGEST_REACH:
            return self._solve_in_logarithms(
                tables, max_iterations, tolerance, accuracy, schedule, damping
            )
        return self._iterate(
            tables,
            max_iterations,
            # |new - old| <= t (new + old) is a change of the logarithm by 2 t
            0.5 * tolerance * (1.0 - damping),
            accuracy if self.rho <= LARGEST_CERTIFIED_RHO else None,
            schedule == "checkerboard",
            damping,
        )

    def _solve_in_logarithms(
        self,
        tables: GridTables,
        max_iterations: int,
        tolerance: float,
        accuracy: float | None,
        schedule: Schedule,
        damping: float,
    ) -> Marginals:
        """Use the general solver, some thirty times slower, where ratios would overflow."""
        graph = self.grid.to_pairwise()
        is_mixture = self.rho <= LARGEST_CERTIFIED_RHO
        return TreeReweighted(graph, self.rho, bounded=False, from_trees=is_mixture).solve(
            PairwiseModel(graph, tables.flat),
            max_iterations=max_iterations,
            tolerance=tolerance,
            accuracy=accuracy,
            schedule=schedule,
            damping=damping,
        )

    def _iterate(
        self,
        tables: GridTables,
        limit: int,
        tolerance: float,
        accuracy: float | None,
        checkerboard: bool,
        damping: float,
    ) -> Marginals:
        """Sweep in chunks, and look at the certified gap between them if asked to."""
        done = 0
        while True:
            chunk = limit - done if accuracy is None else min(GAP_PERIOD, limit - done)
            iterations, moved = sweep(
                self.grid.height,
                self.grid.width,
                self.rho,
                damping,
                tolerance,
                checkerboard,
                chunk,
                self._packed,
            )
            done += iterations
            met = chunk > 0 and moved == 0
            if met or accuracy is None or done >= limit:
                return self._result(tables, done, met, accuracy)
            result = self._result(tables, done, met, accuracy)
            if result.is_converged:
                return result

    def _result(
        self, tables: GridTables, iterations: int, met: bool, accuracy: float | None
    ) -> Marginals:
        """Read the marginals and both values off the messages."""
        marginals = self.grid.zeros()
        read_marginals(
            self._packed, self.rho, marginals.nodes, marginals.horizontal, marginals.vertical
        )
        value = inner_product(marginals.flat, tables.flat) + self.entropy.value(marginals.flat)
        bound = None
        if self.rho <= LARGEST_CERTIFIED_RHO:
            bound = self._upper_bound(tables)
            met = met or (accuracy is not None and bound - value <= accuracy)
        return Marginals(
            tables=read_only(marginals.flat),
            log_partition=value,
            lower_bound=None,
            upper_bound=bound,
            iterations=iterations,
            status=Status.CONVERGED if met else Status.ITERATION_LIMIT,
            change=largest_residual(self.grid.height, self.grid.width, self._packed, self.rho),
        )

    def _upper_bound(self, tables: GridTables) -> float:
        """Return the bound that the messages prove, with what rounding may take from it.

        Never above that of one independent maximum a table, which needs no messages.
        """
        grid = self.grid
        bound, magnitude = upper_bound(
            tables.nodes,
            tables.horizontal,
            tables.vertical,
            self._packed,
            self.rho,
            self._beliefs,
        )
        # Ratios are exponentials of scores: each is off by a rounding a nat, and by a few more.
        sizes = float(np.abs(tables.flat).sum())
        terms = magnitude + 4.0 * sizes + grid.n_nodes + grid.n_edges
        longest = grid.height + grid.width + ROUNDINGS
        simple = float(np.logaddexp(tables.nodes[..., 0], tables.nodes[..., 1]).sum())
        simple += float(tables.horizontal.max(axis=(2, 3)).sum())
        simple += float(tables.vertical.max(axis=(2, 3)).sum())
        allowance = sum_allowance(longest, terms)
        return (min(bound, simple) if np.isfinite(bound) else simple) + allowance
