"""Numbers become whole multiples of a unit, and none of them changes."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.arguments import as_float_array
from engine.core.errors import InvalidProblemError
from engine.core.exact_numbers import (
    as_exact_numbers,
    compact,
    rounded_multiples,
    scaled,
    shifted,
)

KINDS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**200), 2**200),
    st.fractions(max_denominator=10**6),
)


@given(st.lists(KINDS, max_size=8))
def test_every_number_is_kept(values: list[Any]) -> None:
    found = as_exact_numbers("weights", values)
    assert [count * found.unit for count in found.counts.tolist()] == [
        Fraction(value) for value in values
    ]
    assert found.sum_of(np.arange(len(values))) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8))
def test_floats_come_back(values: list[float]) -> None:
    found = as_exact_numbers("weights", np.array(values, dtype=np.float64))
    assert found.as_floats("weights").tolist() == values


@pytest.mark.parametrize(
    "values",
    [
        [2**53 + 1, 0.5],  # NumPy makes floats of these
        np.array([2**63 + 1], dtype=np.uint64),
        [True, False],
        [Decimal("0.1"), 1],
        np.array([1.5, -2.25], dtype=np.float16),
        np.array([0.1], dtype=np.longdouble),
        [5e-324, 1e300],
    ],
    ids=["mixed", "uint64", "bool", "decimal", "float16", "longdouble", "spread"],
)
def test_kinds_of_numbers(values: Any) -> None:
    found = as_exact_numbers("weights", values)
    exact = [Fraction(*value.as_integer_ratio()) for value in map(_plain, values)]
    assert [count * found.unit for count in found.counts.tolist()] == exact


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([np.nan], "entry 0 is nan"),
        ([1.0, np.inf], "entry 1 is inf"),
        (np.array([1j]), "entry 0 is 1j, not a finite real number"),
        (["1"], "entry 0 is '1'"),
        ([None], "entry 0 is None"),
        ([Decimal("NaN")], "entry 0 is Decimal"),
        ([Decimal("1e-999999999")], "entry 0 is Decimal"),
        ([Fraction(1, 3**20_000)], "at most 20000 bits"),
        ([[1.0]], "shape"),
        (3.0, "shape"),
        ([[1.0], [1.0, 2.0]], "a list of numbers"),
    ],
)
def test_what_is_no_real_number_is_named(values: Any, words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        as_exact_numbers("weights", values)


def test_whole_numbers_that_float64_lacks_are_not_rounded_without_a_word() -> None:
    for values in ([2**53 + 1], [2**61 - 1], [2**80 + 1]):
        with pytest.raises(InvalidProblemError, match="is no float64 number; the nearest is"):
            as_exact_numbers("weights", values).as_floats("weights")
        with pytest.raises(InvalidProblemError, match="is no float64 number; the nearest is"):
            as_float_array("scores", np.array(values))
    assert as_exact_numbers("weights", [2**80]).as_floats("weights").tolist() == [2.0**80]
    assert as_float_array("scores", np.array([2**60])).tolist() == [2.0**60]


@given(
    st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=6),
    st.integers(0, 2**70),
    st.integers(1, 20),
)
def test_arithmetic_never_overflows(values: list[int], number: int, bits: int) -> None:
    counts = compact(np.array(values, dtype=object))
    assert scaled(counts, number).tolist() == [value * number for value in values]
    assert shifted(counts, number).tolist() == [value + number for value in values]
    unit = 1 << max(bits, 72 - 60)
    assert all(
        abs(2 * (value - unit * multiple)) <= unit
        for value, multiple in zip(values, rounded_multiples(counts, unit).tolist(), strict=True)
    )
