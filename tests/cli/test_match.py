"""The match verb and what the dispatcher gives to every verb: exit codes, one line, JSON."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.json_line import to_json_line
from engine.cli.main import main

PATH4 = "p edge 4 3\ne 1 2 2\ne 2 3 5\ne 3 4 2\n"


@pytest.fixture
def path4(tmp_path: Path) -> str:
    file = tmp_path / "path4.edge"
    file.write_text(PATH4)
    return str(file)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout, stderr."""
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def test_perfect(capsys: pytest.CaptureFixture[str], path4: str) -> None:
    assert run(capsys, "match", path4) == (0, ["s 4", "m 1 2", "m 3 4"], "")


def test_any_with_json_as_the_last_line(capsys: pytest.CaptureFixture[str], path4: str) -> None:
    code, lines, errors = run(capsys, "match", path4, "--kind", "any", "--json", "--seed", "3")
    assert (code, errors) == (0, "")
    assert lines[:-1] == ["s 5", "m 2 3"]
    result = json.loads(lines[-1])
    assert set(result) == {"weight", "upper_bound", "n_matched", "seconds", "pairs"}
    assert result["pairs"] == [[2, 3]]
    assert (result["weight"], result["upper_bound"], result["n_matched"]) == (5, 5, 1)


def test_minimize(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "square.csv"
    file.write_text("a,b,1.5\nb,c,3\nc,d,1\nd,a,-3\n")
    code, lines, _ = run(capsys, "match", str(file), "--minimize", "--json")
    assert code == 0
    assert lines[:-1] == ["s 0", "m b c", "m d a"]
    result = json.loads(lines[-1])
    assert (result["weight"], result["upper_bound"], result["lower_bound"]) == (0, 0, 0)


def test_b_matching(capsys: pytest.CaptureFixture[str], path4: str, tmp_path: Path) -> None:
    degrees = tmp_path / "degrees.csv"
    degrees.write_text("1,1\n2,2\n3,1\n4,1\n")
    words = ("match", path4, "--kind", "b", "--degrees", str(degrees))
    assert run(capsys, *words)[1] == ["s 7", "m 1 2", "m 2 3"]
    code, _, errors = run(capsys, *words, "--exact-degrees")
    assert code == 1
    assert errors.count("\n") == 1


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], path4: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cli.match.max_weight_matching", lambda *_: pytest.fail("worked"))
    code, _, errors = run(capsys, "match", path4, "--out", f"{path4}.absent/pairs")
    assert code == 2
    assert "folder does not exist" in errors


def test_out_and_standard_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(PATH4))
    target = tmp_path / "out.txt"
    assert run(capsys, "match", "-", "--out", str(target)) == (0, [], "")
    assert target.read_text() == "s 4\nm 1 2\nm 3 4\n"


def test_infeasible_names_the_nodes_as_the_file_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "star.edge"
    file.write_text("p edge 4 3\ne 2 1 1\ne 2 3 1\ne 2 4 1\n")
    code, lines, errors = run(capsys, "match", str(file), "--json")
    assert code == 1
    assert errors.startswith("error: no perfect matching exists")
    assert errors.endswith("Removed: 2.\n")
    assert json.loads(lines[-1])["deficient_set"] == [2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "VERB"),
        (("sing",), "invalid choice: 'sing'"),
        (("match",), "FILE"),
        (("match", "absent.edge"), "absent.edge: no such file or directory."),
        (("match", "."), "directory"),
        (("match", "x", "--kind", "some"), "invalid choice: 'some'"),
        (("match", "x", "--kind", "b"), "--kind b needs --degrees"),
        (("match", "x", "--degrees", "y"), "belong to --kind b"),
        (("match", "-", "--kind", "b", "--degrees", "-"), "standard input"),
        (("match", "x", "--loud"), "--loud"),
        (("match", "x", "--seed", "-1"), "--seed"),
        (("match", "x", "--seed"), "--seed"),
    ],
)
def test_bad_calls_give_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    code, lines, errors = run(capsys, *words)
    assert (code, lines) == (2, [])
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert sentence in errors


def test_bad_files_name_the_file_and_the_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("a,b,1\na,c,x\n")
    code, _, errors = run(capsys, "match", str(file))
    assert code == 2
    assert "bad.csv: line 2: expected a finite weight, received 'x'." in errors


def test_help_lists_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert all(verb in out for verb in ("match", "roommates", "segment", "uai", "--json"))


def test_a_closed_pipe_is_no_traceback(path4: str) -> None:
    command = f"{sys.executable} -m engine match {path4} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_json_has_no_nan_and_one_line() -> None:
    line = to_json_line(
        {"a": float("nan"), "b": [1.5, float("inf")], "path": Path("x"), "n": "é\n"}
    )
    assert "\n" not in line
    assert json.loads(line) == {"a": None, "b": [1.5, None], "path": "x", "n": "é\n"}
