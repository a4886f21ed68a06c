"""Choosing among ways to learn by their mistakes on pictures that these never saw."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from engine.core.arguments import FloatArray

Way = TypeVar("Way")


def choose_way(mistakes: Mapping[Way, FloatArray], *, doubts: float = 1.0) -> Way:
    """Return the way of fewest mistakes, or the first one unless that is clearly better.

    Few pictures are a small sample: a way that spares less than the draw of the pictures would
    change is as likely to do harm on others.

    Parameters
    ----------
    mistakes : of every way its mistakes on each of the same pictures, shape (M,), in any unit
    doubts : standard errors that count as clear

    Returns
    -------
    Way
        The first, or the one with the fewest mistakes if `is_clearly_less` says so.

    Examples
    --------
    >>> choose_way({"plain": np.array([0.2, 0.3, 0.2]), "edges": np.array([0.1, 0.2, 0.1])})
    'edges'
    >>> choose_way({"plain": np.array([0.2, 0.2, 0.2]), "edges": np.array([0.1, 0.1, 0.35])})
    'plain'
    """
    first = next(iter(mistakes))
    best = min(mistakes, key=lambda way: float(mistakes[way].sum()))
    return best if is_clearly_less(mistakes[best], mistakes[first], doubts=doubts) else first


def is_clearly_less(these: FloatArray, those: FloatArray, *, doubts: float = 1.0) -> bool:
    """Whether mistakes on the same pictures are fewer by more than so many standard errors."""
    spared = np.asarray(those, dtype=np.float64) - these
    doubt = np.sqrt(len(spared)) * spared.std(ddof=1) if len(spared) > 1 else 0.0
    return bool(spared.sum() > doubts * doubt)
