"""Pairwise structures of several labels: certificates of max margin against enumeration."""

import numpy as np
import pytest

from engine.baselines.decoding import decode
from engine.baselines.structured_perceptron import train_structured_perceptron
from engine.baselines.structured_svm import train_structured_svm
from engine.core.errors import InvalidProblemError
from engine.estimators import StructuredModel
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.expansion_oracle import ExpansionOracle
from engine.structures.pairwise import PairwiseStructure
from tests.reference.pairwise_models import enumerate_model


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_and_associative_models_meet_them(seed):
    rng = np.random.default_rng(seed)
    graph = PairwiseGraph(np.full(6, 3), Grid(2, 3).to_pairwise().edges)
    scores = rng.normal(size=graph.size)
    if seed % 2:
        potts = np.eye(3).ravel()[None] * rng.exponential(size=(graph.n_edges, 1))
        scores[18:] = potts.ravel()
    oracle = ExpansionOracle(graph)
    for scale in (1.0, -0.5, 2.0):  # warm starts from other scores do no harm
        moved = scale * scores if seed % 2 == 0 else scores * abs(scale)
        values, _ = enumerate_model(PairwiseModel(graph, moved))
        answer = oracle.compute_extreme_point(moved)
        assert answer.value <= values.max() + 1e-9 <= answer.upper_bound + 2e-9
        assert answer.vertex.inner(moved) == pytest.approx(answer.value)
        if seed % 2:
            assert answer.value == pytest.approx(values.max())
            assert answer.gap < 0.05


def potts_examples(rng, truth, count=3, labels=3, noise=0.0):
    """Labellings that are best under the truth; features: evidence for each label, agreement."""
    graph = PairwiseGraph(np.full(6, labels), Grid(2, 3).to_pairwise().edges)
    examples = []
    for _ in range(count):
        features = np.zeros((graph.size, 2))
        features[: 6 * labels, 0] = rng.normal(size=6 * labels)
        features[6 * labels :, 1] = np.tile(np.eye(labels).ravel(), graph.n_edges)
        values, labellings = enumerate_model(PairwiseModel(graph, features @ truth))
        best = labellings[values.argmax()]
        best = np.where(rng.random(6) < noise, rng.integers(0, labels, 6), best)
        examples.append(PairwiseStructure(graph, features, best))
    return examples


def hinge(theta, ridge, examples):
    """The regularised hinge loss by enumeration."""
    total = 0.5 * ridge * theta @ theta
    for s in examples:
        values, labellings = enumerate_model(PairwiseModel(s.graph, s.features @ theta))
        truth = s.labels.places - s.graph.node_start[:-1]
        losses = (labellings != truth).mean(axis=1)
        total += (losses + values).max() - theta @ s.observed
    return total


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_max_margin_is_certified_against_enumeration(noise):
    rng = np.random.default_rng(4)
    examples = potts_examples(rng, np.array([1.0, 0.7]), noise=noise)
    machine = train_structured_svm(examples, ridge=0.02, rng=rng, relative_gap=1e-3)
    exact = hinge(machine.theta, 0.02, examples)
    assert machine.objective >= exact - 1e-9
    assert machine.gap_over_objective < 0.05
    for _ in range(100):
        other = machine.theta + rng.normal(size=2) * rng.choice([0.03, 0.3, 3.0])
        assert hinge(other, 0.02, examples) >= machine.lower_bound - 1e-9


def test_the_perceptron_separates_what_can_be_separated():
    rng = np.random.default_rng(5)
    examples = potts_examples(rng, np.array([1.0, 0.5]), count=5)
    perceptron = train_structured_perceptron(examples, rng=rng, max_passes=200)
    assert perceptron.status.is_converged
    assert perceptron.trajectory[-1].objective == 0.0  # its last pass made no mistake
    assert np.mean([decode(s, perceptron.theta).loss for s in examples]) < 0.2


def test_likelihood_is_bounded_from_both_sides():
    rng = np.random.default_rng(6)
    examples = potts_examples(rng, np.array([1.0, 0.5]))
    model = StructuredModel(relative_gap=2e-2, max_iterations=2000).fit(examples)
    assert model.result_.status.is_converged
    assert model.result_.lower_bound <= model.result_.objective
    assert 0.0 <= model.score(examples) <= 1.0


def test_shapes_and_labels_are_checked():
    graph = PairwiseGraph(np.full(2, 3), np.array([[0, 1]]))
    with pytest.raises(InvalidProblemError, match="features"):
        PairwiseStructure(graph, np.zeros((3, 1)), np.zeros(2, dtype=int))
    with pytest.raises(InvalidProblemError, match="own range"):
        PairwiseStructure(graph, np.zeros((15, 1)), np.array([0, 3]))
    structure = PairwiseStructure(graph, np.zeros((15, 1)), np.array([0, 2]))
    with pytest.raises(InvalidProblemError, match="point"):
        structure.statistics(np.zeros(3))
    assert structure.decode(structure.labels).tolist() == [0, 2]
