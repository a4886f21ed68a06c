"""Losses of several classes: derivatives by differences, values against any graph's and sums."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import ClassExample
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph
from engine.learning.pairwise_fitting import PairwiseExample, PairwiseFitting, PairwiseObjective
from engine.objectives.class_batches import FEWEST, batch_loss_and_gradient, in_batches
from engine.objectives.grid_losses import loss_and_gradient
from engine.objectives.marginal_losses import HIDDEN, MARGINAL_LOSSES, LossOptions
from tests.objectives.test_class_messages import example, parameters


@pytest.mark.parametrize("is_potts", [True, False])
@pytest.mark.parametrize("loss", MARGINAL_LOSSES)
def test_the_gradient_is_that_of_the_loss(loss: str, is_potts: bool) -> None:
    one = example(5, 6, 3)
    theta = parameters(one, is_potts=is_potts, size=0.1)
    options = LossOptions(loss, iterations=3, weights=(1.0, 2.0, 0.5), is_potts=is_potts)
    _, gradient = loss_and_gradient(one, theta, options)
    layout = one.features.layout
    for k in range(layout.size - (18 if is_potts else 0)):
        step = np.zeros(layout.size)
        step[k] = 0.01
        above, below = (loss_and_gradient(one, theta + s, options)[0] for s in (step, -step))
        assert gradient[k] == pytest.approx((above - below) / 0.02, abs=5e-3), k


def test_pairs_are_learned_from_a_start_without_any() -> None:
    one = example(5, 6, 3)
    plain = one.features.layout.plain()
    for loss in MARGINAL_LOSSES:
        _, gradient = loss_and_gradient(one, plain, LossOptions(loss, iterations=3))
        assert (np.abs(gradient[-18:]) > 1e-4).all(), loss


@pytest.mark.parametrize("loss", ["univariate-logistic", "clique-logistic", "surrogate-likelihood"])
def test_pictures_side_by_side_lose_as_one_by_one(loss: str) -> None:
    alike = [example(5, 6, 3, seed=seed) for seed in range(FEWEST + 2)]
    other = example(4, 6, 3)
    theta = parameters(other, is_potts=False, size=0.1)
    options = LossOptions(loss, iterations=3)
    batches = in_batches([alike[0], other, *alike[1:]], options)
    assert [len(batch) for batch in batches] == [len(alike), 1]
    value, gradient = batch_loss_and_gradient(batches[0], theta, options)
    values, gradients = zip(*(loss_and_gradient(one, theta, options) for one in alike), strict=True)
    assert value == pytest.approx(sum(values), rel=1e-6)
    assert_allclose(gradient, sum(gradients), rtol=1e-4, atol=1e-4)


def test_only_truncated_losses_with_pair_tables_go_side_by_side() -> None:
    alike = [example(5, 6, 3, seed=seed) for seed in range(FEWEST + 2)]
    for options in (
        LossOptions(is_potts=True),
        LossOptions(threshold=1e-3),
    ):
        assert len(in_batches(alike, options)) == len(alike), options


def as_pairwise(one: ClassExample) -> PairwiseExample:
    """The same model of any graph, its features found by setting one parameter at a time."""
    layout = one.features.layout
    rows, columns = one.features.shape
    n = layout.n_classes
    graph = PairwiseGraph(np.full(rows * columns, n), Grid(rows, columns).edges())
    place = {edge: e for e, edge in enumerate(map(tuple, graph.edges.tolist()))}
    features = np.zeros((graph.size, layout.size))
    for k in range(layout.size):
        scores = one.features.scores(np.eye(layout.size)[k])
        features[: rows * columns * n, k] = scores.nodes.ravel()
        for way, codes in enumerate(one.features.codes):
            for (i, j), code in np.ndenumerate(codes):
                e = place[i * columns + j, (i + way) * columns + j + 1 - way]
                table = scores.pairs[way] + scores.agreement[way, code] * np.eye(n)
                graph.edge_table(features[:, k], e)[:] = table
    labels = one.labels.astype(np.int64).ravel()
    labels[labels >= n] = HIDDEN
    return PairwiseExample(graph, features, labels)


ANY_GRAPH = {  # its names of the losses of messages at rest
    "univariate-logistic": "univariate-logistic",
    "univariate-quadratic": "univariate-quadratic",
    "smoothed-classification": "smoothed-classification",
    "clique-logistic": "clique-logistic",
    "surrogate-likelihood": "surrogate-em",
}


@pytest.mark.parametrize("loss", ANY_GRAPH)
def test_many_sweeps_agree_with_any_graphs(loss: str) -> None:
    one = example(3, 4, 3)
    theta = parameters(one, is_potts=False, size=0.2)
    general = PairwiseObjective(as_pairwise(one), PairwiseFitting(ANY_GRAPH[loss]))
    expected, slope = general(theta)
    value, truncated = loss_and_gradient(one, theta, LossOptions(loss, iterations=60))
    assert value == pytest.approx(expected, abs=1e-4)
    assert_allclose(truncated, slope, atol=1e-4)


def test_the_truncated_likelihood_settles_at_surrogate_em() -> None:
    one = example(3, 4, 3)
    theta = parameters(one, is_potts=False, size=0.2)
    expected, slope = PairwiseObjective(as_pairwise(one), PairwiseFitting("surrogate-em"))(theta)
    distances = []
    for iterations in (1, 3, 40):
        options = LossOptions("surrogate-likelihood", iterations=iterations)
        value, gradient = loss_and_gradient(one, theta, options)
        distances.append(abs(value - expected))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-4
    assert_allclose(gradient, slope, atol=2e-3)


def test_hidden_pixels_do_not_count() -> None:
    one = example(3, 3, 3)
    hidden = replace(one, labels=np.full_like(one.labels, 255))
    theta = parameters(one, is_potts=False)
    value, gradient = loss_and_gradient(hidden, theta, LossOptions("surrogate-likelihood"))
    assert value == 0.0
    assert not gradient.any()


def test_unknown_losses_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="loss: expected one of"):
        LossOptions("zero-one")
    with pytest.raises(InvalidProblemError, match="iterations: expected a whole number"):
        LossOptions(iterations=0)
