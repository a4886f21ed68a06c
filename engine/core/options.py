"""Checks of the options of public functions: names against known ones, numbers against ranges.

Every public function calls these before it does any work. The message for a refused option begins
with the option's name; for a refused name it lists the known ones.
"""

from collections.abc import Iterable
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, Final

import numpy as np

from engine.core.errors import InvalidProblemError

MAX_INT64: Final = 2**63 - 1
MAX_SHOWN: Final = 80  # characters of a refused value in a message


def check_choice(name: str, value: Any, known: Iterable[str], *, optional: bool = False) -> None:
    """Raise InvalidProblemError unless ``value`` is one of the known names."""
    if optional and value is None:
        return
    names = tuple(known)
    if not isinstance(value, str) or value not in names:
        raise _refusal(name, f"one of {', '.join(names)}", value)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    optional: bool = False,
    or_array: bool = False,
    or_infinite: bool = False,
) -> None:
    """Raise InvalidProblemError unless ``value`` is a finite number within the range.

    ``or_infinite`` accepts inf too, for "no limit". ``or_array`` leaves sequences and arrays, which
    may replace one number, to a later check.
    """
    if optional and value is None:
        return
    if or_array and (isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0):
        return
    number = _as_float(value)
    is_inside = (
        number is not None
        and (isfinite(number) or (or_infinite and not isinstance(_scalar(value), Integral)))
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
        and (at_most is None or number <= at_most)
    )
    if not is_inside:
        words = _range_in_words(above=above, at_least=at_least, below=below, at_most=at_most)
        kind = "finite number" if number in (inf, -inf) and not or_infinite else "number"
        raise _refusal(name, f"a {kind}{words}", value)


def check_whole(
    name: str,
    value: Any,
    *,
    at_least: int | None = 0,
    at_most: int = MAX_INT64,
    optional: bool = False,
) -> None:
    """Raise InvalidProblemError unless ``value`` is a whole number within the range."""
    if optional and value is None:
        return
    number = _scalar(value)
    is_whole = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_whole or number > at_most or (at_least is not None and number < at_least):
        limit = None if at_most == MAX_INT64 and abs(_as_float(value) or 0) < MAX_INT64 else at_most
        words = _range_in_words(at_least=at_least, at_most=limit)
        raise _refusal(name, f"a whole number{words}", value)


def check_flag(name: str, value: Any) -> None:
    """Raise InvalidProblemError unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise _refusal(name, "True or False", value)


def check_text(name: str, value: Any, *, optional: bool = False) -> None:
    """Raise InvalidProblemError unless ``value`` is text."""
    if not isinstance(value, str) and not (optional and value is None):
        raise _refusal(name, "text", value)


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` as float; raise InvalidProblemError unless it is finite and above zero."""
    check_number(name, value, above=0.0)
    return float(value)


def check_seconds(name: str, seconds: Any, *, optional: bool = True) -> None:
    """Raise InvalidProblemError unless a time limit in seconds is at least 0; inf is no limit."""
    check_number(name, seconds, at_least=0.0, optional=optional, or_infinite=True)


def check_generator(name: str, rng: Any, *, optional: bool = True) -> None:
    """Raise InvalidProblemError unless ``rng`` is a NumPy generator of random numbers."""
    if not isinstance(rng, np.random.Generator) and not (optional and rng is None):
        raise _refusal(name, "a numpy.random.Generator such as numpy.random.default_rng(0)", rng)


def check_callables(**callbacks: Any) -> None:
    """Raise InvalidProblemError unless every callback can be called."""
    for name, callback in callbacks.items():
        if not callable(callback):
            raise _refusal(name, "a callable", callback)


def _scalar(value: Any) -> Any:
    """Return the number in an array without dimensions, and anything else unchanged."""
    is_array_of_one = isinstance(value, np.ndarray) and value.ndim == 0
    return value.item() if is_array_of_one else value


def _as_float(value: Any) -> float | None:
    """Return a real number as float, inf if it is too large, None for anything else."""
    number = _scalar(value)
    if not isinstance(number, Real) or isinstance(number, bool | np.bool_):
        return None
    try:
        return float(number)
    except OverflowError:
        return inf


def _range_in_words(
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> str:
    """Describe the given limits, such as " above 0 and at most 1"."""
    named = (("above", above), ("of at least", at_least), ("below", below), ("at most", at_most))
    limits = [f"{word} {limit:.15g}" for word, limit in named if limit is not None]
    return f" {' and '.join(limits)}" if limits else ""


def _refusal(name: str, expected: str, value: Any) -> InvalidProblemError:
    """Return the error that names the option, the expected value and the received one."""
    try:
        shown = repr(value)
    except ValueError:  # whole numbers of thousands of digits cannot be printed
        shown = "a number of thousands of digits"
    if len(shown) > MAX_SHOWN:
        shown = f"{shown[:MAX_SHOWN]}..."
    return InvalidProblemError(f"{name}: expected {expected}, received {shown}.")
