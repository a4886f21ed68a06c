"""Multi-label MAP by alpha-expansion moves, each a minimum cut or a roof-dual move."""

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.graphs.pairwise import PairwiseModel
from engine.inference.fusion import FusionMoves
from engine.inference.map_estimate import MapEstimate
from engine.inference.map_linear_programme import SmoothedDual, with_finite_penalty

# Rounds of star updates that give the result its bound; they do not influence the labelling.
BOUND_ROUNDS = 60
BOUND_BETA = 8.0


def map_by_expansion(
    model: PairwiseModel,
    *,
    start: IntArray | None = None,
    max_rounds: int = 100,
    should_stop: StopCallback = never_stop,
) -> MapEstimate:
    """Improve a labelling by expansion moves until no label can be expanded with a gain.

    A move lets every node keep its label or take alpha. Where all edges of a move are attractive
    the best such move is found; otherwise roof duality finds the nodes that persistency decides,
    and the others keep their labels: the score never falls.

    Returns
    -------
    MapEstimate
        status CONVERGED once a whole round brought no gain; ``guarantee`` says whether every move
        of that round was optimal. The upper bound comes from a linear-programme dual.

    References
    ----------
    Boykov, Veksler and Zabih 2001; Rother, Kolmogorov, Lempitsky and Szummer 2007.
    """
    graph = model.graph
    scores = with_finite_penalty(model)
    labels = _best_alone(model) if start is None else np.array(start, dtype=np.int64)
    value = graph.score(scores, labels)
    moves = FusionMoves(graph, scores)
    status = Status.ITERATION_LIMIT
    rounds, all_exact = 0, False
    while rounds < max_rounds:
        rounds += 1
        gained, all_exact = False, True
        for alpha in range(int(graph.cardinalities.max())):
            # A node without the label alpha keeps its own in both choices of the move.
            expanded = np.where(graph.cardinalities > alpha, alpha, labels)
            proposal, exact = moves.fuse(labels, expanded)
            all_exact = all_exact and exact
            score = graph.score(scores, proposal)
            if score > value + 1e-12 * abs(value):
                labels, value, gained = proposal, score, True
        if not gained:
            status = Status.CONVERGED
            break
        if should_stop():
            status = Status.CANCELLED
            break
    value = graph.score(model.scores, labels)
    return MapEstimate(
        labels=read_only(labels),
        value=value,
        upper_bound=max(value, _dual_bound(model)),
        status=status,
        iterations=rounds,
        guarantee=_guarantee(status, all_exact, _is_attractive(model)),
    )


def _guarantee(status: Status, all_exact: bool, attractive: bool) -> str:
    if status is not Status.CONVERGED:
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
    """Whether the model is binary with theta_00 + theta_11 >= theta_01 + theta_10 everywhere."""
    if not model.graph.is_binary:
        return False
    tables = with_finite_penalty(model)[2 * model.graph.n_nodes :].reshape(-1, 2, 2)
    signed = (tables[:, 0, 0] - tables[:, 0, 1]) - (tables[:, 1, 0] - tables[:, 1, 1])
    return bool((signed >= 0.0).all())


def _best_alone(model: PairwiseModel) -> IntArray:
    graph = model.graph
    return np.array(
        [int(np.argmax(graph.node_table(model.scores, i))) for i in range(graph.n_nodes)],
        dtype=np.int64,
    )


def _dual_bound(model: PairwiseModel) -> float:
    dual = SmoothedDual(model, BOUND_BETA)
    dual.run(BOUND_ROUNDS * model.graph.n_nodes, "cyclic")
    dual.set_beta(np.inf)
    dual.run(BOUND_ROUNDS * model.graph.n_nodes, "cyclic")
    return dual.upper_bound()
