"""A caller's own oracle and entropy, in ten lines each, work in every learner and inference."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import logsumexp, xlogy

from engine.baselines.decoding import decode
from engine.baselines.structured_perceptron import train_structured_perceptron
from engine.baselines.structured_svm import train_structured_svm
from engine.core.errors import InvalidProblemError
from engine.objectives.learning_dual import make_learning_dual
from engine.objectives.objective import FixedScores
from engine.oracles.protocol import ExtremePoint, make_indicator
from engine.solvers.block_orders import ShuffledOrder
from engine.solvers.control import Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from engine.solvers.step_rules import LineSearch
from engine.structures.linear import LinearStructure

NODES, LABELS = 5, 3  # of a chain: tables (5, 3) of nodes, then (4, 3, 3) of edges, flat
TOWNS = 5  # of a complete graph: ten edges
EDGES = np.array(list(combinations(range(TOWNS), 2)))


def places_of(labels):
    """Where the tables of a labelling of the chain are 1."""
    labels = np.asarray(labels)
    nodes = LABELS * np.arange(NODES) + labels
    edges = NODES * LABELS + LABELS**2 * np.arange(NODES - 1) + LABELS * labels[:-1] + labels[1:]
    return np.concatenate([nodes, edges])


class Viterbi:
    """The best labelling of a chain."""

    def compute_extreme_point(self, scores):
        nodes = scores[: NODES * LABELS].reshape(NODES, LABELS)
        edges = scores[NODES * LABELS :].reshape(NODES - 1, LABELS, LABELS)
        best, back = nodes[0], []
        for node, edge in zip(nodes[1:], edges, strict=True):
            totals = best[:, None] + edge
            back.append(totals.argmax(axis=0))
            best = totals.max(axis=0) + node
        labels = [int(best.argmax())]
        for pointer in reversed(back):
            labels.append(int(pointer[labels[-1]]))
        return ExtremePoint(make_indicator(places_of(labels[::-1])), best.max(), best.max())


class ChainEntropy:
    """The exact entropy of chains: edges minus inner nodes."""

    counts = np.r_[np.repeat([0.0, -1.0, -1.0, -1.0, 0.0], LABELS), np.ones(4 * LABELS**2)]

    def value(self, point):
        return -float(self.counts @ xlogy(point, point))

    def gradient(self, point):
        return -self.counts * (1.0 + np.log(point))

    def along(self, point, vertex):
        d, c = vertex.dense(len(point)) - point, self.counts
        return lambda g: (
            self.value(point + g * d),
            float(self.gradient(point + g * d) @ d),
            -float(c @ (d * d / (point + g * d))),
        )


class Kruskal:
    """The heaviest spanning tree."""

    def compute_extreme_point(self, scores):
        part, chosen = np.arange(TOWNS), []
        for e in np.argsort(-scores):
            a, b = part[EDGES[e]]
            if a != b:
                part[part == b] = a
                chosen.append(e)
        value = float(scores[chosen].sum())
        return ExtremePoint(make_indicator(np.array(chosen)), value, value)


class EdgeEntropy:
    """The edges as if independent: concave, and never below the entropy of a law of trees."""

    def value(self, point):
        return -float((xlogy(point, point) + xlogy(1 - point, 1 - point)).sum())

    def gradient(self, point):
        return np.log1p(-point) - np.log(point)

    def along(self, point, vertex):
        d = vertex.dense(len(point)) - point
        return lambda g: (
            self.value(point + g * d),
            float(self.gradient(point + g * d) @ d),
            -float((d * d / ((point + g * d) * (1 - point - g * d))).sum()),
        )


def chain(features, labels):
    uniform = np.r_[np.full(NODES * LABELS, 1 / 3), np.full(4 * LABELS**2, 1 / 9)]
    return LinearStructure(
        features, make_indicator(places_of(labels)), Viterbi(), ChainEntropy(), uniform
    )


def tree(features, edges):
    uniform = np.full(len(EDGES), 2 / TOWNS)
    return LinearStructure(features, make_indicator(edges), Kruskal(), EdgeEntropy(), uniform)


def all_vertices(kind):
    if kind is chain:
        return [places_of(y) for y in product(range(LABELS), repeat=NODES)]
    found = []
    for chosen in combinations(range(len(EDGES)), TOWNS - 1):
        laplacian = np.zeros((TOWNS, TOWNS))
        for a, b in EDGES[list(chosen)]:
            laplacian[[a, b, a, b], [a, b, b, a]] += [1, 1, -1, -1]
        if abs(np.linalg.det(laplacian[1:, 1:])) > 0.5:
            found.append(np.array(chosen))
    return found


def observations(kind, count=4, n_features=3, seed=0):
    """Structures whose labels are drawn from a Gibbs law under known weights."""
    rng = np.random.default_rng(seed)
    truth, vertices = rng.normal(size=n_features), all_vertices(kind)
    size = NODES * LABELS + 4 * LABELS**2 if kind is chain else len(EDGES)
    made = []
    for _ in range(count):
        features = rng.normal(size=(size, n_features))
        scores = np.array([(features @ truth)[v].sum() for v in vertices])
        drawn = rng.choice(len(vertices), p=np.exp(scores - logsumexp(scores)))
        made.append(
            kind(features, vertices[drawn] if kind is tree else drawn_labels(vertices[drawn]))
        )
    return made


def drawn_labels(places):
    return places[:NODES] - LABELS * np.arange(NODES)


def log_partition(kind, scores):
    return logsumexp([scores[v].sum() for v in all_vertices(kind)])


def test_the_trees_are_as_many_as_cayley_says():
    assert len(all_vertices(tree)) == TOWNS ** (TOWNS - 2)


@pytest.mark.parametrize("kind", [chain, tree])
def test_learning_with_them_reaches_a_certificate_that_enumeration_confirms(kind):
    structures, ridge = observations(kind), 2.0
    dual = make_learning_dual([s.observed for s in structures], ridge)
    limits = Limits(1e-2, max_iterations=6000)
    batch = FrankWolfe(structures, dual, limits=limits).solve()
    blocks = FrankWolfe(structures, dual, ShuffledOrder(), limits=limits).solve()
    for result in (batch, blocks):
        assert result.status.is_converged
        assert result.is_certified
    assert batch.lower_bound <= blocks.objective + 1e-9
    assert blocks.lower_bound <= batch.objective + 1e-9
    exact = dual.primal_value(
        batch.theta, sum(log_partition(kind, s.scores(batch.theta)) for s in structures)
    )
    # Chains: the entropy is exact. Trees: log Z is bounded from above, the likelihood from below.
    assert exact >= batch.lower_bound - 1e-9
    if kind is chain:
        assert exact <= batch.objective + 1e-9


@pytest.mark.parametrize("kind", [chain, tree])
def test_inference_with_them_certifies_log_z(kind):
    (structure,) = observations(kind, 1)
    scores = structure.scores(np.array([0.5, -0.3, 0.2]))
    fixed = FixedScores(scores, structure.oracle, structure.entropy, structure.start)
    solver = FrankWolfe(
        [fixed],
        fixed.free_energy,
        step_rule=LineSearch(is_capped=True),
        limits=Limits(0.0, 4000, gap=0.02),
    )
    result = solver.solve()
    assert result.status.is_converged
    exact = log_partition(kind, scores)
    assert -result.lower_bound >= exact
    weights = np.exp([scores[v].sum() - exact for v in all_vertices(kind)])
    marginals = np.zeros(len(scores))
    for weight, vertex in zip(weights, all_vertices(kind), strict=True):
        marginals[vertex] += weight
    if kind is chain:
        assert -result.objective <= exact + 1e-9
        assert solver.iterate.points[0] == pytest.approx(marginals, abs=0.1)
    else:
        assert solver.iterate.points[0].sum() == pytest.approx(TOWNS - 1)


@pytest.mark.parametrize("kind", [chain, tree])
def test_decoding_perceptron_and_support_vectors_take_them(kind):
    structures, rng = observations(kind, 6), np.random.default_rng(1)
    theta = np.array([0.5, -0.3, 0.2])
    for structure in structures[:2]:
        scores = structure.scores(theta)
        best = max(scores[v].sum() for v in all_vertices(kind))
        found = decode(structure, theta)
        assert theta @ found.statistics == pytest.approx(best)
        assert found.excess <= 1e-12
    train_structured_perceptron(structures, rng=rng, max_passes=3)
    result = train_structured_svm(structures, ridge=0.5, rng=rng, relative_gap=1e-6)
    assert result.status.is_converged
    hinge = sum(
        max(
            1 - np.isin(v, s.labels.places).mean() + s.scores(result.theta)[v].sum()
            for v in all_vertices(kind)
        )
        - result.theta @ s.observed
        for s in structures
    )
    exact = hinge + 0.25 * result.theta @ result.theta
    assert result.objective == pytest.approx(exact, rel=1e-9)
    assert result.lower_bound <= exact


def test_what_a_solver_needs_and_a_structure_lacks_is_named():
    structures = observations(chain, 1)
    with pytest.raises(InvalidProblemError, match=r"has no entropy\.curvature_among\.$"):
        FullyCorrectiveFrankWolfe(structures, 1.0).solve()
    dual = make_learning_dual([structures[0].observed], 1.0)
    structures[0].entropy, structures[0].oracle = None, None
    with pytest.raises(InvalidProblemError, match=r"oracle\.compute_extreme_point and no entropy"):
        FrankWolfe(structures, dual).solve()
