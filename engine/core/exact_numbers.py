"""Numbers as whole multiples of one unit, without rounding.

Every float64 is a fraction whose denominator is a power of two, so a list of weights of any kind
(floats, integers of any size, fractions, decimals) is a list of integers and one unit.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import MAX_WHOLE, FloatArray, IntArray, check_shape, refuse_masked
from engine.core.errors import InvalidProblemError

WORD_BITS = 61
"""Integers below 2^61 stay in int64: sums and differences of two of them fit as well."""

MAX_BITS = 20_000
"""Longest integers, bits. All of float64 takes 2,098; 1 and the decimal 1e-5000, 16,610."""

MANTISSA_BITS = 53

FLOATS = {np.dtype(kind) for kind in (np.float16, np.float32, np.float64)}
"""Types whose numbers float64 can represent."""

WholeArray = NDArray[Any]
"""int64, or Python integers (dtype object) if one is too large for int64."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactNumbers:
    """Exact numbers ``counts * unit``.

    Parameters
    ----------
    counts : ndarray, shape (m,), int64, or Python integers (dtype object) beyond 2^61.
    unit : Fraction, above 0.

    Examples
    --------
    >>> found = as_exact_numbers("weights", [0.5, 3, -2.25])
    >>> found.counts.tolist(), found.unit
    ([2, 12, -9], Fraction(1, 4))
    """

    counts: WholeArray
    unit: Fraction

    def sum_of(self, indices: IntArray) -> Fraction:
        """Return the exact sum of some of the numbers."""
        return Fraction(sum(self.counts[indices].tolist())) * self.unit

    def as_floats(self, name: str) -> FloatArray:
        """Return the numbers as float64.

        Raises
        ------
        InvalidProblemError
            If a whole number has no exact float64 value, or a number is too large for float64.
        """
        if self.counts.dtype != object and _is_power_of_two(self.unit):
            nearest = self.counts.astype(np.float64)
            numbers = np.ldexp(nearest, _exponent(self.unit))
            # Not every integer from 2^53 to 2^61 is a float64.
            if np.isfinite(numbers).all() and (nearest.astype(np.int64) == self.counts).all():
                return numbers
        try:
            exact = [count * self.unit for count in self.counts.tolist()]
            numbers = np.array([float(number) for number in exact])
        except OverflowError as error:
            raise InvalidProblemError(f"{name}: a number is too large for float64.") from error
        for number, nearest in zip(exact, numbers.tolist(), strict=True):
            if number.denominator == 1 and number != nearest:
                raise InvalidProblemError(
                    f"{name}: {number} is no float64 number; the nearest is {nearest:.0f}."
                )
        return numbers


def as_number_array(name: str, values: Any) -> NDArray[Any]:
    """Return a list of numbers as an array in which no number has lost a digit.

    NumPy converts a list of floats and integers to float64, which cannot represent 2^53 + 1.

    Raises
    ------
    InvalidProblemError
        If it is not a list of one dimension.
    """
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
        is_list = array.dtype == np.float64 and not isinstance(values, np.ndarray)
        if is_list and np.abs(array).max(initial=0.0) >= MAX_WHOLE:
            array = np.array(list(values), dtype=object)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(f"{name}: expected a list of numbers.") from error
    check_shape(name, array, (None,))
    return array


def as_exact_numbers(name: str, values: Any) -> ExactNumbers:
    """Convert a list of real numbers without rounding any.

    Parameters
    ----------
    name : str, the name of the numbers in messages.
    values : array_like, shape (m,), of floats, integers, ``Fraction`` or ``Decimal``.

    Raises
    ------
    InvalidProblemError
        If an entry is not a finite real number, or the numbers differ so much in size that a common
        unit would need integers of more than ``MAX_BITS`` bits.
    """
    array = as_number_array(name, values)
    if len(array) == 0:
        return ExactNumbers(np.zeros(0, dtype=np.int64), Fraction(1))
    if array.dtype == np.bool_ or np.issubdtype(array.dtype, np.integer):
        return ExactNumbers(compact(array), Fraction(1))
    if array.dtype in FLOATS:
        numbers = array.astype(np.float64)
        _check_finite(name, numbers)
        return _of_floats(numbers)
    return _of_objects(name, list(array))


def compact(counts: WholeArray) -> WholeArray:
    """Return integers as int64 if they are below 2^61, else as Python integers."""
    if counts.dtype == object or counts.dtype == np.uint64:
        counts = counts.astype(object)
        if largest_of(counts).bit_length() > WORD_BITS:
            return counts
        return counts.astype(np.int64)
    counts = counts.astype(np.int64)
    return counts if largest_of(counts).bit_length() <= WORD_BITS else counts.astype(object)


def largest_of(counts: WholeArray) -> int:
    """Return the largest magnitude, 0 for an empty array."""
    if len(counts) == 0:
        return 0
    return max(int(counts.max()), -int(counts.min()))


def scaled(counts: WholeArray, factor: int) -> WholeArray:
    """Return ``counts * factor``, in int64 if that is safe."""
    most = max(largest_of(counts), 1) * factor
    if counts.dtype != object and most.bit_length() <= WORD_BITS:
        return counts * np.int64(factor)
    return counts.astype(object) * factor


def shifted(counts: WholeArray, offset: int) -> WholeArray:
    """Return ``counts + offset``, in int64 if that is safe."""
    if counts.dtype != object and (largest_of(counts) + abs(offset)).bit_length() <= WORD_BITS:
        return counts + np.int64(offset)
    return counts.astype(object) + offset


def rounded_multiples(counts: WholeArray, unit: int) -> IntArray:
    """Return the counts divided by ``unit``, a power of two, and rounded to the nearest integers.

    Raises
    ------
    OverflowError
        If one does not fit in int64.
    """
    half, bits = unit // 2, unit.bit_length() - 1
    if counts.dtype != object:
        return np.asarray((counts + half) >> bits, dtype=np.int64)
    return np.array([(count + half) >> bits for count in counts.tolist()], dtype=np.int64)


def _is_power_of_two(unit: Fraction) -> bool:
    return unit.numerator.bit_count() == 1 and unit.denominator.bit_count() == 1


def _exponent(unit: Fraction) -> int:
    return unit.numerator.bit_length() - unit.denominator.bit_length()


def _check_finite(name: str, numbers: NDArray[Any]) -> None:
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise InvalidProblemError(
            f"{name}: entry {bad[0]} is {numbers[bad[0]]}, not a finite number."
        )


def _of_floats(numbers: NDArray[np.float64]) -> ExactNumbers:
    mantissas, exponents = np.frexp(numbers)
    whole = np.ldexp(mantissas, MANTISSA_BITS).astype(np.int64)
    exponents = exponents.astype(np.int64) - MANTISSA_BITS
    lowest_bit = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    used = whole != 0
    least = int((exponents + lowest_bit)[used].min(initial=2**20))
    if not used.any():
        return ExactNumbers(np.zeros(len(numbers), dtype=np.int64), Fraction(1))
    unit = Fraction(2) ** least
    if int((exponents + MANTISSA_BITS)[used].max()) - least <= WORD_BITS:
        return ExactNumbers(np.ldexp(numbers, -least).astype(np.int64), unit)
    moves = np.where(used, exponents - least, 0)
    # Zeros at the end of a mantissa may be below the unit: they are shifted out.
    counts = [
        count << move if move >= 0 else count >> -move
        for count, move in zip(whole.tolist(), moves.tolist(), strict=True)
    ]
    return ExactNumbers(np.array(counts, dtype=object), unit)


def _of_objects(name: str, values: list[Any]) -> ExactNumbers:
    fractions = [_as_fraction(name, k, value) for k, value in enumerate(values)]
    common = 1
    for fraction in fractions:
        common = math.lcm(common, fraction.denominator)
        if common.bit_length() > MAX_BITS:
            break
    longest = max(fraction.numerator.bit_length() for fraction in fractions)
    if common.bit_length() + longest > MAX_BITS:
        raise InvalidProblemError(
            f"{name}: the numbers have no common unit by which all are integers of at most "
            f"{MAX_BITS} bits."
        )
    counts = [f.numerator * (common // f.denominator) for f in fractions]
    return ExactNumbers(compact(np.array(counts, dtype=object)), Fraction(1, common))


def _as_fraction(name: str, place: int, value: Any) -> Fraction:
    try:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str):
            raise TypeError
        if isinstance(value, np.longdouble):
            return Fraction(*value.as_integer_ratio())
        if hasattr(value, "as_tuple") and abs(value.adjusted()) > MAX_BITS:  # a Decimal
            raise OverflowError
        return Fraction(value)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InvalidProblemError(
            f"{name}: entry {place} is {_shown(value)}, not a finite real number."
        ) from error


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
