"""Numbers that solvers share stand in one place."""

import ast
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.core.tolerances import TOLERANCES, Tolerances

ROOT = Path(engine.__file__).parent
SHARED = {
    "ARMIJO", "MAX_HALVINGS", "NOISE", "TO_THE_BOUNDARY", "SMALLEST_CURVATURE", "FLATTEST", "TINY",
    "LAST_MU", "PULL", "BOOSTS", "KEPT",
}  # fmt: skip
FILES = sorted([*ROOT.glob("solvers/*.py"), *ROOT.glob("inference/matching/*.py")])


def module_constants(path):
    """Return the names that a module assigns at its top."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_solver_has_a_value_of_its_own(path):
    """Armijo's share stood four times, the distance to the boundary three times."""
    assert not SHARED & set(module_constants(path))


def test_the_values_are_what_their_uses_need():
    assert Tolerances() == TOLERANCES
    assert 0.0 < TOLERANCES.tiny < TOLERANCES.smallest_entry**2
    assert np.isfinite(1e7 / TOLERANCES.tiny)
    assert 1.0 + TOLERANCES.rounding > 1.0 > 1.0 - TOLERANCES.rounding
    assert TOLERANCES.boosts == tuple(sorted(TOLERANCES.boosts))
    assert 0.0 < TOLERANCES.to_the_boundary < 1.0
