"""All MAP methods sharing the time: never worse than one of them, never at the cost of another."""

import time
from time import perf_counter

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, StoppedError
from engine.core.progress import never_stop
from engine.core.status import Status
from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
from engine.graphs.factor_layout import lay_out_factors
from engine.inference.factors.elimination import Elimination
from engine.inference.factors.feasible_start import find_feasible
from engine.inference.factors.local_search import LocalSearch
from engine.inference.factors.map_portfolio import map_estimate
from engine.inference.map_estimate import MapEstimate
from engine.inference.pairwise.map_linear_programme import DualSearch
from engine.kernels.factor_search import improve_forest
from tests.patience import PATIENCE_SECONDS, busyness
from tests.reference.factor_models import random_factors
from tests.reference.pairwise_models import as_factor_graph, random_model


def spin_glass(side: int, seed: int, labels: int = 2) -> FactorGraph:
    """A frustrated grid with random fields."""
    rng = np.random.default_rng(seed)
    cells = np.arange(side * side).reshape(side, side)
    pairs = [*zip(cells[:, :-1].ravel(), cells[:, 1:].ravel(), strict=True)]
    pairs += zip(cells[:-1].ravel(), cells[1:].ravel(), strict=True)
    factors = [Factor((int(v),), rng.normal(size=labels)) for v in cells.ravel()]
    factors += [Factor((int(i), int(j)), 3 * rng.normal(size=(labels, labels))) for i, j in pairs]
    return FactorGraph(np.full(side * side, labels), tuple(factors))


def unlike(n_variables: int, labels: int, pairs: list[tuple[int, int]]) -> FactorGraph:
    """A model in which the variables of each pair must have different labels."""
    table = np.where(np.eye(labels, dtype=bool), -np.inf, 0.0)
    return FactorGraph(np.full(n_variables, labels), tuple(Factor(p, table) for p in pairs))


@pytest.mark.parametrize("labels", [2, 4])
def test_the_whole_is_never_worse_than_its_parts(monkeypatch, labels):
    """Elimination ate the time, expansion was never tried, and polishing ended after a moment."""
    monkeypatch.setattr("engine.inference.factors.map_portfolio.QUICK_COST", 1)
    monkeypatch.setattr("engine.inference.factors.map_portfolio.ENTRIES_PER_SECOND", 1e-9)
    graph = spin_glass(9 if labels == 2 else 5, 1, labels)
    methods = ("lp", "expansion") if labels > 2 else ("roof-duality", "lp", "expansion")
    parts = [map_estimate(graph, method=m) for m in methods]
    whole = map_estimate(graph, max_seconds=3.0)
    assert whole.value >= max(part.value for part in parts)
    assert whole.upper_bound <= min(part.upper_bound for part in parts) + 1e-4 * abs(whole.value)
    assert whole.value == graph.score(whole.labels)
    assert whole.status.is_converged == whole.is_exact
    if labels == 2:
        best = Elimination(graph).best()[1]
        assert whole.value <= best + 1e-9 <= whole.upper_bound + 2e-9


@pytest.mark.parametrize("seed", range(8))
def test_small_models_are_proven_at_once(seed):
    graph = random_factors(np.random.default_rng(seed))
    values = [graph.score(np.array(x)) for x in np.ndindex(*graph.cardinalities)]
    if max(values) == -np.inf:
        with pytest.raises(InfeasibleError):
            map_estimate(graph)
        return
    answer = map_estimate(graph)
    assert answer.is_exact
    assert answer.value == pytest.approx(max(values))


@pytest.mark.parametrize("seed", range(10))
def test_a_forest_is_relabelled_at_best_and_its_gain_is_true(seed):
    """Any arity: a factor of which two variables move counts as one of pairs."""
    rng = np.random.default_rng(seed)
    graph = random_factors(rng)
    layout = lay_out_factors(graph)
    scores = layout.with_finite_penalty()
    labels = rng.integers(0, graph.cardinalities)
    places = layout.places(labels)
    before = scores[places].sum()
    search = LocalSearch(graph, rng)
    for _ in range(5):
        order, turns = rng.permutation(graph.n_variables), rng.integers(0, 100, 16)
        gain = improve_forest(
            order, turns, layout.arrays, scores, labels, places, search._work, search._answer
        )
        np.testing.assert_array_equal(places, layout.places(labels))
        assert gain >= -1e-9 * abs(before)
        after = scores[places].sum()
        assert after - before == pytest.approx(gain, abs=1e-7 * max(1.0, abs(before)))
        before = after
    assert not search._work[0].any()


def test_a_tree_is_solved_by_one_forest():
    rng = np.random.default_rng(0)
    pairs = [(int(rng.integers(v)), v) for v in range(1, 9)]
    graph = FactorGraph(
        np.full(9, 3), tuple(Factor(pair, rng.normal(size=(3, 3))) for pair in pairs)
    )
    search = LocalSearch(graph, rng)
    search.compile()
    assert search.best()[1] == pytest.approx(Elimination(graph).best()[1])


def test_local_search_finds_the_best_of_a_spin_glass():
    graph = spin_glass(10, 3)
    best = Elimination(graph).best()[1]
    search = LocalSearch(graph, np.random.default_rng(0))
    for _ in range(12):
        search.advance(never_stop)
        if search.best()[1] >= best - 1e-9:
            break
    assert search.best()[1] == pytest.approx(best)


@pytest.mark.parametrize("method", [None, "lp", "expansion"])
def test_a_puzzle_of_hard_zeros_is_solved(method):
    """A Latin square of order 6: no method had found a configuration of probability above zero."""
    cells = np.arange(36).reshape(6, 6)
    lines = [*cells.tolist(), *cells.T.tolist()]
    pairs = [(a, b) for line in lines for k, b in enumerate(line) for a in line[:k]]
    graph = unlike(36, 6, pairs)
    answer = map_estimate(graph, method=method, max_seconds=PATIENCE_SECONDS)
    assert answer.value == 0.0


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_without_time_there_is_an_answer_where_every_configuration_is_possible(seconds):
    """A model without zeros was said to have perhaps no configuration at all."""
    graph = spin_glass(8, 0, labels=12)
    answer = map_estimate(graph, max_seconds=seconds)
    assert answer.value == graph.score(answer.labels) > -np.inf
    assert not answer.is_exact


def test_five_pigeons_do_not_fit_into_four_holes():
    graph = unlike(5, 4, [(a, b) for b in range(5) for a in range(b)])
    with pytest.raises(InfeasibleError):
        find_feasible(graph, to_pairwise(graph))
    for method in (None, "lp"):
        with pytest.raises(InfeasibleError):
            map_estimate(graph, method=method)


def test_a_start_is_sought_where_a_model_has_zeros_of_any_arity():
    parity = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2 == 1, 0.0, -np.inf)
    scopes = [(v, v + 1, v + 2) for v in range(18)]
    graph = FactorGraph(np.full(20, 2), tuple(Factor(s, parity) for s in scopes))
    labels = find_feasible(graph, to_pairwise(graph))
    assert labels is not None
    assert graph.score(labels) == 0.0


def answer_of(estimate: MapEstimate) -> tuple[object, ...]:
    """Everything that an estimate says."""
    return (
        estimate.labels.tolist(),
        estimate.value,
        estimate.upper_bound,
        estimate.status,
        estimate.method,
        estimate.guarantee,
    )


def slow_down(monkeypatch, owner: type, name: str, seconds: float) -> None:
    """Let a method take longer."""
    method = getattr(owner, name)

    def slower(*args):
        time.sleep(seconds)
        return method(*args)

    monkeypatch.setattr(owner, name, slower)


@pytest.mark.parametrize("case", ["clock", "search", "proof"])
@pytest.mark.parametrize("labels", [2, 6])
def test_the_answer_does_not_depend_on_the_speed_of_the_machine(monkeypatch, case, labels):
    """The search ran for shares of a second, and took what the proof had found by then."""
    graph = spin_glass(12 if labels > 2 else 20, 5, labels)
    usual = answer_of(map_estimate(graph, max_work=4e7))
    assert answer_of(map_estimate(graph, max_work=4e7)) == usual
    if case == "clock":
        real, started = time.perf_counter, time.perf_counter()
        monkeypatch.setattr(time, "perf_counter", lambda: started + 500.0 * (real() - started))
    elif case == "search":
        slow_down(monkeypatch, LocalSearch, "_disturb", 0.01)
    else:
        slow_down(monkeypatch, DualSearch, "advance", 0.005)
    assert answer_of(map_estimate(graph, max_work=4e7)) == usual


def test_a_limit_of_work_ends_the_search_and_is_said():
    graph = spin_glass(16, 5, labels=6)
    answer = map_estimate(graph, max_work=1e6)
    assert answer.status is Status.ITERATION_LIMIT
    assert not answer.is_exact
    assert answer.value == graph.score(answer.labels) <= answer.upper_bound
    more = map_estimate(graph, max_work=1e8)
    assert more.value > answer.value
    assert more.upper_bound < answer.upper_bound


@pytest.mark.parametrize("method", ["lp", "expansion"])
def test_a_method_alone_keeps_to_the_limit_of_work(method):
    graph = spin_glass(16, 5, labels=6)
    short = map_estimate(graph, method=method, max_work=1.0)
    assert short.iterations <= 5
    long = map_estimate(graph, method=method)
    assert long.iterations > short.iterations
    assert long.upper_bound <= short.upper_bound


def test_exact_stops_when_its_work_is_done():
    graph = as_factor_graph(random_model(0, 24, binary=True, density=1.0))
    with pytest.raises(StoppedError):
        map_estimate(graph, method="exact", max_work=1e6)


def test_exact_stops_when_its_time_is_over():
    """One large table was finished first, half as long again as the time given."""
    graph = as_factor_graph(random_model(0, 24, binary=True, density=1.0))
    map_estimate(as_factor_graph(random_model(0, 4)), method="exact")
    started = perf_counter()
    with pytest.raises(StoppedError):
        map_estimate(graph, method="exact", max_seconds=0.1)
    assert perf_counter() - started < 3.0 * busyness()


def test_a_caller_may_stop_it():
    graph = spin_glass(30, 0)
    asked = []

    def stop() -> bool:
        asked.append(perf_counter())
        return len(asked) > 20

    answer = map_estimate(graph, should_stop=stop)
    assert not answer.status.is_converged
    assert answer.value <= answer.upper_bound
