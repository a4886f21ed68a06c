"""Reductions of other matching problems to perfect matching."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Gadget:
    """A graph whose perfect matchings stand for solutions of another problem.

    ``edge_origin`` names the original edge that is chosen when a gadget edge is, else -1. The
    gadget's optimum is ``copies`` times the original one.
    """

    n_nodes: int
    edges: IntArray
    weights: FloatArray
    edge_origin: IntArray
    copies: int


def doubled_graph(n_nodes: int, edges: IntArray, weights: FloatArray) -> Gadget:
    """Two copies of a graph, each node joined to its twin at no cost: any matching made perfect.

    A matching of one copy and its mirror image, with the twins of unmatched nodes joined, is
    perfect; conversely both copies of a perfect matching leave the same nodes to their twins.
    """
    nodes = np.arange(n_nodes)
    twins = np.column_stack((nodes, nodes + n_nodes))
    return Gadget(
        n_nodes=2 * n_nodes,
        edges=np.concatenate((edges, edges + n_nodes, twins)).astype(np.int64),
        weights=np.concatenate((weights, weights, np.zeros(n_nodes))),
        edge_origin=_origins(np.arange(len(edges)), len(edges) + n_nodes),
        copies=2,
    )


def b_matching_gadget(
    n_nodes: int, edges: IntArray, weights: FloatArray, degrees: IntArray, *, exact: bool
) -> Gadget:
    """The simple b-matching of a graph as a perfect matching.

    Node i becomes min(b_i, degree) copies; edge e = (i, j) a pair of nodes e_i - e_j with weight 0,
    of which e_i is joined to all copies of i and e_j to all copies of j, with half the weight
    each. An unused edge matches its own two nodes. Unless degrees are exact, copies may stay
    alone: the whole is doubled and each copy of a node joined to its twin.

    References
    ----------
    Shiloach (1981), Another look at the degree constrained subgraph problem.
    """
    degree = np.bincount(edges.ravel(), minlength=n_nodes)
    slots = degrees if exact else np.minimum(degrees, degree)
    first_slot = np.concatenate(([0], np.cumsum(slots)))
    n_slots, m = int(slots.sum()), len(edges)
    near = n_slots + np.arange(m)
    far = near + m
    none = np.full(m, -1)
    links, link_weights, link_edges = [np.column_stack((near, far))], [np.zeros(m)], [none]
    for side, node in enumerate((near, far)):
        owner = edges[:, side]
        edge = np.repeat(np.arange(m), slots[owner])
        place = np.arange(len(edge)) - np.repeat(
            np.cumsum(slots[owner]) - slots[owner], slots[owner]
        )
        links.append(np.column_stack((node[edge], first_slot[owner[edge]] + place)))
        link_weights.append(weights[edge] / 2)
        link_edges.append(edge if side == 0 else np.full(len(edge), -1))
    all_links = np.concatenate(links).astype(np.int64)
    all_weights = np.concatenate(link_weights)
    origin = np.concatenate(link_edges).astype(np.int64)
    n_all = n_slots + 2 * m
    if exact:
        return Gadget(n_all, all_links, all_weights, origin, 1)
    twins = np.column_stack((np.arange(n_slots), np.arange(n_slots) + n_all))
    return Gadget(
        n_nodes=2 * n_all,
        edges=np.concatenate((all_links, all_links + n_all, twins)).astype(np.int64),
        weights=np.concatenate((all_weights, all_weights, np.zeros(n_slots))),
        edge_origin=_origins(origin, len(all_links) + n_slots),
        copies=2,
    )


def _origins(first_copy: IntArray, n_others: int) -> IntArray:
    """Origins of the first copy's edges; the second copy and the twins stand for none."""
    return np.concatenate((first_copy, np.full(n_others, -1))).astype(np.int64)
