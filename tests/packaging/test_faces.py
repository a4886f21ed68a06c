"""Every name of every face can be imported, has a docstring, and is listed once."""

import importlib

import pytest

FACES = (
    "core",
    "crf",
    "rooms",
    "graphs",
    "oracles",
    "entropies",
    "objectives",
    "solvers",
    "structures",
    "inference",
    "baselines",
    "estimators",
    "metrics",
    "datasets",
)


@pytest.mark.parametrize("name", FACES)
def test_all_names_are_there_and_say_what_they_are(name: str) -> None:
    face = importlib.import_module(f"engine.{name}")
    assert len(face.__all__) == len(set(face.__all__)) > 0
    assert set(face.__all__) <= set(dir(face))
    for one in face.__all__:
        found = getattr(face, one)
        assert found is not None
        assert not callable(found) or (found.__doc__ or "").strip(), one
