"""Every public name says what it is, and says nothing of parameters that it does not take."""

import doctest
import importlib
import tempfile
from pathlib import Path
from typing import Any

import pytest

from docs.reference_pages import FACES, listed_names

validate = pytest.importorskip("numpydoc.validate").validate

# GL: there is a docstring, its sections known and in order. PR: parameters that exist, in their
# order. SS: a summary that is one sentence with a full stop. YD, RT: returns that are returned.
HELD = {
    "GL05", "GL06", "GL07", "GL08", "PR02", "PR03", "PR10", "SS02", "SS03", "SS05", "RT02",
}  # fmt: skip

# What papers cite says everything: each parameter, what is returned, and an example that runs.
WHOLE = (
    "oracles", "entropies", "solvers", "inference", "baselines", "datasets", "metrics",
    "structures", "objectives", "estimators",
)  # fmt: skip
HELD_OF_WHOLE = HELD | {"PR01", "RT01", "YD01", "EX01"}
TYPE_ALIASES = {
    "engine.core.progress.ProgressCallback",
    "engine.core.progress.StopCallback",
    "engine.crf.questionnaire.QuestionKind",
}
PATHS = sorted({path for face in FACES for path in listed_names(face).values()} - TYPE_ALIASES)
WHOLE_PATHS = sorted({path for face in WHOLE for path in listed_names(face).values()})


def errors_of(path: str, held: set[str]) -> list[str]:
    return [f"{code}: {words}" for code, words in validate(path)["errors"] if code in held]


def found_at(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("path", PATHS)
def test_a_docstring_says_what_is_so(path: str) -> None:
    assert not errors_of(path, HELD)


@pytest.mark.parametrize("path", WHOLE_PATHS)
def test_a_docstring_leaves_nothing_out_and_its_example_runs(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = found_at(path)
    is_protocol = getattr(found, "_is_protocol", False)  # nobody calls it: it has no parameters
    assert not errors_of(path, HELD_OF_WHOLE - ({"PR01"} if is_protocol else set()))
    names = vars(importlib.import_module(found.__module__)).copy()
    runner = doctest.DocTestRunner(verbose=False)
    for example in doctest.DocTestFinder(recurse=False).find(found, path, globs=names):
        assert runner.run(example).failed == 0, path
