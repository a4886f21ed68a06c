"""Entropy of fully factorised distributions."""

from engine.entropies.pairwise import PairwiseEntropy, graph_entropy
from engine.graphs.pairwise import PairwiseGraph


def mean_field_entropy(graph: PairwiseGraph) -> PairwiseEntropy:
    """Return the entropy H(tau) = sum_i H(tau_i), to which edge tables contribute nothing.

    For product distributions it is the exact entropy, so <tau, theta> + H(tau) <= log Z.

    Parameters
    ----------
    graph : PairwiseGraph

    Returns
    -------
    PairwiseEntropy
        The entropy of flat tables (graph.size,), nats.

    Examples
    --------
    >>> import numpy as np
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> round(mean_field_entropy(graph).value(graph.uniform()), 6)
    1.386294
    """
    return graph_entropy(graph, 0.0)
