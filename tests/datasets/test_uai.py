"""UAI files: round trips, the real collection, and malformed files refused with their place."""

import csv
import gzip

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.datasets import uai
from engine.datasets.uai import (
    format_uai_marginals,
    read_uai,
    read_uai_evidence,
    write_uai,
)
from engine.graphs.factor_graph import Factor, FactorGraph
from tests.graphs.test_factor_graph import third_order
from tests.reference.uai_answers import read_uai_log_partition, read_uai_marginals
from tests.shared_data import shared_data

GOOD = "MARKOV\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n 0.5 1\n6\n 1 2 3 4 0 6\n"


@pytest.mark.parametrize("name", ["model.uai", "model.uai.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    graph = third_order(0, 0.2)
    write_uai(tmp_path / name, graph)
    again = read_uai(tmp_path / name)
    np.testing.assert_array_equal(again.cardinalities, graph.cardinalities)
    for one, two in zip(graph.factors, again.factors, strict=True):
        assert one.variables == two.variables
        np.testing.assert_allclose(one.table, two.table, rtol=1e-14)


def test_the_last_variable_moves_fastest_and_zeros_are_impossible(tmp_path):
    path = tmp_path / "model.uai"
    path.write_text(GOOD)
    graph = read_uai(path)
    assert graph.factors[1].table[0, 2] == pytest.approx(np.log(3))
    assert graph.factors[1].table[1, 1] == -np.inf


def test_zeros_may_be_written_in_any_way(tmp_path):
    path = tmp_path / "model.uai"
    path.write_text("MARKOV 1 5 1 1 0 5 0 0.00 -0 0e7 1e-300")
    table = read_uai(path).factors[0].table
    assert np.isneginf(table).tolist() == [True, True, True, True, False]


def test_a_bayes_network_is_read_as_the_product_of_its_tables(tmp_path):
    tables = "2 2 2 2 1 0 2 0 1 2 0.3 0.7 4 0.9 0.1 0.2 0.8"
    for kind in ("BAYES", "MARKOV"):
        (tmp_path / kind).write_text(f"{kind} {tables}")
    bayes, markov = (read_uai(tmp_path / kind) for kind in ("BAYES", "MARKOV"))
    for one, two in zip(bayes.factors, markov.factors, strict=True):
        np.testing.assert_array_equal(one.table, two.table)
    scores = [bayes.score(np.array(x)) for x in np.ndindex(2, 2)]
    assert np.logaddexp.reduce(scores) == pytest.approx(0.0, abs=1e-12)  # probabilities


@pytest.mark.parametrize(("entry", "words"), [(-746.0, "below -745"), (710.0, "above 709")])
def test_entries_that_would_read_as_others_are_not_written(tmp_path, entry, words):
    """The small ones were written as 0: impossible, although they are not."""
    graph = FactorGraph(np.array([2]), (Factor((0,), np.array([0.0, entry])),))
    with pytest.raises(InvalidProblemError, match=words):
        write_uai(tmp_path / "model.uai", graph)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "ends where MARKOV or BAYES"),
        ("HELLO 1", "expected MARKOV or BAYES, received 'HELLO'"),
        ("MARKOV x", "expected the number of variables, received 'x'"),
        ("MARKOV 0", "number of variables must be 1 or more, received 0"),
        ("MARKOV 999999999 2", "variables is 999999999, and the file is too short for that"),
        ("MARKOV 1 2 9", "number of factors is 9, and the file is too short for that"),
        ("MARKOV 1 0 1", "number of states must be 1 to 20000000, received 0"),
        ("MARKOV 1 1000000000000000000000 0", "number of states must be 1 to 20000000"),
        ("MARKOV 1 2 1 1 7 2 1 1", "variable of a factor must be 0 to 0, received 7"),
        ("MARKOV 2 2 2 1 2 0 0 4 1 1 1 1", "names a variable twice"),
        ("MARKOV 1 2 1 1 0 3 1 1 1", "needs 2 entries, 3 are stated"),
        ("MARKOV 1 2 1 1 0 2 1", "ends where a table entry"),
        ("MARKOV 1 2 1 1 0 2 1 two", "received 'two'"),
        ("MARKOV 1 2 1 1 0 2 1 1_0", "word 9: expected a number, received '1_0'"),
        ("MARKOV 1 1_0 1 1 0 2 1 10", "word 3: expected a number, received '1_0'"),
        ("MARKOV 1 2 1 1 0 2 1 -2", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 nan", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 1e-400", "word 9: '1e-400' is not zero, but too small"),
        ("MARKOV 1 2 1 1 0 2 1 1 5", "goes on after the last table"),
        ("MARKOV 3 99999 99999 99999 1 3 0 1 2 999970000299999 1", "too large"),
    ],
)
def test_malformed_files_are_refused_in_one_sentence(tmp_path, text, words):
    path = tmp_path / "bad.uai"
    path.write_text(text)
    with pytest.raises(InvalidProblemError, match=words) as caught:
        read_uai(path)
    assert str(caught.value).startswith("bad.uai, word ")
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_and_lines_of_other_systems_are_passed_over(tmp_path):
    path = tmp_path / "model.uai"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_uai(path).n_variables == 2
    (tmp_path / "plain.uai").write_text(GOOD)
    assert read_uai(tmp_path / "plain.uai").n_variables == 2


def test_files_that_are_no_text_are_refused(tmp_path):
    for name, data in (
        ("a.uai", bytes(range(256))),
        ("b.uai.gz", gzip.compress(GOOD.encode(), mtime=0)[:-9]),
        ("c.uai.gz", b"\x1f\x8b" + b"garbage" * 5),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidProblemError, match=name):
            read_uai(tmp_path / name)
    with pytest.raises(InvalidProblemError, match="no such file"):
        read_uai(tmp_path / "absent.uai")


def test_marginals_are_written_in_the_format_that_is_read(tmp_path):
    path = tmp_path / "x.MAR"
    vectors = [np.array([0.25, 0.75]), np.array([0.1, 0.2, 0.7])]
    path.write_text(format_uai_marginals(vectors))
    for one, two in zip(vectors, read_uai_marginals(path), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11)


def test_every_uai_model_and_some_of_the_proteins_are_read():
    for path in sorted(shared_data("uai").glob("*.uai")):
        graph = read_uai(path)
        assert len(read_uai_marginals(path.with_name(path.name + ".MAR"))) == graph.n_variables
        assert np.isfinite(read_uai_log_partition(path.with_name(path.name + ".PR")))
    folder = shared_data("protein_sidechain")
    with (folder / "index.csv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    for path in sorted(folder.glob("*.gz"))[:6]:
        graph = read_uai(path)
        row = rows[path.name]
        assert graph.n_variables == int(row["n"])
        assert int(graph.cardinalities.max()) == int(row["maxcard"])
        zeros = sum(int(np.isneginf(factor.table).sum()) for factor in graph.factors)
        assert zeros == int(row["zeros"])


@pytest.mark.parametrize(
    "text",
    ["2\n1 0 1 1 0 0\n", "1 0 1 1 0 0", "2 1 0 1 1 0 0", "2\n1 0 1\n1 0 0", "1 0 1\n1 0 0\n"],
)
def test_two_samples_are_named_however_they_stand_in_lines(tmp_path, text):
    path = tmp_path / "model.evid"
    path.write_text(text)
    with pytest.raises(InvalidProblemError, match=r"holds 2 sets of evidence \(samples\)"):
        read_uai_evidence(path, third_order(1, 0.0))


@pytest.mark.parametrize("text", ["1 0 1", "1\n1 0 1\n", "1 1 0 1"])
def test_one_sample_is_read_with_its_number_and_without(tmp_path, text):
    path = tmp_path / "model.evid"
    path.write_text(text)
    assert read_uai_evidence(path, third_order(1, 0.0)) == {0: 1}


@pytest.mark.parametrize("at_once", [1, 3, 1_000_000])
def test_the_same_words_are_read_however_many_are_split_off_at_once(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(uai, "WORDS_AT_ONCE", at_once)
    path = tmp_path / "model.uai"
    path.write_text(GOOD)
    graph = read_uai(path)
    np.testing.assert_allclose(np.exp(graph.factors[1].table), [[1, 2, 3], [4, 0, 6]])
    with path.open("rb") as stream:
        assert read_uai(stream).n_variables == 2
    for bad, place in (("4 x 6", 19), ("4 1e-400 6", 19), ("4 0", 20), ("4 1_0 6", 19)):
        path.write_text(GOOD.replace("4 0 6", bad))
        with pytest.raises(InvalidProblemError, match=f"word {place}:"):
            read_uai(path)
