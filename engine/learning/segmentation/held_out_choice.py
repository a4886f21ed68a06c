"""Choice among candidate learning methods by their mistakes on held-out pictures."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from engine.core.arguments import FloatArray

Candidate = TypeVar("Candidate")


def choose_candidate(
    mistakes: Mapping[Candidate, FloatArray], *, standard_errors: float = 1.0
) -> Candidate:
    """Return the candidate with the fewest mistakes if it is clearly better, else the first one.

    Few pictures are a small sample: an improvement smaller than the sampling error is as likely to
    do harm on other pictures.

    Parameters
    ----------
    mistakes : mistakes of every candidate on each of the same pictures, shape (M,), in any unit
    standard_errors : number of standard errors that an improvement must exceed

    Returns
    -------
    Candidate
        The candidate with the fewest mistakes if `is_clearly_less` is True for it, else the first.

    Examples
    --------
    >>> choose_candidate({"plain": np.array([0.2, 0.3, 0.2]), "edges": np.array([0.1, 0.2, 0.1])})
    'edges'
    >>> choose_candidate({"plain": np.array([0.2, 0.2, 0.2]), "edges": np.array([0.1, 0.1, 0.35])})
    'plain'
    """
    first = next(iter(mistakes))
    best = min(mistakes, key=lambda candidate: float(mistakes[candidate].sum()))
    return (
        best
        if is_clearly_less(mistakes[best], mistakes[first], standard_errors=standard_errors)
        else first
    )


def is_clearly_less(these: FloatArray, those: FloatArray, *, standard_errors: float = 1.0) -> bool:
    """Return True if ``these`` mistakes are fewer by more than this many standard errors."""
    spared = np.asarray(those, dtype=np.float64) - these
    deviation = np.sqrt(len(spared)) * spared.std(ddof=1) if len(spared) > 1 else 0.0
    return bool(spared.sum() > standard_errors * deviation)
