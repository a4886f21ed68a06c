"""Several pictures as one block: vertices on a shelf are the oracle's, without its memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.objectives import array_shelf
from engine.objectives.array_shelf import ArrayShelf
from engine.objectives.grid_set_block import GridSetBlock
from tests.reference.tiny_grids import tiny_example


@pytest.mark.parametrize("memory_bytes", [0, 10**9])
def test_vertices_take_the_place_of_those_before(
    memory_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a pass, and those of the pass before, were held in memory beside the points."""
    files: list[int] = []
    reserve = array_shelf._reserve
    monkeypatch.setattr(array_shelf, "FILE_BYTES", 1)
    monkeypatch.setattr(
        array_shelf, "_reserve", lambda *file: (reserve(*file), files.append(file[1]))
    )
    rng = np.random.default_rng(0)
    examples = [tiny_example(rng, 3 + k, 4) for k in range(5)]
    with ThreadPoolExecutor(2) as pool:
        shelf = ArrayShelf(memory_bytes)
        plain = GridSetBlock(examples, 0.5, shelf=shelf, pool=pool)
        kept = GridSetBlock(examples, 0.5, shelf=shelf, pool=pool, vertex_shelf=shelf)
        point, places = plain.initial_point(), []
        before = len(files)
        for _ in range(3):
            theta = rng.normal(size=14)
            expected = plain.compute_extreme_direction(theta, point)
            direction = kept.compute_extreme_direction(theta, point)
            for mine, other in zip(direction.vertex, expected.vertex, strict=True):
                assert_array_equal(mine, other)
            assert direction.gap == expected.gap
            places.append([vertex.ctypes.data for vertex in direction.vertex])
        assert places[0] == places[1] == places[2]
        assert len(files) == before + (0 if memory_bytes else 5)
