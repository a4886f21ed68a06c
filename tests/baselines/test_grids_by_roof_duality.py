"""Max-margin learning and the perceptron on grids, by roof duality."""

import numpy as np

from engine.baselines.structured_perceptron import train_structured_perceptron
from engine.baselines.structured_svm import train_structured_svm
from engine.entropies.pairwise import graph_entropy
from engine.graphs.grid import Grid
from engine.oracles.protocol import Vertex
from engine.oracles.roof_duality import RoofDuality
from engine.structures.linear import LinearStructure


def test_max_margin_and_perceptron_learn_grids_by_roof_duality():
    """Labels drawn from their own best labellings are fitted without a mistake."""
    rng, truth = np.random.default_rng(1), np.array([1.0, 0.6])
    grid = Grid(4, 5)
    graph = grid.to_pairwise()
    structures = []
    for _ in range(4):
        features = np.zeros((graph.size, 2))
        features[1 : 2 * graph.n_nodes : 2, 0] = 3.0 * rng.normal(size=graph.n_nodes)
        features[2 * graph.n_nodes :, 1] = np.tile([1.0, 0.0, 0.0, 1.0], graph.n_edges)
        best = RoofDuality(graph).compute_extreme_point(features @ truth).vertex
        labels = Vertex(np.array(best.values))
        structures.append(
            LinearStructure(
                features, labels, RoofDuality(graph), graph_entropy(graph, 0.5), graph.uniform()
            )
        )
    machine = train_structured_svm(structures, ridge=1e-3, rng=rng, relative_gap=1e-2)
    assert machine.status.is_converged
    perceptron = train_structured_perceptron(structures, rng=rng, max_passes=50)
    for theta in (machine.theta, perceptron.theta):
        for s in structures:
            found = s.oracle.compute_extreme_point(s.scores(theta)).vertex.values
            assert np.abs(found - s.labels.values)[: 2 * graph.n_nodes].sum() <= 4.0
