"""Points and vertices in a store of limited memory, and structures asked on several threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core import array_store
from engine.core.array_store import ArrayStore
from engine.objectives.learning_dual import make_learning_dual
from engine.solvers.iterate import Iterate
from engine.structures.grid import GridStructure
from tests.reference.tiny_grids import tiny_example


@pytest.mark.parametrize("memory_bytes", [0, 10**9])
def test_vertices_take_the_place_of_those_before(
    memory_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a pass, and those of the pass before, were held in memory beside the points."""
    files: list[int] = []
    reserve = array_store._reserve
    monkeypatch.setattr(array_store, "FILE_BYTES", 1)
    monkeypatch.setattr(
        array_store, "_reserve", lambda *file: (reserve(*file), files.append(file[1]))
    )
    rng = np.random.default_rng(0)
    structures = [GridStructure([tiny_example(rng, 3 + k, 4)], 0.5) for k in range(5)]
    dual = make_learning_dual([s.observed for s in structures], 1.0)
    with ThreadPoolExecutor(2) as pool:
        keeping = Iterate(structures, dual, pool.map, ArrayStore(memory_bytes).keep)
        plain, places = Iterate(structures, dual), []
        keeping.begin()
        plain.begin()
        before = len(files)
        for _ in range(3):
            theta = rng.normal(size=14)
            directions = keeping.ask(range(5), theta)
            for mine, other in zip(directions, plain.ask(range(5), theta), strict=True):
                assert_array_equal(mine.vertex.values, other.vertex.values)
                assert mine.gap == other.gap
            places.append([d.vertex.values.ctypes.data for d in directions])
        assert places[0] == places[1] == places[2]
        assert len(files) == before + (0 if memory_bytes else 5)
        assert before == (0 if memory_bytes else 5)
