"""Problems on which steps along one direction jam are solved by correcting all weights at once."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from engine.core.status import Status
from engine.crf.bipartite import BipartiteItems
from engine.crf.survey_features import make_survey_features
from engine.objectives.learning_dual import make_learning_dual
from engine.oracles.sparse_matching import max_weight_matching
from engine.solvers.control import Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.fully_corrective_frank_wolfe import (
    FullyCorrectiveFrankWolfe,
    _Atoms,
    newton_change,
)
from engine.solvers.iterate import find_direction
from engine.structures.bipartite import BipartiteStructure
from engine.structures.graph import GraphStructure
from engine.structures.survey import SurveyStructure
from tests.learning.roommates.cohorts import random_cohorts


def items_block(n, n_features, rho, seed=0):
    rng = np.random.default_rng(seed)
    items = BipartiteItems(rng.normal(size=(n, n, n_features)))
    return BipartiteStructure(items, rng.permutation(n), rho)


def cohort_blocks(n, rho, count=2):
    cohorts = random_cohorts(n, count)
    features = make_survey_features([survey for survey, _ in cohorts])
    return [SurveyStructure(s, p, features, rho) for s, p in cohorts]


def graph_block(is_perfect, rho=1.0, seed=0):
    """A ladder with features and a matching drawn at random."""
    rng = np.random.default_rng(seed)
    edges = np.array(nx.ladder_graph(5).edges)
    kind = "perfect" if is_perfect else "any"
    matched = max_weight_matching(10, edges, rng.normal(size=len(edges)), kind).edge_indices
    features = rng.normal(size=(len(edges), 3))
    return GraphStructure(10, edges, features, matched, rho, is_perfect=is_perfect)


def plain(structures, ridge, limits):
    dual = make_learning_dual([s.observed for s in structures], ridge)
    return FrankWolfe(structures, dual, limits=limits).solve()


JAMMED = {
    "narrow valley": lambda rho: [items_block(8, 1, rho)],
    "three features": lambda rho: [items_block(8, 3, rho)],
    "optimum beside a vertex": lambda rho: [items_block(8, 20, rho)],
    "eight students, two years": lambda rho: cohort_blocks(8, rho),
    "twelve students": lambda rho: cohort_blocks(12, rho, 1),
}


@pytest.mark.parametrize("rho", [0.5, 0.75, 1.0])
@pytest.mark.parametrize("ridge", [1e-6, 1e-3])
@pytest.mark.parametrize("name", JAMMED)
def test_jammed_problems_reach_a_certified_gap_of_1e_4_in_200_steps(name, ridge, rho):
    limits = Limits(1e-4, max_iterations=200)
    result = FullyCorrectiveFrankWolfe(JAMMED[name](rho), ridge, limits).solve()
    assert result.status.is_converged
    assert result.relative_gap <= 1e-4


@pytest.mark.parametrize("name", ["narrow valley", "twelve students"])
def test_single_directions_are_still_far_off_when_weights_together_have_arrived(name):
    blocks = JAMMED[name]
    arrived = FullyCorrectiveFrankWolfe(blocks(1.0), 1e-6, Limits(1e-4)).solve()
    limits = Limits(1e-4, max_iterations=arrived.iterations)
    stuck = plain(blocks(1.0), 1e-6, limits)
    assert stuck.relative_gap > 1e-1
    assert stuck.lower_bound <= arrived.objective + 1e-9  # and honest about it
    assert stuck.objective >= arrived.lower_bound - 1e-9


def test_a_gap_below_rounding_ends_as_stalled_with_bounds_as_close_as_floats_allow():
    solver = FullyCorrectiveFrankWolfe([items_block(8, 3, 1.0)], 1e-3, Limits(1e-17))
    for _ in range(2):  # a solver may be used again: nothing is left of the run before
        result = solver.solve()
        assert result.status is Status.STALLED
        assert result.relative_gap <= 1e-9
        assert result.iterations < 200


@pytest.mark.parametrize("rho", [0.5, 1.0])
@pytest.mark.parametrize("name", JAMMED)
def test_the_gap_of_the_contracted_polytope_is_never_reported(name, rho):
    """Every bound on the way brackets the optimum over the whole polytope."""
    best = FullyCorrectiveFrankWolfe(JAMMED[name](rho), 1e-3, Limits(1e-7, 400)).solve()
    result = FullyCorrectiveFrankWolfe(JAMMED[name](rho), 1e-3, Limits(1e-4, 400)).solve()
    slack = 1e-9 * max(abs(best.objective), 1.0)
    for point in result.trajectory:
        assert point.lower_bound <= best.objective + slack
        assert point.objective >= best.lower_bound - slack


@pytest.mark.parametrize("is_perfect", [True, False])
def test_general_graphs_agree_with_plain_frank_wolfe(is_perfect):
    result = FullyCorrectiveFrankWolfe([graph_block(is_perfect)], 1.0, Limits(1e-6)).solve()
    stepped = plain([graph_block(is_perfect)], 1.0, Limits(2e-3, max_iterations=5000))
    assert result.status.is_converged
    assert stepped.lower_bound <= result.objective + 1e-9
    assert stepped.objective >= result.lower_bound - 1e-9
    assert stepped.objective == pytest.approx(result.objective, rel=3e-3)


@pytest.mark.parametrize(
    "block",
    [items_block(5, 3, 0.7), cohort_blocks(8, 1.0)[0], graph_block(True), graph_block(False, 0.6)],
    ids=["bipartite", "complete", "general", "imperfect"],
)
def test_slopes_and_curvature_are_derivatives_in_the_weights(block):
    rng = np.random.default_rng(2)
    theta = 0.3 * rng.normal(size=len(block.observed))
    asked = [find_direction(block, rng.normal(size=len(theta)), block.start) for _ in range(2)]
    vertices = [direction.vertex for direction in asked]
    weights = np.array([0.5, 0.2, 0.3])
    atoms = _Atoms(block.start, vertices, np.zeros((3, len(theta))), weights)
    slopes, curvature = atoms.expand(block, theta, atoms.combine(weights))
    assert weights @ slopes == pytest.approx(0.0, abs=1e-9)

    def value(moved):
        point = atoms.combine(moved)
        return theta @ block.statistics(point) + block.entropy.value(point)

    for change in (np.array([-1.0, 1.0, 0.0]), np.array([-0.4, -0.6, 1.0])):
        up, here, down = (value(weights + g * change) for g in (1e-4, 0.0, -1e-4))
        assert (up - down) / 2e-4 == pytest.approx(slopes @ change, abs=1e-6)
        second = (2 * here - up - down) / 1e-8
        assert second == pytest.approx(change @ curvature @ change, rel=1e-3, abs=1e-4)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_the_change_of_weights_is_the_best_that_the_model_allows(seed, sizes):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    weights = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    floor = np.where(rng.random(len(weights)) < 0.3, 0.5 * weights, 0.0)
    root = rng.normal(size=(len(weights), len(weights)))
    hessian, slopes = root @ root.T + 0.1 * np.eye(len(weights)), rng.normal(size=len(weights))
    change = newton_change(weights, floor, slopes, hessian, owners)

    def model(d):
        return slopes @ d - d @ hessian @ d / 2

    sums = [{"type": "eq", "fun": lambda d, m=m: d[owners == m].sum()} for m in range(len(sizes))]
    bounds = list(zip(floor - weights, [None] * len(weights), strict=True))
    best = minimize(
        lambda d: -model(d), np.zeros(len(weights)), bounds=bounds, constraints=sums, method="SLSQP"
    )
    assert (weights + change >= floor - 1e-12).all()
    assert np.abs(np.bincount(owners, change)).max() < 1e-9
    assert model(change) >= 0.9 * -best.fun - 1e-6
