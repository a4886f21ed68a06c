"""The examples in the documentation of pairwise inference run and say what they print."""

import doctest
import importlib

import pytest

MODULES = (
    "engine.oracles.grid_roof_duality",
    "engine.inference.factors.elimination",
    "engine.inference.pairwise.grid_tree_reweighted",
    "engine.inference.pairwise.tree_reweighted",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
