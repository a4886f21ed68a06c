"""Parts of the tree-reweighted kernels of learning, each against plain or exact arithmetic."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose
from scipy.special import xlogy

from engine.kernels.grid_chains import (
    bound_log_partition,
    fill_edge_tables,
    joint_probability,
    node_marginals,
    summarise,
    sweep,
    xlogx,
)

SHAPES = [(1, 1), (1, 7), (6, 1), (2, 2), (5, 9), (9, 34)]
N_CODES = 5

compiled_xlogx = njit(error_model="numpy")(lambda x: xlogx(x))
compiled_joint = njit(error_model="numpy")(lambda p, q, ratio: joint_probability(p, q, ratio))


def random_grid(rng: np.random.Generator, height: int, width: int, scale: float, rho: float):
    """Odds, codes right and down, scaled tables and odds ratios of a random model."""
    codes = [
        rng.integers(0, N_CODES, shape).astype(np.uint8)
        for shape in ((height, width - 1), (height - 1, width))
    ]
    tables = [scale * rng.normal(size=(N_CODES, 4)) / rho for _ in codes]
    ratios = [np.exp(t[:, 0] + t[:, 3] - t[:, 1] - t[:, 2]) for t in tables]
    scaled = [np.exp(t - t.max(axis=1, keepdims=True)) for t in tables]
    return np.exp(scale * rng.normal(size=(height, width))), codes, scaled, ratios


def exact_joint_probability(p: float, q: float, ratio: float) -> float:
    with localcontext() as context:
        context.prec = 700
        a, b, r = Decimal(p), Decimal(q), Decimal(ratio)
        linear = (r - 1) * (a + b) + 1
        return float(2 * r * a * b / (linear + (linear**2 - 4 * (r - 1) * r * a * b).sqrt()))


def test_xlogx_is_accurate_to_a_few_units_in_the_last_place() -> None:
    rng = np.random.default_rng(0)
    edges = [1.0, 0.5, 0.5**0.5, np.nextafter(0.5**0.5, 0.0), np.finfo(float).tiny]
    numbers = np.concatenate(
        [
            rng.random(300),
            10 ** rng.uniform(-300, 0, 300),
            1 - 10 ** rng.uniform(-16, 0, 300),
            edges,
        ]
    )
    exact = [float(Decimal(x) * Decimal(x).ln()) for x in numbers.tolist()]
    assert_allclose([compiled_xlogx(x) for x in numbers], exact, rtol=1e-15, atol=0)


def test_xlogx_of_nothing_is_nothing() -> None:
    assert compiled_xlogx(0.0) == 0.0
    for x in (5e-324, 1e-310):
        assert -1e-304 < compiled_xlogx(x) <= 0.0


@pytest.mark.parametrize("spread", [0.5, 5.0, 50.0, 150.0])
def test_joint_probability_does_not_cancel(spread: float) -> None:
    """It lost half of its digits at p = q under strong attraction, all under strong repulsion."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        p, q = rng.uniform(0.01, 0.99, 2)
        ratio = float(np.exp(np.clip(spread * rng.normal(), -300, 300)))
        for second in (q, p, 1.0 - p):
            exact = exact_joint_probability(p, second, ratio)
            assert compiled_joint(p, second, ratio) == pytest.approx(exact, rel=1e-14, abs=4e-16)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rho", [0.5, 0.3])
@pytest.mark.parametrize("scale", [0.3, 20.0])
def test_summary_is_that_of_the_edge_tables(
    shape: tuple[int, int], rho: float, scale: float
) -> None:
    rng = np.random.default_rng(2)
    _, codes, _, ratios = random_grid(rng, *shape, min(scale, 5.0), rho)
    nodes = 1 / (1 + np.exp(-scale * rng.normal(size=shape)))
    histograms = [np.zeros((N_CODES, 4)) for _ in codes]
    entropy = summarise(nodes, *codes, *ratios, rho, *histograms)
    degree = np.zeros(shape)
    expected = 0.0
    for k in range(2):
        tables = np.empty((*codes[k].shape, 2, 2))
        fill_edge_tables(nodes, codes[k], ratios[k], k == 1, tables)
        expected -= rho * xlogy(tables, tables).sum()
        counted = np.zeros((N_CODES, 4))
        np.add.at(counted, codes[k].ravel(), tables.reshape(-1, 4))
        assert_allclose(histograms[k], counted, rtol=1e-12, atol=1e-14)
        low, high = (slice(None, -1), slice(1, None))
        degree[:, low] += k == 0
        degree[:, high] += k == 0
        degree[low] += k == 1
        degree[high] += k == 1
    expected -= ((1 - rho * degree) * (xlogy(nodes, nodes) + xlogy(1 - nodes, 1 - nodes))).sum()
    assert entropy == pytest.approx(expected, rel=1e-12, abs=1e-12)


def chain_log_partition(odds: np.ndarray, tables: np.ndarray) -> float:
    """log Z of a chain by logarithms: node odds (n,), edge tables (n - 1, 4)."""
    state = np.array([0.0, np.log(odds[0])])
    for j, table in enumerate(tables):
        step = state[:, None] + np.log(table.reshape(2, 2))
        state = np.logaddexp.reduce(step, axis=0) + [0.0, np.log(odds[j + 1])]
    return float(np.logaddexp(*state))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rho", [0.5, 0.3])
@pytest.mark.parametrize("scale", [0.3, 6.0])
def test_bound_is_the_split_that_the_messages_stand_for(
    shape: tuple[int, int], rho: float, scale: float
) -> None:
    rng = np.random.default_rng(3)
    odds, codes, tables, _ = random_grid(rng, *shape, scale, rho)
    messages = np.ones((4, *shape))
    sweep(odds, *codes, *tables, rho, messages)
    bound = bound_log_partition(odds, *codes, *tables, rho, messages)
    across, along = messages[0] * messages[1], messages[2] * messages[3]
    nodes = np.empty(shape)
    node_marginals(odds, rho, messages, nodes)
    belief = odds * (across * along) ** rho
    assert_allclose(nodes, belief / (1 + belief), rtol=1e-12)
    chains = [(belief / across, tables[0][codes[0]]), ((belief / along).T, tables[1][codes[1]])]
    chains[1] = (chains[1][0], chains[1][1].transpose(1, 0, 2))
    expected = (1 - 2 * rho) * np.log1p(belief).sum()
    for chain_odds, chain_tables in chains:
        for one_odds, one_tables in zip(chain_odds, chain_tables, strict=True):
            expected += rho * chain_log_partition(one_odds, one_tables)
    assert bound == pytest.approx(expected, rel=1e-12)
