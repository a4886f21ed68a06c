"""The uai verb on models small enough to see through: forests, single nodes, impossible ones."""

import numpy as np
import pytest

from engine.cli.main import main
from engine.datasets.uai import write_uai
from engine.graphs.factor_graph import Factor, FactorGraph
from tests.cli.test_uai import run
from tests.reference.pairwise_models import as_factor_graph, random_model
from tests.shared_data import shared_data

MAP_METHODS = ("roof-duality", "lp", "expansion", "exact")
MARGINAL_METHODS = ("trw", "bp", "mean-field", "frank-wolfe", "exact")


@pytest.mark.parametrize("method", ["trw", "bp"])
def test_messages_are_exact_on_forests(capsys, tmp_path, method):
    rng = np.random.default_rng(0)
    pairs = [(0, 1), (1, 2), (1, 3), (4, 5)]
    path = tmp_path / "forest.uai"
    factors = tuple(Factor(pair, rng.normal(size=(2, 2))) for pair in pairs)
    write_uai(path, FactorGraph(np.full(7, 2), factors))
    exact = run(capsys, "pr", str(path), "--method", "exact")["value"]
    answer = run(capsys, "pr", str(path), "--method", method)
    assert answer["exact"]
    assert answer["converged"]
    assert answer["value"] == pytest.approx(exact)
    assert answer["bound"] == pytest.approx(exact)


def test_a_bayes_network_sums_to_one(capsys, tmp_path):
    path = tmp_path / "bayes.uai"
    path.write_text("BAYES 2 2 2 2 1 0 2 0 1 2 0.3 0.7 4 0.9 0.1 0.2 0.8")
    answer = run(capsys, "mar", str(path), "--method", "exact")
    assert answer["value"] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(answer["marginals"], [[0.3, 0.7], [0.41, 0.59]])


@pytest.mark.parametrize("method", MAP_METHODS)
def test_the_best_label_of_a_single_variable(capsys, tmp_path, method):
    path = tmp_path / "one.uai"
    path.write_text("MARKOV 1 2 1 1 0 2 1 3")
    answer = run(capsys, "map", str(path), "--method", method)
    assert answer["labels"] == [1]
    assert answer["exact"]
    assert answer["value"] == pytest.approx(np.log(3))


@pytest.mark.parametrize("method", MARGINAL_METHODS)
def test_the_sum_over_a_single_variable(capsys, tmp_path, method):
    path = tmp_path / "one.uai"
    path.write_text("MARKOV 1 2 1 1 0 2 1 3")
    answer = run(capsys, "mar", str(path), "--method", method)
    assert answer["value"] == pytest.approx(np.log10(4), abs=1e-3)
    np.testing.assert_allclose(answer["marginals"], [[0.25, 0.75]], atol=0.02)


IMPOSSIBLE = [
    "MARKOV 1 2 1 0 1 0",  # a factor without variables
    "MARKOV 2 2 2 1 2 0 1 4 0 0 0 0",
    # Three neighbours of two colours: messages settled at log10 2 and called it converged.
    "MARKOV 3 2 2 2 3 2 0 1 2 0 2 2 1 2 4 0 1 1 0 4 0 1 1 0 4 0 1 1 0",
]


@pytest.mark.parametrize("text", IMPOSSIBLE)
@pytest.mark.parametrize(
    ("task", "method"),
    [("map", m) for m in MAP_METHODS] + [(t, m) for t in ("pr", "mar") for m in MARGINAL_METHODS],
)
def test_impossible_models_fail_by_every_method(capsys, tmp_path, task, method, text):
    """Some printed null, or marginals of a model that has none, and ended as if all were well."""
    path = tmp_path / "model.uai"
    path.write_text(text)
    answer = run(capsys, task, str(path), "--method", method)
    assert answer["code"] == 1
    assert "probability" in answer["error"]


SUDOKU = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."


@pytest.fixture
def sudoku(tmp_path):
    """A model of all sudokus, and evidence that has one solution."""
    cells = [(k // 9, k % 9, k // 27, k % 9 // 3) for k in range(81)]
    pairs = [
        (a, b)
        for b, (row, column, *box) in enumerate(cells)
        for a, (other_row, other_column, *other_box) in enumerate(cells[:b])
        if row == other_row or column == other_column or box == other_box
    ]
    unlike = np.where(np.eye(9) > 0, -np.inf, 0.0)
    model, evidence = tmp_path / "sudoku.uai", tmp_path / "sudoku.uai.evid"
    write_uai(model, FactorGraph(np.full(81, 9), tuple(Factor(pair, unlike) for pair in pairs)))
    seen = [f"{k} {int(digit) - 1}" for k, digit in enumerate(SUDOKU) if digit != "."]
    evidence.write_text(f"1\n{len(seen)} {' '.join(seen)}\n")
    return model, evidence, pairs


def test_a_puzzle_of_one_solution_is_solved(capsys, sudoku):
    """The method itself came to no end, and its proven answer read as not converged."""
    model, evidence, pairs = sudoku
    answer = run(capsys, "map", str(model), "--method", "lp", "--evidence", str(evidence))
    assert (answer["value"], answer["bound"]) == (0.0, 0.0)
    assert answer["exact"]
    assert answer["converged"]
    labels = answer["labels"]
    assert all(labels[a] != labels[b] for a, b in pairs)
    assert all(d in (".", str(x + 1)) for d, x in zip(SUDOKU, labels, strict=True))
    by_means = run(capsys, "pr", str(model), "--method", "mean-field", "--evidence", str(evidence))
    assert by_means["bound"] == pytest.approx(0.0, abs=1e-9)


def test_a_puzzle_without_solution_is_refused(capsys, sudoku):
    model, evidence, _ = sudoku
    evidence.write_text("2 0 7 1 7\n")
    for task, method in (("map", "lp"), ("pr", "trw"), ("pr", "bp"), ("mar", "mean-field")):
        words = (task, str(model), "--method", method, "--evidence", str(evidence))
        assert run(capsys, *words)["code"] == 1, words


def test_a_variable_of_one_state_does_not_keep_others_from_the_cut(capsys, tmp_path):
    path = tmp_path / "model.uai"
    path.write_text("MARKOV 3 1 2 2 2 2 0 1 2 1 2 2 1 2 4 3 1 1 3")
    for method in ((), ("--method", "roof-duality")):
        answer = run(capsys, "map", str(path), *method)
        assert answer["method"] == "roof-duality"
        assert answer["exact"]
        assert answer["labels"] == [0, 1, 1]
        assert answer["value"] == pytest.approx(np.log(6))


def test_expansion_ends_with_its_time(capsys, tmp_path):
    path = tmp_path / "model.uai"
    write_uai(path, as_factor_graph(random_model(1, 8, density=1.0, scale=3.0)))
    answer = run(capsys, "map", str(path), "--method", "expansion", "--max-seconds", "0")
    assert answer["code"] == 0
    assert not answer["converged"]
    assert answer["guarantee"].startswith("None")
    best = run(capsys, "map", str(path), "--method", "exact")
    assert answer["value"] <= best["value"] <= answer["bound"]


def test_frank_wolfe_bounds_a_protein(capsys):
    """Large enough for the bounded oracle, and with impossible pairs."""
    path = str(shared_data("protein_sidechain") / "pdb1fxd.uai.gz")
    best = run(capsys, "map", path)["value"] / np.log(10)
    answer = run(capsys, "pr", path, "--method", "frank-wolfe", "--max-iterations", "3")
    assert answer["code"] == 0
    assert answer["bound"] >= best
    assert not answer["exact"]


def test_marginals_that_take_longer_to_write_than_allowed_are_refused_at_once(capsys, tmp_path):
    """On a busy machine 20 million states took 45 seconds under --max-seconds 10."""
    path = tmp_path / "wide.uai"
    path.write_text("MARKOV 1 20000000 0")
    assert main(["uai", "mar", str(path), "--max-seconds", "0.2"]) == 2
    error = capsys.readouterr().err
    assert "its 20,000,000 marginals take about" in error
    assert "ask for map or pr" in error


def test_reading_counts_against_the_limit(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("engine.datasets.uai.WORDS_AT_ONCE", 10)
    path = tmp_path / "long.uai"
    path.write_text("MARKOV 1 30 1 1 0 30 " + "1 " * 30)
    assert main(["uai", "pr", str(path), "--max-seconds", "0"]) == 2
    assert "reading it takes more than the 0 seconds of --max-seconds" in capsys.readouterr().err
    assert main(["uai", "pr", str(path), "--max-seconds", "60"]) == 0
