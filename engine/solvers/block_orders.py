"""Orders in which steps move the structures, one class for each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.options import check_whole


class BlockOrder(Protocol):
    """Order of the structures; those of one step move together, by one step length.

    Examples
    --------
    >>> order: BlockOrder = ShuffledOrder(2)
    >>> sorted(list(each) for each in order.one_pass(3, np.random.default_rng(0)))
    [[0, 1], [2]]
    """

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return the structures of each next step, until about ``count`` structures have moved."""


class AllTogether:
    """Order of batch Frank-Wolfe: all structures move at every step.

    Examples
    --------
    >>> order = AllTogether()
    >>> [list(each) for each in order.one_pass(3, np.random.default_rng(0))]
    [[0, 1, 2]]
    """

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return one step that moves all structures."""
        return [range(count)]


@dataclass(frozen=True, slots=True)
class ShuffledOrder:
    """Order that visits every group of ``size`` neighbours once a pass, shuffled before each pass.

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

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_whole("size", self.size, at_least=1)

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return a random permutation of the groups."""
        groups = _groups(count, self.size)
        return [groups[k] for k in rng.permutation(len(groups))]


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """Order that draws an independent uniform group at each step (Lacoste-Julien 2013).

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

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_whole("size", self.size, at_least=1)

    def one_pass(self, count: int, rng: np.random.Generator) -> Iterable[Sequence[int]]:
        """Return independent draws, one for each group of a pass."""
        groups = _groups(count, self.size)
        return [groups[k] for k in rng.integers(len(groups), size=len(groups))]


def _groups(count: int, size: int) -> list[range]:
    return [range(first, min(first + size, count)) for first in range(0, count, size)]
