"""Every public name says what it is, and says nothing of parameters that it does not take."""

import doctest
import importlib
import tempfile
from enum import EnumMeta
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

HELD |= {"PR01", "RT01", "YD01", "EX01"}  # each parameter, what is returned, and an example


def found_at(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


PATHS = sorted(
    path
    for path in {path for face in FACES for path in listed_names(face).values()}
    if callable(found_at(path))  # constants have a comment
)


def errors_of(path: str) -> list[str]:
    found = found_at(path)
    is_protocol = getattr(found, "_is_protocol", False)  # nobody calls it: it has no parameters
    held = HELD - {"PR01"} if is_protocol or isinstance(found, EnumMeta) else HELD
    return [f"{code}: {words}" for code, words in validate(path)["errors"] if code in held]


@pytest.mark.parametrize("path", PATHS)
def test_a_docstring_leaves_nothing_out_and_its_example_runs(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = found_at(path)
    assert not errors_of(path)
    names = vars(importlib.import_module(found.__module__)).copy()
    runner = doctest.DocTestRunner(verbose=False)
    for example in doctest.DocTestFinder(recurse=False).find(found, path, globs=names):
        assert runner.run(example).failed == 0, path
