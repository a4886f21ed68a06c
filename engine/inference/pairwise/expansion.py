"""Multi-label MAP by alpha-expansion moves, each a minimum cut or a roof-dual move."""

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.options import check_callables, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.graphs.pairwise import PairwiseModel
from engine.inference.map_estimate import IMPOSSIBLE, MapEstimate
from engine.inference.pairwise.fusion import FusionMoves, move_scores
from engine.inference.pairwise.map_linear_programme import SmoothedDual, with_finite_penalty

# Rounds of star updates for the bound of the result; they do not influence the labelling.
BOUND_ROUNDS = 60
BOUND_BETA = 8.0
MOVE_WORK = 60.0  # of a move, per node and edge, in table entries of elimination (10 ns)


def map_by_expansion(
    model: PairwiseModel,
    *,
    start: IntArray | None = None,
    max_rounds: int = 100,
    should_stop: StopCallback = never_stop,
) -> MapEstimate:
    """Improve a labelling by expansion moves until no label can be expanded with a gain.

    A move lets every node keep its label or take alpha. If all edges of a move are attractive, the
    best such move is found; otherwise roof duality finds the nodes that persistency decides, and
    the others keep their labels, so that the score never falls.

    Parameters
    ----------
    model : PairwiseModel
    start : ndarray, shape (n_nodes,), int64, optional, initial labels.
    max_rounds : int, number of rounds; a round expands every label once.
    should_stop : callable returning bool, optional, called before every move and every sweep.

    Returns
    -------
    MapEstimate
        status CONVERGED once a move of each label in turn brought no gain; ``guarantee`` states
        whether all of these were optimal. The upper bound comes from a linear-programme dual.

    References
    ----------
    Boykov, Veksler and Zabih 2001; Rother, Kolmogorov, Lempitsky and Szummer 2007.

    Examples
    --------
    >>> from engine.graphs.pairwise import PairwiseGraph
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> model = PairwiseModel(graph, np.array([0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0]))
    >>> map_by_expansion(model).labels.tolist()
    [1, 1]
    """
    check_whole("max_rounds", max_rounds)
    check_callables(should_stop=should_stop)
    expansion = Expansion(model, start)
    status = Status.CONVERGED
    while not expansion.is_done:
        if expansion.tried == max_rounds * expansion.n_labels:
            status = Status.ITERATION_LIMIT
            break
        if should_stop():
            status = Status.CANCELLED
            break
        expansion.step()
    value = model.graph.score(model.scores, expansion.labels)
    converged = status.is_converged
    return MapEstimate(
        labels=read_only(expansion.labels.copy()),
        value=value,
        upper_bound=max(value, _dual_bound(model, should_stop)),
        status=status,
        iterations=-(-expansion.tried // expansion.n_labels),
        guarantee=_guarantee(converged, expansion.all_exact, _is_attractive(model))
        if value > -np.inf
        else IMPOSSIBLE,
    )


class Expansion:
    """Expansion moves on one model, one label after the other.

    ``labels`` are the present ones, ``tried`` the number of moves, ``all_exact`` whether all moves
    since the last gain were optimal, and ``is_done`` whether a move of each label gained nothing;
    ``work`` is the work of a move, in table entries.
    """

    def __init__(self, model: PairwiseModel, start: IntArray | None = None) -> None:
        """Start from given labels, or from each node's best label by itself."""
        self._graph = model.graph
        self._scores = with_finite_penalty(model)
        self._moves = FusionMoves(self._graph, self._scores)
        self.labels = _best_alone(model) if start is None else np.array(start, dtype=np.int64)
        self._value = self._graph.score(self._scores, self.labels)
        self.n_labels = int(self._graph.cardinalities.max())
        self.work = MOVE_WORK * (self._graph.n_nodes + self._graph.n_edges)  # of a move
        self.tried = 0
        self.all_exact = True
        self._quiet = 0  # moves since the last gain

    @property
    def is_done(self) -> bool:
        """True if a move of each label in turn brought no gain."""
        return self._quiet >= self.n_labels

    def step(self) -> None:
        """Try the next label's move."""
        alpha = self.tried % self.n_labels
        has_alpha = self._graph.cardinalities > alpha
        # A node without the label alpha keeps its label in both choices of the move.
        proposal, exact = self._moves.fuse(self.labels, np.where(has_alpha, alpha, self.labels))
        self.tried, self._quiet = self.tried + 1, self._quiet + 1
        self.all_exact = self.all_exact and exact
        score = self._graph.score(self._scores, proposal)
        if score > self._value + 1e-12 * abs(self._value):
            self.labels, self._value = proposal, score
            self._quiet, self.all_exact = 0, True


def _guarantee(converged: bool, all_exact: bool, attractive: bool) -> str:
    if not converged:
        return "None: stopped while moves still improved the labelling."
    if all_exact and attractive:
        return "Optimal: the model is binary and attractive, and both expansions were optimal."
    if all_exact:
        return (
            "No expansion of any label improves the labelling; for metric edge costs its cost is "
            "within twice the ratio of largest to smallest edge cost of the best."
        )
    return (
        "No move that persistency decides improves the labelling; some moves were left undecided, "
        "so better expansions may exist."
    )


def _is_attractive(model: PairwiseModel) -> bool:
    """Return True if labels are binary and every theta_00 + theta_11 >= theta_01 + theta_10."""
    graph = model.graph
    highest = graph.cardinalities - 1
    if highest.max() > 1:
        return False
    scores = move_scores(graph, with_finite_penalty(model), 0 * highest, highest)
    tables = scores[2 * graph.n_nodes :].reshape(-1, 2, 2)
    signed = (tables[:, 0, 0] - tables[:, 0, 1]) - (tables[:, 1, 0] - tables[:, 1, 1])
    return bool((signed >= 0.0).all())


def _best_alone(model: PairwiseModel) -> IntArray:
    graph = model.graph
    return np.array(
        [int(np.argmax(graph.node_table(model.scores, i))) for i in range(graph.n_nodes)],
        dtype=np.int64,
    )


def _dual_bound(model: PairwiseModel, should_stop: StopCallback) -> float:
    dual = SmoothedDual(model, BOUND_BETA)
    for beta in (BOUND_BETA, np.inf):
        dual.set_beta(beta)
        for _ in range(BOUND_ROUNDS):
            if should_stop():  # the bound holds, but is less tight
                return dual.upper_bound()
            dual.run(model.graph.n_nodes)
    return dual.upper_bound()
