"""The compiled parts of matching: the event queue, nested blossoms, pricing, compressed rows."""

import numpy as np
import pytest

from engine.kernels.blossom import solve_perfect_matching
from engine.kernels.blossom_heap import heap_pop, heap_push, heap_reserve
from engine.kernels.laminar import (
    fill_shared_duals,
    laminar_family,
    shared_blossom_dual,
)
from engine.kernels.lookup_rows import sum_lookups
from engine.kernels.matching_edges import cap_additions, edge_slacks, symmetric_rows
from engine.kernels.matching_rows import price_rows, select_rows, sweep_rows

NONE = -1


def test_the_queue_gives_back_keys_in_order() -> None:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 50, 300)
    heap = np.empty((1, 2), dtype=np.int64)
    size = 0
    for payload, key in enumerate(keys.tolist()):
        heap = heap_reserve(heap, size, 1)
        size = heap_push(heap, size, key, payload)
    seen = []
    while size:
        seen.append(heap[0].tolist())
        size = heap_pop(heap, size)
    assert [key for key, _ in seen] == sorted(keys.tolist())
    assert all(keys[payload] == key for key, payload in seen)
    assert sorted(payload for _, payload in seen) == list(range(300))


def nested_family() -> tuple[int, np.ndarray, np.ndarray]:
    """Seven vertices: {0, 1, 2} inside {0, 1, 2, 3, 4}; 5 and 6 stand alone; number 9 is unused."""
    parent = np.array([7, 7, 7, 8, 8, NONE, NONE, 8, NONE, NONE])
    dual = np.array([99, 99, 99, 99, 99, 99, 99, 3, 5, 0])
    return 7, parent, dual


def test_shared_duals_of_nested_blossoms() -> None:
    n, parent, dual = nested_family()
    family = laminar_family(n, parent, dual)
    members = [{0, 1, 2}, {0, 1, 2, 3, 4}]
    for i in range(n):
        shared = np.full(n, -1)
        fill_shared_duals(family, i, shared)
        for j in range(n):
            expected = sum(d for d, b in zip((3, 5), members, strict=True) if {i, j} <= b)
            if i != j:
                assert shared_blossom_dual(family, i, j) == expected
            if family.root[i] == family.root[j] and parent[i] != NONE and i != j:
                assert shared[family.begin[j]] == expected
    for node, size in ((7, 3), (8, 5)):
        assert family.end[node] - family.begin[node] == size
    assert sorted(family.begin[:n]) == list(range(n))


def test_slacks_see_the_blossoms() -> None:
    n, parent, dual = nested_family()
    family = laminar_family(n, parent, dual)
    heads, tails = np.array([0, 0, 0]), np.array([1, 4, 5])
    vertex = np.arange(n)
    slack = edge_slacks(heads, tails, np.full(3, 10), vertex, family)
    assert slack.tolist() == [10 - 1 + 2 * 8, 10 - 4 + 2 * 5, 10 - 5]


def complete_rows(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    heads, tails = np.triu_indices(n, 1)
    return symmetric_rows(n, heads, tails)


@pytest.mark.parametrize("seed", range(5))
def test_the_dual_is_feasible_and_complementary(seed: int) -> None:
    """Everything that makes an optimum one: signs, reduced costs, tight pairs, full blossoms."""
    rng = np.random.default_rng(seed)
    deepest = 0
    for _ in range(60):
        n = 2 * int(rng.integers(2, 16))
        start, owner, neighbour = complete_rows(n)
        table = 2 * rng.integers(0, int(rng.choice([2, 6, 40])), (n, n))
        if rng.random() < 0.7:
            # Points in odd clusters of odd clusters: the shape that nests blossoms.
            places = np.arange(n)[:, np.newaxis] // [1, 3, 9] * [1, 10, 100]
            table = 2 * (np.abs(places[:, np.newaxis] - places).sum(axis=2) + table % 4)
        table = np.triu(table, 1) + np.triu(table, 1).T
        cost = table[owner, neighbour]
        dual = rng.integers(-30, 30, n)
        mate = np.where(rng.random(n) < 0.5, NONE, rng.permutation(n))
        found, blossom_dual, parent, _, label = solve_perfect_matching(
            start, neighbour, cost, dual, mate
        )
        assert found
        assert not label.any()
        assert (mate[mate] == np.arange(n)).all()
        assert (blossom_dual[n:] >= 0).all()
        family = laminar_family(n, parent, blossom_dual)
        slack = edge_slacks(owner, neighbour, cost, dual, family)
        assert slack.min() >= 0
        assert (slack[neighbour == mate[owner]] == 0).all()
        for blossom in range(n, len(parent)):
            inside = np.flatnonzero(
                (family.begin[:n] >= family.begin[blossom])
                & (family.begin[:n] < family.end[blossom])
            )
            if blossom_dual[blossom] > 0:
                assert len(inside) % 2 == 1
                assert np.isin(mate[inside], inside).sum() == len(inside) - 1
                depth, above = 1, parent[blossom]
                while above != NONE:
                    depth, above = depth + 1, parent[above]
                deepest = max(deepest, depth)
    assert deepest >= 2, "the instances never nest a blossom: choose harder ones"


def test_a_graph_without_a_perfect_matching_shows_its_tree() -> None:
    start, _, neighbour = symmetric_rows(4, np.array([0, 0, 0]), np.array([1, 2, 3]))
    found, _, _, _, label = solve_perfect_matching(
        start, neighbour, np.zeros(6, dtype=np.int64), np.zeros(4, dtype=np.int64), np.full(4, -1)
    )
    assert not found
    assert np.flatnonzero(label == 2).tolist() == [0]


def test_compressed_rows_drop_repeats_and_absent_tails() -> None:
    heads = np.array([0, 1, 0, 2, 2])
    tails = np.array([1, 0, 2, -1, 0])
    start, owner, neighbour = symmetric_rows(4, heads, tails)
    assert start.tolist() == [0, 2, 3, 4, 4]
    assert sorted(zip(owner.tolist(), neighbour.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 0),
        (2, 0),
    ]


def test_additions_stop_when_both_ends_have_enough() -> None:
    heads, tails = np.array([0, 0, 0, 1]), np.array([1, 2, 3, 2])
    assert cap_additions(4, np.arange(4), heads, tails, 1).tolist() == [0, 1, 2]
    assert cap_additions(4, np.array([3, 0, 1, 2]), heads, tails, 1).tolist() == [3, 0, 2]


def test_selection_keeps_the_largest_gains() -> None:
    rng = np.random.default_rng(0)
    n, k = 150, 7
    block = rng.normal(size=(n, n))
    price = rng.normal(size=n)
    chosen = np.empty((n, k), dtype=np.int64)
    gains = np.empty((n, k))
    select_rows(block, 0, price, chosen, gains)
    wanted = block - price
    np.fill_diagonal(wanted, -np.inf)
    for i in range(n):
        assert set(chosen[i].tolist()) == set(np.argsort(-wanted[i])[:k].tolist())


def test_selection_takes_one_of_each_score() -> None:
    rng = np.random.default_rng(3)
    n, k = 90, 5
    block = rng.integers(0, 9, (n, n)).astype(float)
    price = rng.normal(size=n)
    chosen = np.empty((n, k), dtype=np.int64)
    gains = np.empty((n, k))
    select_rows(block, 0, price, chosen, gains)
    wanted = block - price
    np.fill_diagonal(wanted, -np.inf)
    for i in range(n):
        best = sorted((wanted[i, block[i] == score].max() for score in range(9)), reverse=True)
        assert sorted(wanted[i, chosen[i]], reverse=True) == pytest.approx(best[:k])


def test_blossoms_without_a_dual_are_left_out_of_the_family() -> None:
    n, parent, dual = nested_family()
    dual[8] = 0
    family = laminar_family(n, parent, dual)
    assert family.parent[:n].tolist() == [7, 7, 7, NONE, NONE, NONE, NONE]
    assert len(np.unique(family.root[:n])) == 5
    assert parent[7] == 8, "the caller's array is not changed"


def test_rows_are_sums_of_look_ups() -> None:
    rng = np.random.default_rng(4)
    table, places = rng.normal(size=(6, 11)), rng.integers(0, 11, (20, 3))
    rows = np.empty((6, 20))
    sum_lookups(table, places, rows)
    assert np.allclose(rows, table[:, places].sum(axis=2), rtol=1e-15)


def test_a_sweep_sees_every_other_row() -> None:
    rng = np.random.default_rng(1)
    block = rng.normal(size=(40, 40))
    price = rng.normal(size=40)
    best = np.full(40, -np.inf)
    sweep_rows(block[:15], 0, price, best)
    sweep_rows(block[15:], 15, price, best)
    wanted = block - price[:, np.newaxis]
    np.fill_diagonal(wanted, -np.inf)
    assert np.array_equal(best, wanted.max(axis=0))


def test_pricing_finds_exactly_the_violated_pairs() -> None:
    rng = np.random.default_rng(2)
    n, scale = 80, 4.0
    scores = rng.integers(0, 40, (n, n)) / 2.0
    dual = rng.integers(-80, -30, n)
    parent = np.full(n + n // 2 + 1, NONE)
    family = laminar_family(n, parent, np.zeros(len(parent), dtype=np.int64))
    chosen = np.empty((n, n), dtype=np.int64)
    slacks = np.empty((n, n), dtype=np.int64)
    count = price_rows(scores, 0, scale, 1e-9, dual, family, chosen, slacks)
    slack = -(scores * scale).astype(int) - dual[:, np.newaxis] - dual
    violated = np.argwhere(np.triu(slack < 0, 1))
    heads, slots = np.nonzero(chosen >= 0)
    assert count == len(violated) == len(heads)
    assert sorted(map(tuple, violated.tolist())) == sorted(
        zip(heads.tolist(), chosen[heads, slots].tolist(), strict=True)
    )
