"""No method ever prints a false bound: every kind of model, method, damping and stopping point.

The long form of the property, over as many models as wanted: ``python -m benchmarks hunts bounds``.
"""

import numpy as np
import pytest

from benchmarks.hunts.bounds import check_bounds
from engine.core.errors import InfeasibleError
from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.graphs.spanning_trees import uniform_tree_probabilities
from engine.inference.factors.log_partition import log_partition, simple_bound
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.inference.pairwise.zeros import independent_bound, possible_scores
from tests.reference.factor_models import smokers, smokers_log_partition, sparse_factors
from tests.reference.pairwise_models import exact_node_marginals, random_model

LOG_10 = np.log(10.0)


def test_friends_of_smokers_have_their_published_values():
    """Undamped sweeps "converged" to an upper bound of 26.449 below log10 Z."""
    assert smokers_log_partition(6, 1.1) / LOG_10 == pytest.approx(28.7564, abs=1e-4)
    form = to_pairwise(smokers(6, 1.1))
    solver = TreeReweighted(form.model.graph, uniform_tree_probabilities(form.model.graph))
    relaxed = solver.solve(form.model)
    assert relaxed.is_converged
    optimum = (relaxed.log_partition + form.constant) / LOG_10
    assert optimum == pytest.approx(36.1122, abs=1e-4)
    answer = log_partition(smokers(6, 1.1))
    assert answer.is_converged
    assert 28.7564 <= answer.upper_bound / LOG_10 <= optimum  # a simpler bound is smaller here


@pytest.mark.parametrize(("n", "weight"), [(6, 0.5), (6, 3.0), (10, 1.1), (14, 2.0)])
def test_friends_of_smokers_are_bounded_and_settle(n, weight):
    answer = log_partition(smokers(n, weight))
    assert answer.is_converged
    assert answer.upper_bound >= smokers_log_partition(n, weight)
    lower = log_partition(smokers(n, weight), method="mean-field")
    assert lower.lower_bound <= smokers_log_partition(n, weight)


@pytest.mark.parametrize(("n", "density", "strength"), [(40, 1.1, 1.0), (40, 2.0, 3.0)])
def test_random_sparse_factors_settle_by_themselves(n, density, strength):
    """Undamped sweeps diverged to "bounds" of 1e30 to 1e209."""
    graph = sparse_factors(n, density, strength, seed=2)
    answer = log_partition(graph)
    assert answer.is_converged
    assert answer.upper_bound <= simple_bound(graph)
    damped = log_partition(graph, damping=0.5)
    assert answer.upper_bound == pytest.approx(damped.upper_bound, abs=1e-3)


def test_every_bound_holds_on_models_of_every_kind():
    failures = check_bounds(250, seed=0)
    assert failures == []


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_holds_for_any_finite_messages(seed):
    """Not only for those that sweeps lead to: nothing then depends on how they went."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, 5, zeros=rng.choice((0.0, 0.2)), scale=10.0 ** rng.uniform(-1, 2))
    log_z, _ = exact_node_marginals(model)
    if log_z == -np.inf:
        return
    solver = TreeReweighted(model.graph, uniform_tree_probabilities(model.graph))
    solver._messages[:] = rng.normal(size=model.graph.n_messages) * 10.0 ** rng.uniform(-2, 6)
    assert solver._upper_bound(possible_scores(model)) >= log_z
    answer = solver.solve(model, warm=True, max_iterations=3)
    assert log_z <= answer.upper_bound <= independent_bound(possible_scores(model))


def test_scores_of_millions_that_cancel_leave_lower_bounds_below() -> None:
    """Probabilities summed to 1 + 4e-11, which times a million was a lower bound 4e-5 too high."""
    singles = (Factor((0,), np.array([1.0, 1.0])), Factor((0,), np.array([-1e6, -1e6])))
    graph = FactorGraph(np.array([2]), (Factor((), np.array(1e6)), *singles))
    for method in ("trw", "bp"):
        answer = log_partition(graph, method=method)
        assert answer.lower_bound <= 1.0 + np.log(2.0) + 1e-9 <= answer.upper_bound + 2e-9


def test_labels_without_a_partner_are_ruled_out_one_after_the_other():
    graph = PairwiseGraph(np.array([2, 2, 2]), np.array([[0, 1], [1, 2]]))
    scores = np.zeros(graph.size)
    scores[0] = -np.inf  # node 0 is 1, so that node 1 is 1, so that node 2 is 1
    for e in range(2):
        graph.edge_table(scores, e)[1, 0] = -np.inf
    assert possible_scores(PairwiseModel(graph, scores)).scores[:6].tolist() == 3 * [-np.inf, 0.0]
    graph.edge_table(scores, 1)[1, 1] = -np.inf
    with pytest.raises(InfeasibleError):
        possible_scores(PairwiseModel(graph, scores))


def test_margins_agree_where_factors_determine_their_variables():
    """Ties of 0 and -inf leave an edge no freedom: no gap was certified, converged or not."""
    form = to_pairwise(smokers(4, 1.0))
    solver = TreeReweighted(form.model.graph, uniform_tree_probabilities(form.model.graph))
    answer = solver.solve(form.model, tolerance=1e-7)
    assert answer.inconsistency < 1e-12
    assert 0.0 <= answer.dual_gap < 1e-4


def test_mean_field_finds_a_start_where_most_configurations_are_impossible():
    """Sudoku-like: all rows and columns of a Latin square differ; it said "no configuration"."""
    n = 5
    unlike = np.where(np.eye(n, dtype=bool), -np.inf, 0.0)
    cells = np.arange(n * n).reshape(n, n)
    pairs = {
        (int(line[a]), int(line[b]))
        for line in (*cells, *cells.T)
        for a in range(n)
        for b in range(a + 1, n)
    }
    graph = FactorGraph(np.full(n * n, n), tuple(Factor(p, unlike) for p in sorted(pairs)))
    answer = log_partition(graph, method="mean-field")
    assert 0.0 - 1e-9 <= answer.lower_bound <= np.log(161_280.0)  # Latin squares of order 5
