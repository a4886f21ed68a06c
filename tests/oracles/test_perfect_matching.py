"""Complete graphs against enumeration and the sparse oracle; warm starts, certificates, one-hot."""

import json
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import engine.oracles.perfect_matching as module
import engine.oracles.score_rows as score_rows
from engine.core.errors import CertificateError, InfeasibleError, InvalidProblemError
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.sparse_matching import max_weight_matching
from tests.reference.best_matchings import best_weight, count_odd_components

TEN_THOUSAND = """
import json
from pathlib import Path
import numpy as np
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.perfect_matching import CompleteGraphMatcher
rng, levels = np.random.default_rng(0), (2, 3, 4, 5, 5, 5, 5, 5)
first = np.concatenate(([0], np.cumsum(levels)[:-1]))
codes = np.column_stack([f + rng.integers(0, k, 10_000) for f, k in zip(first, levels)])
block = rng.normal(size=(sum(levels), sum(levels)))
matcher = CompleteGraphMatcher()
found = [matcher.solve(OneHotScores(codes, c * (block + block.T))) for c in (1.0, 1.02)]
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
gaps = [one.gap / one.weight for one in found]
print(json.dumps({"megabytes": int(status["VmHWM"].split()[0]) / 1024, "gaps": gaps}))
"""

FLOATS = 1e-11


def symmetric(values: np.ndarray) -> np.ndarray:
    return np.triu(values, 1) + np.triu(values, 1).T


def survey(n: int, levels: tuple[int, ...], *, answers: int = 0, weights: int = 0) -> OneHotScores:
    """Random answers and random distance and pair weights, as one-hot codes."""
    rng_answers, rng_weights = np.random.default_rng(answers), np.random.default_rng(weights)
    firsts = np.concatenate(([0], np.cumsum(levels)))
    codes = np.column_stack(
        [first + rng_answers.integers(0, k, n) for first, k in zip(firsts, levels, strict=False)]
    )
    block = np.zeros((firsts[-1], firsts[-1]))
    for first, k in zip(firsts, levels, strict=False):
        own = symmetric(rng_weights.normal(size=(k, k))) + np.diag(rng_weights.normal(size=k))
        own += rng_weights.normal() * np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
        block[first : first + k, first : first + k] = own
    return OneHotScores(codes, block)


def sparse_optimum(scores: np.ndarray) -> float:
    heads, tails = np.nonzero(np.triu(scores > -np.inf, 1))
    edges = np.column_stack((heads, tails))
    return max_weight_matching(len(scores), edges, scores[heads, tails]).weight


def check_perfect(partner: np.ndarray) -> None:
    nodes = np.arange(len(partner))
    assert (partner[partner] == nodes).all()
    assert (partner != nodes).all()


@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        n = 2 * int(rng.integers(1, 7))
        scores = symmetric(rng.integers(-4, 5, (n, n)).astype(float))
        if rng.random() < 0.5:
            scores = symmetric(rng.normal(size=(n, n)))
        if rng.random() < 0.4:
            scores[symmetric(rng.random((n, n))) > rng.uniform(0.2, 1)] = -np.inf
        edges = [(i, j) for i in range(n) for j in range(i) if scores[i, j] > -np.inf]
        best = best_weight(n, edges, [scores[edge] for edge in edges], perfect=True)
        try:
            found = CompleteGraphMatcher().solve(scores)
        except InfeasibleError as error:
            assert best == -np.inf
            removed = list(error.deficient_set)
            assert count_odd_components(n, edges, removed) > len(removed)
            continue
        check_perfect(found.partner)
        assert found.weight == pytest.approx(best, abs=FLOATS)
        assert 0 <= found.upper_bound - found.weight <= FLOATS


FAMILIES = {
    "uniform": lambda n: symmetric(np.random.default_rng(0).random((n, n))),
    "survey": lambda n: survey(n, (2, 2, *(5,) * 12)).rows(0, n),
    "tied": lambda n: survey(n, (2, 3)).rows(0, n),
    "few integers": lambda n: symmetric(np.random.default_rng(1).integers(0, 3, (n, n)) * 1.0),
    "all equal": lambda n: np.full((n, n), -2.5),
    "two camps": lambda n: np.where(np.add.outer(np.arange(n), np.arange(n)) % 2 == 1, 0.0, 1.0),
    "node effects": lambda n: (
        np.add.outer(np.arange(n) * 10.0, np.arange(n) * 10.0)
        + symmetric(np.random.default_rng(2).random((n, n)))
    ),
    "distances": lambda n: -np.abs(np.subtract.outer(np.arange(n) ** 1.5, np.arange(n) ** 1.5)),
    "sparse": lambda n: np.where(
        symmetric(np.random.default_rng(3).random((n, n))) > 0.7,
        symmetric(np.random.default_rng(4).random((n, n))),
        -np.inf,
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [30, 120])
def test_it_agrees_with_the_sparse_oracle(family: str, n: int) -> None:
    scores = FAMILIES[family](n)
    found = CompleteGraphMatcher().solve(scores)
    check_perfect(found.partner)
    assert found.weight == pytest.approx(sparse_optimum(scores), rel=1e-12)
    assert found.gap <= 1e-11 * max(1.0, abs(found.weight))


@pytest.mark.parametrize("family", ["uniform", "survey", "tied", "distances"])
def test_a_warm_start_changes_nothing_but_the_time(family: str) -> None:
    n = 200
    scores = FAMILIES[family](n)
    step = symmetric(np.random.default_rng(9).normal(size=(n, n)))
    warm = CompleteGraphMatcher()
    for k in range(4):
        moved = scores + 0.3 * k * step
        found = warm.solve(moved)
        cold = CompleteGraphMatcher().solve(moved)
        assert found.weight == pytest.approx(cold.weight, rel=1e-12)
        assert found.gap <= 1e-11 * max(1.0, abs(found.weight))


def test_a_matcher_may_change_its_size_and_its_scale() -> None:
    matcher = CompleteGraphMatcher()
    for n, factor in ((20, 1.0), (40, 1e9), (40, 1e-9), (20, 1e-300), (20, 1e250)):
        scores = factor * symmetric(np.random.default_rng(n).normal(size=(n, n)))
        best = factor * sparse_optimum(scores / factor)
        assert matcher.solve(scores).weight == pytest.approx(best, rel=1e-12)


def test_massive_ties_cost_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates that are copies of one node used to take six rounds here, cold and warm."""
    honest, rounds = module.solve_perfect_matching, []

    def counted(*arguments):  # type: ignore[no-untyped-def]
        rounds[-1] += 1
        return honest(*arguments)

    monkeypatch.setattr(module, "solve_perfect_matching", counted)
    matcher = CompleteGraphMatcher()
    first = survey(2500, (2, 5, 5, 5))
    for weights in range(1, 4):
        rounds.append(0)
        other = survey(2500, (2, 5, 5, 5), weights=weights)
        matcher.solve(OneHotScores(first.codes, 0.98 * first.block + 0.02 * other.block))
    assert max(rounds) <= 5
    assert sum(rounds) <= 12


def test_duals_are_carried_from_call_to_call(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher, scores = CompleteGraphMatcher(), survey(200, (3, 4, 5))
    cold = matcher.solve(scores)
    monkeypatch.setattr(module, "_sweep", lambda *arguments: pytest.fail("started from nothing"))
    warm = matcher.solve(OneHotScores(scores.codes, 1.01 * scores.block))
    assert warm.weight == pytest.approx(1.01 * cold.weight)


def test_the_bound_covers_the_rounding_of_every_question() -> None:
    """Fourteen entries that all round down move a score by more than one rounding."""
    rows = score_rows.OneHotRows(OneHotScores(np.arange(14)[np.newaxis].repeat(4, 0), np.eye(14)))
    unit = 2.0 ** (1 - rows.exponent)
    block = np.eye(14) * (1 + 0.48 * unit)
    scores = OneHotScores(np.arange(14)[np.newaxis].repeat(4, 0), block)
    found = CompleteGraphMatcher().solve(scores)
    optimum = 28 * (1 + Fraction(block[0, 0] - 1))
    assert Fraction(found.upper_bound) >= optimum


def test_memory_of_rows_made_on_demand_does_not_grow_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A column of best reaches was kept for every block of rows: 5 GB at 50,000 students."""
    monkeypatch.setattr(score_rows, "DENSE_BYTES", 0)
    monkeypatch.setattr(score_rows, "BLOCK_ENTRIES", 1)
    scores = survey(2000, (2, 5, 5, 5))
    CompleteGraphMatcher().solve(survey(20, (2, 5)))  # compiles
    tracemalloc.start()
    try:
        CompleteGraphMatcher().solve(scores)
        assert tracemalloc.get_traced_memory()[1] < 12e6
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_ten_thousand_students_fit_in_two_gigabytes() -> None:
    """Cold and warm; VmHWM is the high-water mark of the program's own address space."""
    ended = subprocess.run(
        [sys.executable, "-c", TEN_THOUSAND], capture_output=True, text=True, check=True
    )
    found = json.loads(ended.stdout)
    assert found["megabytes"] < 2000
    assert max(found["gaps"]) < 1e-9


def test_exact_and_cautious_pricing_find_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 2^51 the test in floats is exact; beyond, it errs towards suspicion."""
    scores = survey(1000, (2, 5, 5))
    exact = CompleteGraphMatcher().solve(scores)
    monkeypatch.setattr(module, "EXACT_BELOW", 0.0)
    cautious = CompleteGraphMatcher().solve(scores)
    assert np.array_equal(exact.partner, cautious.partner)
    assert exact.upper_bound == cautious.upper_bound


def test_relabelling_and_node_shifts_move_the_optimum_as_they_should() -> None:
    rng = np.random.default_rng(3)
    scores = symmetric(rng.integers(-50, 50, (60, 60)).astype(float))
    best = CompleteGraphMatcher().solve(scores).weight
    order = rng.permutation(60)
    assert CompleteGraphMatcher().solve(scores[np.ix_(order, order)]).weight == best
    shift = rng.integers(-1000, 1000, 60).astype(float)
    shifted = scores + shift[:, np.newaxis] + shift
    assert CompleteGraphMatcher().solve(shifted).weight == best + shift.sum()


@pytest.mark.parametrize("levels", [(2, 2, *(5,) * 12), (2, 3), (2,), (300, 2, 20)])
@pytest.mark.parametrize("n", [2, 50, 700])
def test_one_hot_scores_agree_with_their_dense_form(levels: tuple[int, ...], n: int) -> None:
    scores = survey(n, levels)
    dense = scores.rows(0, n)
    lazily = CompleteGraphMatcher().solve(scores)
    at_once = CompleteGraphMatcher().solve(dense)
    check_perfect(lazily.partner)
    assert lazily.weight == pytest.approx(at_once.weight, rel=1e-12)
    assert lazily.gap <= 1e-10 * max(1.0, abs(lazily.weight))


def test_products_made_block_by_block_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = survey(300, (2, 5, 5, 5, 5))
    at_once = CompleteGraphMatcher().solve(scores)
    monkeypatch.setattr(score_rows, "DENSE_BYTES", 0)
    monkeypatch.setattr(score_rows, "BLOCK_ENTRIES", 300 * 7)
    lazily = CompleteGraphMatcher().solve(scores)
    assert (lazily.weight, lazily.upper_bound) == (at_once.weight, at_once.upper_bound)
    assert np.array_equal(lazily.partner, at_once.partner)


def test_a_warm_start_from_one_hot_scores_reuses_its_matrix() -> None:
    matcher = CompleteGraphMatcher()
    for weights in range(3):
        scores = survey(60, (2, 5, 5), weights=weights)
        best = sparse_optimum(scores.rows(0, 60))
        assert matcher.solve(scores).weight == pytest.approx(best, rel=1e-12)


def test_one_hot_rows_ignore_what_lies_outside_a_questions_own_block() -> None:
    honest = survey(30, (2, 3))
    block = honest.block.copy()
    block[:2, 2:] = block[2:, :2].T
    block[:2, 2:], block[2:, :2] = 7.0, 7.0
    noisy = OneHotScores(honest.codes, block)
    pairs = np.array([0, 3, 5]), np.array([1, 9, 7])
    assert np.array_equal(noisy.rows(0, 30), honest.rows(0, 30))
    assert np.allclose(noisy.of_pairs(*pairs), honest.rows(0, 30)[pairs])


@pytest.mark.parametrize(
    ("codes", "block", "sentence"),
    [
        (np.zeros((2, 1), dtype=int), np.zeros((1, 2)), "square"),
        (np.zeros((2, 1)), np.zeros((1, 1)), "integers"),
        (np.full((2, 1), 3), np.zeros((1, 1)), "expected 0"),
        (np.zeros((2, 1), dtype=int), np.array([[0.0, 1.0], [2.0, 0.0]]), "symmetric"),
        (np.zeros((2, 1), dtype=int), np.array([[np.inf]]), "finite"),
    ],
)
def test_malformed_one_hot_scores(codes: np.ndarray, block: np.ndarray, sentence: str) -> None:
    with pytest.raises(InvalidProblemError, match=sentence):
        OneHotScores(codes, block)


def test_two_odd_groups_are_infeasible_with_an_empty_deficient_set() -> None:
    scores = np.zeros((10, 10))
    scores[:5, 5:] = scores[5:, :5] = -np.inf
    with pytest.raises(InfeasibleError) as caught:
        CompleteGraphMatcher().solve(scores)
    assert caught.value.deficient_set == ()


def test_a_crowd_that_only_accepts_a_few_names_the_few() -> None:
    n, few = 40, 15
    scores = np.full((n, n), -np.inf)
    scores[:few] = 1.0
    scores[:, :few] = 1.0
    with pytest.raises(InfeasibleError) as caught:
        CompleteGraphMatcher().solve(scores)
    assert caught.value.deficient_set == tuple(range(few))


@pytest.mark.parametrize("pair", [(0, 2), (2, 0), (0, 1), (9, 4)])
def test_a_pair_that_only_one_triangle_forbids_is_refused(pair: tuple[int, int]) -> None:
    scores = np.random.default_rng(0).normal(size=(10, 10))
    scores = scores + scores.T
    scores[pair] = -np.inf
    with pytest.raises(InvalidProblemError, match="symmetric"):
        CompleteGraphMatcher().solve(scores)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("n", [4, 1000])
def test_nan_and_plus_infinity_are_refused(bad: float, n: int) -> None:
    scores = np.zeros((n, n))
    scores[1, n - 1] = scores[n - 1, 1] = bad
    with pytest.raises(InvalidProblemError, match="finite"):
        CompleteGraphMatcher().solve(scores)


def test_the_diagonal_is_ignored_whatever_it_holds() -> None:
    scores = symmetric(np.random.default_rng(0).random((20, 20)))
    best = CompleteGraphMatcher().solve(scores).weight
    for value in (np.nan, np.inf, -np.inf, 1e300):
        np.fill_diagonal(scores, value)
        assert CompleteGraphMatcher().solve(scores).weight == best


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        (np.zeros((2, 3)), "square"),
        (np.zeros(4), "shape"),
        (np.arange(16.0).reshape(4, 4), "symmetric"),
    ],
)
def test_malformed_scores(scores: np.ndarray, sentence: str) -> None:
    with pytest.raises(InvalidProblemError, match=sentence):
        CompleteGraphMatcher().solve(scores)


def test_an_odd_number_of_nodes_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="odd"):
        CompleteGraphMatcher().solve(np.zeros((3, 3)))


@pytest.mark.parametrize("step", [2, -2, 2**30, -(2**30)])
def test_corrupted_duals_are_rejected(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    honest = module.solve_perfect_matching

    def corrupted(start, neighbour, cost, dual, mate):  # type: ignore[no-untyped-def]
        answer = honest(start, neighbour, cost, dual, mate)
        dual[7] += step
        return answer

    monkeypatch.setattr(module, "solve_perfect_matching", corrupted)
    with pytest.raises(CertificateError):
        CompleteGraphMatcher().solve(symmetric(np.random.default_rng(0).random((40, 40))))


def test_a_worse_matching_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = module.solve_perfect_matching

    def corrupted(start, neighbour, cost, dual, mate):  # type: ignore[no-untyped-def]
        answer = honest(start, neighbour, cost, dual, mate)
        mate[:] = np.arange(len(mate)) ^ 1
        return answer

    monkeypatch.setattr(module, "solve_perfect_matching", corrupted)
    with pytest.raises(CertificateError):
        CompleteGraphMatcher().solve(symmetric(np.random.default_rng(0).random((40, 40))))


def test_partners_that_disagree_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = module.solve_perfect_matching

    def corrupted(start, neighbour, cost, dual, mate):  # type: ignore[no-untyped-def]
        answer = honest(start, neighbour, cost, dual, mate)
        mate[0] = 0
        return answer

    monkeypatch.setattr(module, "solve_perfect_matching", corrupted)
    with pytest.raises(CertificateError, match="not a perfect matching"):
        CompleteGraphMatcher().solve(symmetric(np.random.default_rng(0).random((40, 40))))


def test_the_extreme_point_is_the_matching() -> None:
    scores = symmetric(np.random.default_rng(0).random((30, 30)))
    point = CompleteGraphMatcher().compute_extreme_point(scores)
    found = CompleteGraphMatcher().solve(scores)
    assert (point.value, point.upper_bound) == (found.weight, found.upper_bound)
    assert np.array_equal(point.vertex.places % len(found.partner), found.partner)
    assert [tuple(pair) for pair in found.pairs] == sorted(
        (int(i), int(j)) for i, j in enumerate(found.partner) if i < j
    )
    assert not found.partner.flags.writeable
