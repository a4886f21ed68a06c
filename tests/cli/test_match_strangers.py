"""Files as strangers bring them: the same bytes give the same answer from every door."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.main import main

FILES: dict[str, tuple[str, list[str], list[str], list[list[str]]]] = {
    # text, options, lines that come out, pairs of --json
    "byte order mark": ("\ufeffa,b,3\na,c,5\n", [], ["s 5", "m a c"], [["a", "c"]]),
    "names with #": (
        "#1,#2,5\nx,y,1\n",
        [],
        ["s 6", "m #1 #2", "m x y"],
        [["#1", "#2"], ["x", "y"]],
    ),
    "names in quotes": (
        '# a comment\n"#1","say ""hi""",5\nx," y",1\n#another, one\n',
        [],
        ["s 6", 'm #1 "say ""hi"""', 'm x " y"'],
        [["#1", 'say "hi"'], ["x", " y"]],
    ),
    "a name on two lines": ('"a\nb",c,2\n', [], ["s 2", 'm "a', 'b" c'], [["a\nb", "c"]]),
    "names with spaces": (
        "New York,Los Angeles,5\n",
        [],
        ["s 5", 'm "New York" "Los Angeles"'],
        [["New York", "Los Angeles"]],
    ),
    "names that begin as DIMACS does": (
        "p 1,e 2,5\n",
        [],
        ["s 5", 'm "p 1" "e 2"'],
        [["p 1", "e 2"]],
    ),
    "Polish names": ("Łukasz,Ana,3\n", [], ["s 3", "m Łukasz Ana"], [["Łukasz", "Ana"]]),
    "a quote within": ('5" pipe,x,3\n', [], ["s 3", 'm "5"" pipe" x'], [['5" pipe', "x"]]),
    "whole numbers beyond 2^53": (
        f"a,b,{2**53}\nb,c,{2**53 + 1}\n",
        [],
        [f"s {2**53 + 1}", "m b c"],
        [["b", "c"]],
    ),
    "old Macintosh": ("a,b,3\ra,c,5\r", [], ["s 5", "m a c"], [["a", "c"]]),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    code = main(["match", *words, "--kind", "any", "--json"])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


@pytest.mark.parametrize("door", ["file", "standard input", "gzip"])
@pytest.mark.parametrize("name", FILES)
def test_each_file_from_each_door(
    name: str,
    door: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, options, lines, pairs = FILES[name]
    data = text.encode()
    path = tmp_path / "graph.csv"
    path.write_bytes(gzip.compress(data) if door == "gzip" else data)
    if door == "standard input":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="cp1252"))
    file = "-" if door == "standard input" else str(path)
    code, out, errors = run(capsys, file, *options)
    assert (code, errors) == (0, "")
    assert out[:-1] == lines
    assert json.loads(out[-1])["pairs"] == pairs


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,1_5\n", "line 1: expected a finite weight, received '1_5'"),
        ("a,b,٣\n", "line 1: expected a finite weight"),
        ("a,b,1e-400\n", "line 1: '1e-400' is not zero, but too small"),
        ("#a,b,3\na,c,2\n", "line 1: this is a comment, or an edge of the node '#a'"),
        ('"a,b,3\n', "line 1: a quote is not closed"),
        ('"a"b,c,3\n', "line 1: expected a comma after the quotes, received 'b,c,3'"),
    ],
)
def test_what_is_in_doubt_is_refused(
    text: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "graph.csv"
    path.write_text(text, encoding="utf-8")
    code, _, errors = run(capsys, str(path))
    assert code == 2
    assert words in errors


def test_a_console_of_another_encoding_gets_every_letter(tmp_path: Path) -> None:
    """It once said that the input was not UTF-8."""
    path = tmp_path / "graph.csv"
    path.write_text("Łukasz,Ana,3\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "engine", "match", str(path), "--kind", "any"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == "s 3\nm Łukasz Ana\n".encode()


def test_values_of_nodes_in_dimacs_are_read_and_checked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "graph.edge"
    path.write_text("c a comment\np edge 3 2\nn 1 0.5\nn 3 7\ne 1 2 4\ne 2 3 5\n")
    code, lines, _ = run(capsys, str(path))
    assert (code, lines[:-1]) == (0, ["s 5", "m 2 3"])
    wrong = {"n 4 1": "a node from 1 to 3", "n 1 x": "the value of a node", "n": "`n ID VALUE`"}
    for bad, words in wrong.items():
        path.write_text(f"p edge 3 1\n{bad}\ne 1 2 4\n")
        code, _, errors = run(capsys, str(path))
        assert code == 2
        assert "line 2: expected" in errors
        assert words in errors


def test_a_loop_of_a_b_matching_is_named_as_the_file_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It once was "edge 0 joins node 0 to itself" for node 1 on line 2."""
    path, degrees = tmp_path / "loop.edge", tmp_path / "degrees.csv"
    path.write_text("p edge 2 2\ne 1 1 3\ne 1 2 1\n")
    degrees.write_text("1,2\n2,1\n")
    code = main(["match", str(path), "--kind", "b", "--degrees", str(degrees)])
    assert code == 2
    assert "line 2: the edge joins node 1 to itself" in capsys.readouterr().err


def test_the_least_float_is_matched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, degrees = tmp_path / "least.edge", tmp_path / "degrees.csv"
    path.write_text("p edge 2 1\ne 1 2 5e-324\n")
    degrees.write_text("1,1\n2,1\n")
    assert main(["match", str(path), "--kind", "b", "--degrees", str(degrees)]) == 0
    assert capsys.readouterr().out == "s 5e-324\nm 1 2\n"


@pytest.mark.parametrize("text", ["p edge 0 0\n", "u,v,weight\n", "# nothing\nu,v,weight\n"])
@pytest.mark.parametrize("kind", ["any", "perfect"])
def test_no_edge_and_no_node_is_a_matching(
    text: str, kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "graph.csv"
    path.write_text(text)
    assert main(["match", str(path), "--kind", kind]) == 0
    assert capsys.readouterr().out == "s 0\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u;v;weight\na;b;1,5\n", "line 1: expected three values `u,v,weight`, received 1: "
         "it has semicolons; put commas between values."),
        ("a;b;1,5\n", "it has semicolons and a decimal comma; put commas between values, and a "
         "point in decimals."),
        ("a\tb\t2\n", "it has tabs; put commas between values."),
        ('a,b,"1,5"\n', "received '1,5'; write decimals with a point."),
    ],
)  # fmt: skip
def test_other_separators_are_named(text, reason, tmp_path, capsys) -> None:
    file = tmp_path / "graph.csv"
    file.write_text(text, encoding="utf-8")
    code, _, said = run(capsys, str(file))
    assert code == 2
    assert reason in said
