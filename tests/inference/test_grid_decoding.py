"""Two ways to read labels off a grid: the best labelling, and the most probable label a pixel."""

import numpy as np
import pytest

from engine.graphs.grid import Grid, GridTables
from engine.inference.pairwise.grid_tree_reweighted import GridTreeReweighted
from engine.oracles.grid_roof_duality import GridRoofDuality, decode_vertex
from tests.reference.pairwise_models import best_labels, enumerate_grid


def node_rows(grid, indicators):
    """The labels of every labelling, one a row."""
    return indicators[:, 1 : 2 * grid.n_nodes : 2]


def map_and_mpm(grid, scores, rho):
    vertex = GridRoofDuality(grid).compute_extreme_point(scores).vertex.values
    marginals = GridTreeReweighted(grid, rho).solve(scores, tolerance=1e-12).tables
    mpm = GridTables(grid, marginals).labels
    np.testing.assert_array_equal(mpm.ravel(), best_labels(grid.to_pairwise(), marginals))
    return decode_vertex(grid, vertex), mpm


def test_each_is_best_for_its_own_loss_on_chains():
    """MAP for being right everywhere, MPM for the share of right pixels; here both are exact."""
    grid, n_apart = Grid(1, 8), 0
    for seed in range(30):
        scores = 1.5 * np.random.default_rng(seed).normal(size=grid.size)
        best, probable = map_and_mpm(grid, scores, 1.0)
        values, indicators = enumerate_grid(grid, scores)
        weights, rows = np.exp(values - values.max()), node_rows(grid, indicators)
        weights /= weights.sum()
        losses = (rows[:, None, :] != rows[None, :, :]).mean(axis=2) @ weights
        place = {tuple(row): k for k, row in enumerate(rows.astype(int))}
        at_best, at_probable = place[tuple(best[0])], place[tuple(probable[0])]
        assert at_best == values.argmax()
        assert at_probable == losses.argmin()
        if at_best != at_probable:
            n_apart += 1
            assert losses[at_probable] < losses[at_best]
            assert values[at_probable] < values[at_best]
    assert n_apart >= 5  # else one could stand in for the other


@pytest.mark.parametrize("seed", range(6))
def test_they_agree_where_pixels_decide_alone(seed):
    grid = Grid(3, 4)
    scores = grid.zeros()
    scores.nodes[:] = np.random.default_rng(seed).normal(size=scores.nodes.shape)
    best, probable = map_and_mpm(grid, scores.flat, 0.5)
    np.testing.assert_array_equal(best, scores.nodes.argmax(axis=2))
    np.testing.assert_array_equal(probable, best)


@pytest.mark.parametrize("seed", range(6))
def test_strong_attraction_makes_the_best_labelling_one_colour(seed):
    grid = Grid(3, 3)
    scores = grid.zeros()
    scores.nodes[:] = np.random.default_rng(seed).normal(size=scores.nodes.shape)
    scores.horizontal[:] = scores.vertical[:] = 20.0 * np.eye(2)
    best, probable = map_and_mpm(grid, scores.flat, 0.5)
    colour = scores.nodes.sum(axis=(0, 1)).argmax()
    assert (best == colour).all()
    assert (probable == colour).all()
