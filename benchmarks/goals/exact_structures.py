"""Where MLE-Struct is maximum likelihood: chains, trees and models of low treewidth.

    python -m benchmarks goals exact_structures [--observations 20] [--nodes 60] [--quick]

Labels are drawn exactly from known weights (node features, and that neighbours agree). The exact
maximum of the likelihood is found by L-BFGS over sums by variable elimination, which share no code
with the structure's. Beside it: what the reweighted (rho = 1/2) and the Bethe estimate, fitted to
the local polytope, lose of that likelihood where there are cycles; with none, Bethe loses nothing.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from benchmarks.common.reporting import print_machine, print_table
from engine.core.arguments import FloatArray, IntArray
from engine.entropies.pairwise import graph_entropy
from engine.estimators import StructuredModel
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph
from engine.inference.factors.elimination import Elimination
from engine.inference.factors.junction_tree import calibrate
from engine.oracles.protocol import Vertex
from engine.oracles.roof_duality import RoofDuality
from engine.structures.junction_tree import JunctionTreeStructure
from engine.structures.linear import LinearStructure

RIDGE = 1.0
TRUTH = np.array([1.0, -0.5, 0.8])


@dataclass(frozen=True, slots=True)
class Outcome:
    """One kind of graph: exact maximum (nats), certified bounds, and what local estimates lose."""

    exact: float
    upper: float
    lower: float
    frank_wolfe: tuple[float, float]
    distance: float
    losses: dict[float, float]


def graphs(nodes: int) -> dict[str, PairwiseGraph]:
    """A chain, a random tree, a ladder of width 4 and a single cycle, binary."""
    rng = np.random.default_rng(1)
    chain = [(v - 1, v) for v in range(1, nodes)]
    tree = [(int(rng.integers(v)), v) for v in range(1, nodes)]
    binary = np.full(nodes, 2)
    return {
        "chain": PairwiseGraph(binary, np.array(chain)),
        "tree": PairwiseGraph(binary, np.array(tree)),
        "cycle": PairwiseGraph(binary, np.array([*chain, (0, nodes - 1)])),
        "grid of 4 rows": Grid(4, nodes // 4).to_pairwise(),
    }


def draw_labels(
    structure: JunctionTreeStructure, theta: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Draw a labelling exactly, one node at a time given those before."""
    tree = structure.tree
    tables = structure.features @ theta
    labels = np.zeros(len(tree.cardinalities), dtype=np.int64)
    for v, card in enumerate(tree.cardinalities.tolist()):
        _, point = calibrate(tree, tables)
        labels[v] = rng.choice(card, p=structure.node_marginals(point)[v])
        own = slice(tree.table_start[v], tree.table_start[v + 1])
        tables[own] = np.where(np.arange(card) == labels[v], tables[own], -np.inf)
    return labels


def observe(
    graph: PairwiseGraph, count: int, rng: np.random.Generator
) -> list[JunctionTreeStructure]:
    """Structures whose labels were drawn from the truth."""
    scopes = tuple((int(i), int(j)) for i, j in graph.edges)
    made = []
    for _ in range(count):
        features = np.zeros((graph.size, len(TRUTH)))
        features[1 : 2 * graph.n_nodes : 2, :2] = rng.normal(size=(graph.n_nodes, 2))
        features[2 * graph.n_nodes :, 2] = np.tile([1.0, 0.0, 0.0, 1.0], graph.n_edges)
        unlabelled = JunctionTreeStructure(
            graph.cardinalities, scopes, features, np.zeros(graph.n_nodes, dtype=np.int64)
        )
        labels = draw_labels(unlabelled, TRUTH, rng)
        made.append(JunctionTreeStructure(graph.cardinalities, scopes, features, labels))
    return made


def exact_likelihood(
    graph: PairwiseGraph, structures: Sequence[JunctionTreeStructure], theta: FloatArray
) -> float:
    """Penalised log-likelihood by variable elimination (nats)."""
    total = -0.5 * RIDGE * float(theta @ theta)
    for s in structures:
        scores = s.features @ theta
        factors = [Factor((v,), graph.node_table(scores, v)) for v in range(graph.n_nodes)]
        factors += [
            Factor((int(i), int(j)), graph.edge_table(scores, e))
            for e, (i, j) in enumerate(graph.edges)
        ]
        log_z = Elimination(FactorGraph(graph.cardinalities, tuple(factors))).log_partition()
        total += float(theta @ s.observed) - log_z
    return total


def local_estimate(
    graph: PairwiseGraph, structures: Sequence[JunctionTreeStructure], rho: float
) -> FloatArray:
    """Theta by Frank-Wolfe over the local polytope at one rho."""
    local = []
    for s in structures:
        at = s.tree.size - s.tree.n_table_entries
        labels = s.labels.places - at - s.tree.table_start[: graph.n_nodes]
        local.append(
            LinearStructure(
                s.features,
                Vertex(graph.indicator(labels)),
                RoofDuality(graph),
                graph_entropy(graph, rho),
                graph.uniform(),
            )
        )
    model = StructuredModel(ridge=RIDGE, relative_gap=1e-3, max_iterations=3000)
    return np.asarray(model.fit(local).theta_)


def compare(graph: PairwiseGraph, count: int, rng: np.random.Generator) -> Outcome:
    """Fit one kind of graph in all ways."""
    structures = observe(graph, count, rng)
    best = minimize(
        lambda theta: -exact_likelihood(graph, structures, theta),
        np.zeros(len(TRUTH)),
        method="BFGS",
        options={"gtol": 1e-4},
    )
    model = StructuredModel(ridge=RIDGE, solver="theta", relative_gap=1e-8).fit(structures)
    walk = StructuredModel(ridge=RIDGE, relative_gap=1e-3, max_iterations=3000).fit(structures)
    losses = {
        rho: -best.fun - exact_likelihood(graph, structures, local_estimate(graph, structures, rho))
        for rho in (0.5, 1.0)
    }
    return Outcome(
        -best.fun,
        model.result_.objective,
        model.result_.lower_bound,
        (walk.result_.lower_bound, walk.result_.objective),
        float(np.abs(model.theta_ - best.x).max()),
        losses,
    )


def run(nodes: int, count: int, rng: np.random.Generator) -> dict[str, Outcome]:
    """Compare on every kind of graph and print the table."""
    outcomes = {name: compare(graph, count, rng) for name, graph in graphs(nodes).items()}
    rows = [
        [
            name,
            f"{o.exact:.6f}",
            f"{o.lower:.6f} .. {o.upper:.6f}",
            f"{o.frank_wolfe[0]:.4f} .. {o.frank_wolfe[1]:.4f}",
            o.distance,
            *(f"{o.losses[rho]:.5f}" for rho in (0.5, 1.0)),
        ]
        for name, o in outcomes.items()
    ]
    header = ["graph", "exact maximum", "MLE-Struct in theta, certified", "by Frank-Wolfe"]
    header += ["largest difference of theta", "lost at rho 1/2", "lost by Bethe"]
    print_table("Penalised log-likelihood (nats)", header, rows)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print_machine()
    nodes, count = (12, 3) if args.quick else (args.nodes, args.observations)
    run(nodes, count, np.random.default_rng(0))


if __name__ == "__main__":
    main()
