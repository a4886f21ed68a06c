"""Which structures a step moves: one method per order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class BlockOrder(Protocol):
    """One choice of order; the structures of a step move together, by one step length.

    Examples
    --------
    >>> order: BlockOrder = CyclicOrder(2)
    >>> [list(each) for each in order.one_pass(3, np.random.default_rng(0))]
    [[0, 1], [2]]
    """

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return the structures of each of the next steps, until about ``count`` have moved."""


class AllTogether:
    """All structures at every step: batch Frank-Wolfe.

    Examples
    --------
    >>> order = AllTogether()
    >>> [list(each) for each in order.one_pass(3, np.random.default_rng(0))]
    [[0, 1, 2]]
    """

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return one step that moves all."""
        return [range(count)]


@dataclass(frozen=True, slots=True)
class ShuffledOrder:
    """Every group of ``size`` neighbours once per pass, in a new random order.

    Parameters
    ----------
    size : int
        Structures that move together.

    Examples
    --------
    >>> order = ShuffledOrder()
    >>> sorted(list(each) for each in order.one_pass(3, np.random.default_rng(0)))
    [[0], [1], [2]]
    """

    size: int = 1

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return a random permutation of the groups."""
        groups = _groups(count, self.size)
        return [groups[k] for k in rng.permutation(len(groups))]


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """Every step an independent uniform group, as in the analysis of Lacoste-Julien 2013.

    Parameters
    ----------
    size : int
        Structures that move together.

    Examples
    --------
    >>> order = RandomOrder()
    >>> len(list(order.one_pass(3, np.random.default_rng(0))))
    3
    """

    size: int = 1

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return as many independent draws as there are groups."""
        groups = _groups(count, self.size)
        return [groups[k] for k in rng.integers(len(groups), size=len(groups))]


@dataclass(frozen=True, slots=True)
class CyclicOrder:
    """The first group, the second, ..., again and again.

    Parameters
    ----------
    size : int
        Structures that move together.

    Examples
    --------
    >>> order = CyclicOrder()
    >>> [list(each) for each in order.one_pass(3, np.random.default_rng(0))]
    [[0], [1], [2]]
    """

    size: int = 1

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return the groups in their own order."""
        return _groups(count, self.size)


def _groups(count: int, size: int) -> list[range]:
    return [range(first, min(first + size, count)) for first in range(0, count, size)]
