"""Equations of the local polytope of a pairwise graph."""

import numpy as np
import scipy  # its parts are loaded on first use: commands without equations start faster

from engine.graphs.pairwise import PairwiseGraph


def local_polytope_rows(graph: PairwiseGraph) -> "scipy.sparse.csr_array":
    """Return the equations' matrix, shape (n_nodes + n_messages, size).

    Each node sums to 1; then, in the order of messages, each margin of an edge less its node is 0.
    """
    n, m = int(graph.node_start[-1]), graph.n_messages
    nodes, margins = np.repeat(np.arange(graph.n_nodes), graph.cardinalities), graph.n_nodes
    rows = [nodes, margins + np.arange(m), *(margins + at for at in graph.message_places())]
    columns = [np.arange(n), graph.node_places(), *(np.arange(n, graph.size) for _ in range(2))]
    values = np.concatenate([np.ones(n), -np.ones(m), np.ones(2 * (graph.size - n))])
    entries = (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.csr_array((values, entries), shape=(graph.n_nodes + m, graph.size))
