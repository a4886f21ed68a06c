"""Sums over matchings by listing every one of them."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Edges = list[tuple[int, int]]


def list_matchings(nodes: list[int], *, perfect: bool) -> Iterator[Edges]:
    """All matchings of the complete graph on ``nodes``, each a list of pairs."""
    if not nodes:
        yield []
        return
    first, rest = nodes[0], nodes[1:]
    if not perfect:
        yield from list_matchings(rest, perfect=False)
    for k, partner in enumerate(rest):
        for others in list_matchings(rest[:k] + rest[k + 1 :], perfect=perfect):
            yield [(first, partner), *others]


def list_bipartite_matchings(n: int) -> Iterator[Edges]:
    """All perfect matchings of rows 0..n-1 to columns 0..n-1."""
    for columns in permutations(range(n)):
        yield list(enumerate(columns))


def sum_matchings(
    scores: NDArray[np.float64], matchings: Iterator[Edges]
) -> tuple[float, NDArray[np.float64]]:
    """Partition function and the (row, column) marginals of p(M) ~ exp(sum of scores)."""
    partition = 0.0
    mass = np.zeros_like(scores)
    for matching in matchings:
        weight = float(np.exp(sum(scores[i, j] for i, j in matching)))
        partition += weight
        for i, j in matching:
            mass[i, j] += weight
    return partition, mass / partition
