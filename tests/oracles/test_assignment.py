"""Bipartite matchings: assignments with their prices, b-matchings as flows."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.sparse import eye_array

import engine.oracles.assignment as module
from engine.core.errors import CertificateError, InfeasibleError, InvalidProblemError
from engine.oracles.assignment import AssignmentOracle, assign
from engine.oracles.bipartite_b_matching import bipartite_b_matching
from engine.oracles.sparse_matching import max_weight_matching


def best_by_enumeration(scores: np.ndarray) -> float:
    short = scores if scores.shape[0] <= scores.shape[1] else scores.T
    rows, columns = short.shape
    return max(
        float(short[np.arange(rows), list(chosen)].sum())
        for chosen in permutations(range(columns), rows)
    )


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5), (5, 2), (6, 6), (4, 6)])
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_it_agrees_with_enumeration(shape: tuple[int, int], forbidden: float) -> None:
    rng = np.random.default_rng(0)
    for trial in range(30):
        scores = rng.integers(-4, 5, shape) + (trial % 3 == 0) * rng.normal(size=shape)
        scores[rng.random(shape) < forbidden] = -np.inf
        best = best_by_enumeration(scores)
        try:
            found = assign(scores)
        except InfeasibleError as error:
            assert best == -np.inf
            short = scores if shape[0] <= shape[1] else scores.T
            crowd = list(error.deficient_set)
            assert (short[crowd] > -np.inf).any(axis=0).sum() < len(crowd)
            continue
        assert found.weight == pytest.approx(best, abs=1e-12)
        assert found.gap <= 1e-12
        matched = np.flatnonzero(found.columns >= 0)
        assert len(matched) == min(shape)
        assert len(set(found.columns[matched].tolist())) == min(shape)
        prices = found.row_price[:, np.newaxis] + found.column_price
        assert (prices >= scores - 1e-12).all()


ROUNDED = {
    "spread over 16 digits": lambda rng, shape: (
        rng.normal(size=shape) * 10.0 ** rng.integers(-8, 9, shape)
    ),
    "ties but for the last digit": lambda rng, shape: 1 + rng.integers(0, 4, shape) * 2.0**-52,
    "whole numbers near 2^52": lambda rng, shape: 2.0**52 - rng.integers(0, 5, shape),
    "tenths": lambda rng, shape: rng.integers(0, 4, shape) * 0.1,
}


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 2)])
@pytest.mark.parametrize("kind", ROUNDED)
def test_it_is_optimal_in_the_scores_without_rounding(kind: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        scores = ROUNDED[kind](rng, shape)
        scores[rng.random(shape) < 0.1] = -np.inf
        short = scores if shape[0] <= shape[1] else scores.T
        totals = [
            sum(map(Fraction, short[np.arange(len(short)), list(chosen)]))
            for chosen in permutations(range(short.shape[1]), len(short))
            if (short[np.arange(len(short)), list(chosen)] > -np.inf).all()
        ]
        if not totals:
            continue
        found = assign(scores)
        rows = np.flatnonzero(found.columns >= 0)
        assert sum(map(Fraction, scores[rows, found.columns[rows]])) == max(totals)
        assert found.weight == found.upper_bound == float(max(totals))


def test_what_is_no_dense_array_of_real_numbers_is_refused() -> None:
    for bad, words in (
        (eye_array(2), "a dense array, received a dia_array; its method toarray"),
        (np.array([[1j]]), "real numbers, received complex ones"),
        ([["a"]], "expected numbers"),
        ([[10**400]], "expected numbers"),
        (np.array([[2**53 + 1]]), "is no float64 number"),
    ):
        with pytest.raises(InvalidProblemError, match=words):
            assign(bad)


def test_a_worse_assignment_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_solve", lambda scores: np.arange(len(scores)))
    with pytest.raises(CertificateError, match="exchange"):
        assign(np.array([[0.0, 1.0], [1.0, 0.0]]))


def test_false_prices_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_prices", lambda scores, chosen: (np.zeros(2), np.zeros(2)))
    with pytest.raises(CertificateError, match="proves"):
        assign(np.array([[2.0, 1.0], [2.0, 0.0]]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_scores(bad: float) -> None:
    with pytest.raises(InvalidProblemError, match="finite"):
        assign(np.array([[bad]]))
    with pytest.raises(InvalidProblemError, match="finite"):
        bipartite_b_matching(np.array([[bad]]), [1], [1])


def test_scores_whose_sums_would_overflow_are_refused() -> None:
    scores = np.array([[1.7e308, -1.7e308], [-np.inf, 1.7e308]])
    for solve in (assign, lambda given: bipartite_b_matching(given, [1, 1], [1, 1])):
        with pytest.raises(InvalidProblemError, match="magnitudes up to 1e"):
            solve(scores)


def test_empty_problems() -> None:
    assert assign(np.zeros((0, 3))).weight == 0.0
    assert bipartite_b_matching(np.zeros((0, 3)), [], [1, 1, 1]).n_matched == 0


def test_the_oracle_returns_columns() -> None:
    point = AssignmentOracle().compute_extreme_point(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert point.vertex.places.tolist() == [1, 2]
    assert (point.value, point.upper_bound) == (2.0, 2.0)


@pytest.mark.parametrize("exact", [False, True])
def test_b_matchings_by_flow_and_by_gadget_agree(exact: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        n_rows, n_columns = (int(k) for k in rng.integers(1, 6, 2))
        scores = rng.integers(-4, 8, (n_rows, n_columns)).astype(float)
        scores[rng.random(scores.shape) < 0.2] = -np.inf
        rows, columns = rng.integers(0, 4, n_rows), rng.integers(0, 4, n_columns)
        ends = np.argwhere(scores > -np.inf)
        edges = ends + [0, n_rows]
        arguments = (n_rows + n_columns, edges, scores[tuple(ends.T)], "b", np.r_[rows, columns])
        try:
            expected = max_weight_matching(*arguments, exact_degrees=exact).weight  # type: ignore[arg-type]
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                bipartite_b_matching(scores, rows, columns, exact=exact)
            continue
        found = bipartite_b_matching(scores, rows, columns, exact=exact)
        assert found.weight == expected
        assert found.gap <= 1e-9
        used = np.zeros_like(scores)
        used.ravel()[found.edge_indices] = 1
        assert (used.sum(axis=1) <= rows).all()
        assert (used.sum(axis=0) <= columns).all()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("spacing", [1e-7, 1e-9, 1e-12])
def test_near_ties_of_b_matchings_are_told_apart(spacing: float, exact: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        steps = rng.integers(0, 50, (6, 6))
        scores, limits = 1.0 + steps * spacing, np.full(6, 2)
        edges = np.argwhere(np.ones((6, 6))) + [0, 6]
        found = bipartite_b_matching(scores, limits, limits, exact=exact)
        other = max_weight_matching(
            12, edges, steps.ravel(), "b", np.full(12, 2), exact_degrees=exact
        )
        assert steps.ravel()[found.edge_indices].sum() == other.weight
        assert found.gap <= 1e-12


def test_b_matchings_refuse_odd_degrees() -> None:
    for bad in (-1, 0.5):
        with pytest.raises(InvalidProblemError, match="whole numbers"):
            bipartite_b_matching(np.zeros((1, 1)), [bad], [1])


def test_small_b_matchings_agree_with_enumeration() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        scores = rng.normal(size=(3, 3))
        limits = rng.integers(0, 3, 3)
        best = max(
            float((np.reshape(chosen, (3, 3)) * scores).sum())
            for chosen in product((0, 1), repeat=9)
            if (np.reshape(chosen, (3, 3)).sum(axis=0) <= limits).all()
            and (np.reshape(chosen, (3, 3)).sum(axis=1) <= limits).all()
        )
        assert bipartite_b_matching(scores, limits, limits).weight == pytest.approx(best)
