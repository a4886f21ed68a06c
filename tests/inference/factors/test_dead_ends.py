"""Removal of labels that no best configuration has, against enumeration."""

from itertools import product

import numpy as np
import pytest

from engine import map_estimate
from engine.core.errors import InfeasibleError
from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
from engine.inference.factors.dead_ends import labels_without_dead_ends


def model(seed: int, *, with_triple: bool = False, share_of_zeros: float = 0.0) -> FactorGraph:
    """Six variables of one to four labels, some scores rounded so that ties occur."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, 6)

    def table(*variables: int) -> np.ndarray:
        scores = rng.normal(scale=2.0, size=[cards[v] for v in variables])
        scores = np.round(scores) if seed % 2 else scores
        scores[rng.random(scores.shape) < share_of_zeros] = -np.inf
        return scores

    scopes = [(v,) for v in range(6)] + [(0, 1), (1, 2), (3, 2), (3, 4), (5, 4), (0, 5), (1, 4)]
    scopes += [(0, 2, 4)] if with_triple else []
    return FactorGraph(cards, tuple(Factor(scope, table(*scope)) for scope in scopes))


def best_configurations(graph: FactorGraph) -> list[tuple[int, ...]]:
    scores = {x: graph.score(np.array(x)) for x in product(*map(range, graph.cardinalities))}
    most = max(scores.values())
    return [x for x, score in scores.items() if score > most - 1e-9] if most > -np.inf else []


@pytest.mark.parametrize("with_triple", [False, True])
@pytest.mark.parametrize("share_of_zeros", [0.0, 0.1, 0.4])
def test_no_label_of_a_best_configuration_is_removed(
    share_of_zeros: float, with_triple: bool
) -> None:
    n_removed = 0
    for seed in range(60):
        graph = model(seed, with_triple=with_triple, share_of_zeros=share_of_zeros)
        kept = labels_without_dead_ends(to_pairwise(graph))
        n_removed += int(graph.cardinalities.sum()) - sum(map(len, kept))
        assert all(len(left) for left in kept)
        for best in best_configurations(graph):
            assert all(x in left for x, left in zip(best, kept, strict=True)), seed
    assert n_removed > 100


@pytest.mark.parametrize("with_triple", [False, True])
def test_the_best_configuration_of_the_rest_is_the_best_of_all(with_triple: bool) -> None:
    for seed in range(40):
        graph = model(seed, with_triple=with_triple, share_of_zeros=0.3)
        best = best_configurations(graph)
        if not best:
            with pytest.raises(InfeasibleError):
                map_estimate(graph)
            continue
        found = map_estimate(graph)
        assert tuple(found.labels) in best
        assert found.is_exact
        assert found.value == graph.score(found.labels) == found.upper_bound


def test_labels_as_good_as_each_other_stay() -> None:
    graph = FactorGraph(np.array([3, 2]), (Factor((0, 1), np.zeros((3, 2))),))
    assert [len(left) for left in labels_without_dead_ends(to_pairwise(graph))] == [3, 2]


def test_one_label_stays_where_all_are_impossible() -> None:
    nothing = Factor((0,), np.full(3, -np.inf))
    graph = FactorGraph(np.array([3, 2]), (nothing, Factor((0, 1), np.zeros((3, 2)))))
    assert len(labels_without_dead_ends(to_pairwise(graph))[0]) == 1
    with pytest.raises(InfeasibleError):
        map_estimate(graph)


def test_what_rounding_could_have_made_better_stays() -> None:
    """.1 + .2 exceeds .3 only by rounding; label 1 is as good as label 0."""
    tables = (
        Factor((0,), np.array([0.3, 0.1])),
        Factor((0, 1), np.array([[0.0, 0.0], [0.2, 0.2]])),
    )
    graph = FactorGraph(np.array([2, 2]), tables)
    assert len(labels_without_dead_ends(to_pairwise(graph))[0]) == 2


def test_the_work_is_limited() -> None:
    """A pass over nodes of 400 labels would visit 5 times 10 to the 8 entries."""
    rng = np.random.default_rng(0)
    pairs = [(v, v + 1) for v in range(7)]
    graph = FactorGraph(
        np.full(8, 400), tuple(Factor(pair, rng.normal(size=(400, 400))) for pair in pairs)
    )
    form = to_pairwise(graph)
    assert sum(map(len, labels_without_dead_ends(form, max_work=10_000))) == 3200
    assert all(len(left) for left in labels_without_dead_ends(form))


def test_the_answer_says_how_many_labels_were_left() -> None:
    graph = model(2)
    n_kept = sum(map(len, labels_without_dead_ends(to_pairwise(graph))))
    n_labels = int(graph.cardinalities.sum())
    assert n_kept < n_labels
    found = map_estimate(graph)
    assert found.guarantee.startswith("Optimal")
    assert f"{n_kept} of {n_labels} labels can be part" in found.guarantee
