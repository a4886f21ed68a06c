"""Reductions of other matching problems to perfect matching."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import IntArray
from engine.core.exact_numbers import WholeArray


@dataclass(frozen=True, slots=True)
class Gadget:
    """Graph whose perfect matchings stand for solutions of another problem.

    ``edge_origin`` is, for each gadget edge, the original edge that is chosen with it, or -1. The
    gadget's optimum is an integer multiple of the original optimum.
    """

    n_nodes: int
    edges: IntArray
    weights: WholeArray
    edge_origin: IntArray


def doubled_graph(
    n_nodes: int, edges: IntArray, weights: WholeArray, spare: IntArray | None = None
) -> Gadget:
    """Return two copies of a graph with twins joined at weight 0; any matching becomes perfect.

    A matching of one copy and its mirror image, with the twins of unmatched nodes joined, is
    perfect; conversely both copies of a perfect matching leave the same nodes to their twins.
    If only the nodes ``spare`` may stay unmatched, only these are joined to their twins.
    """
    nodes = np.arange(n_nodes) if spare is None else spare
    twins = np.column_stack((nodes, nodes + n_nodes))
    return Gadget(
        n_nodes=2 * n_nodes,
        edges=np.concatenate((edges, edges + n_nodes, twins)).astype(np.int64),
        weights=np.concatenate((weights, weights, _zeros(len(nodes), weights))),
        edge_origin=_origins(np.arange(len(edges)), len(edges) + len(nodes)),
    )


def b_matching_gadget(
    n_nodes: int, edges: IntArray, weights: WholeArray, degrees: IntArray, *, exact: bool
) -> Gadget:
    """Return the gadget that turns a simple b-matching into a perfect matching.

    Node i becomes min(b_i, degree) copies; edge e = (i, j) a pair of nodes e_i - e_j with weight 0.
    e_i is joined to all copies of i and e_j to all copies of j, each with the weight of e, which
    therefore counts twice. An unused edge matches its own two nodes. Unless degrees are exact,
    copies may stay unmatched: the graph is doubled and each copy of a node joined to its twin.

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
    links, link_weights, link_edges = [np.column_stack((near, far))], [_zeros(m, weights)], [none]
    for side, node in enumerate((near, far)):
        owner = edges[:, side]
        edge = np.repeat(np.arange(m), slots[owner])
        place = np.arange(len(edge)) - np.repeat(
            np.cumsum(slots[owner]) - slots[owner], slots[owner]
        )
        links.append(np.column_stack((node[edge], first_slot[owner[edge]] + place)))
        link_weights.append(weights[edge])
        link_edges.append(edge if side == 0 else np.full(len(edge), -1))
    all_links = np.concatenate(links).astype(np.int64)
    all_weights = np.concatenate(link_weights)
    origin = np.concatenate(link_edges).astype(np.int64)
    n_all = n_slots + 2 * m
    if exact:
        return Gadget(n_all, all_links, all_weights, origin)
    twins = np.column_stack((np.arange(n_slots), np.arange(n_slots) + n_all))
    return Gadget(
        n_nodes=2 * n_all,
        edges=np.concatenate((all_links, all_links + n_all, twins)).astype(np.int64),
        weights=np.concatenate((all_weights, all_weights, _zeros(n_slots, weights))),
        edge_origin=_origins(origin, len(all_links) + n_slots),
    )


def _zeros(count: int, like: WholeArray) -> WholeArray:
    return np.zeros(count, dtype=like.dtype)


def _origins(first_copy: IntArray, n_others: int) -> IntArray:
    """Return the first copy's edges as origins; edges of the second copy and of twins have none."""
    return np.concatenate((first_copy, np.full(n_others, -1))).astype(np.int64)
