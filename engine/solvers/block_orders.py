"""In which order blocks are visited: one method per order."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np


class BlockOrder(Protocol):
    """One choice of order."""

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[int]:
        """Return the blocks of the next ``count`` steps."""


class ShuffledOrder:
    """Every block once per pass, in a new random order."""

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[int]:
        """Return a random permutation."""
        return [int(m) for m in rng.permutation(count)]


class RandomOrder:
    """Every step an independent uniform block, as in the analysis of Lacoste-Julien 2013."""

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[int]:
        """Return ``count`` independent draws."""
        return [int(m) for m in rng.integers(count, size=count)]


class CyclicOrder:
    """0, 1, ..., M - 1, again and again."""

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[int]:
        """Return the blocks in their own order."""
        return range(count)
