"""``python -m benchmarks``: what it lists, what it runs, and what it refuses."""

import importlib.util
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import HERE, describe, find_benchmarks, main


def test_it_lists_every_benchmark_with_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list"])
    lines = capsys.readouterr().out.splitlines()
    for (group, name), path in find_benchmarks().items():
        assert group in lines
        assert any(line.split()[:1] == [name] and describe(path) in line for line in lines), name


def test_it_lists_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", "hunts"])
    out = capsys.readouterr().out
    assert "years" in out
    assert "sandwich" not in out


def test_it_runs_a_benchmark_with_its_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    with pytest.raises(SystemExit) as ended:
        main(["hunts", "bounds", "--models", "3", "--seed", "5"])
    assert ended.value.code == 0
    assert "3 models, 0 false bounds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["hunt", "years"], "There is no group 'hunt'. Groups: .*hunts"),
        (["list", "hunt"], "There is no group 'hunt'"),
        (["hunts"], "Names in hunts: .*years"),
        (["hunts", "year"], "Names in hunts: .*years"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(words: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit, match=sentence):
        main(words)


@pytest.mark.parametrize("path", sorted(HERE.rglob("*.py")), ids=lambda path: path.stem)
def test_every_file_is_part_of_a_package_and_says_what_it_holds(path: Path) -> None:
    assert path.with_name("__init__.py").exists()
    assert describe(path)
    name = ".".join(path.relative_to(HERE.parent).with_suffix("").parts)
    assert importlib.util.find_spec(name) is not None
