"""Types of options: a value out of range is refused under the option's name, as typed."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from engine.core.errors import InvalidProblemError
from engine.core.options import MAX_INT64, check_number, check_seconds, check_whole

MAX_DIGITS = 10
"""Longest value in a label map: 32 bits, or a packed colour."""


def number(**limits: float) -> Callable[[str], float]:
    """Return a parser of finite numbers within the limits that `check_number` takes."""

    def check(value: Any) -> None:
        check_number("", value, **limits)  # type: ignore[arg-type]

    return lambda text: float(_checked(text, _decimal, check))


def seconds(text: str) -> float:
    """Return a time limit of at least 0 seconds."""
    return float(_checked(text, _decimal, lambda value: check_seconds("", value)))


def whole_number_from(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``lowest`` up to ``highest``."""
    most = MAX_INT64 if highest is None else highest

    def parse(text: str) -> int:
        if not text.isdecimal():
            raise ValueError(text)
        return int(text)

    return lambda text: int(
        _checked(text, parse, lambda value: check_whole("", value, at_least=lowest, at_most=most))
    )


def room_sizes(text: str) -> tuple[int, ...]:
    """Return room sizes, 1 to 8, parsed from a comma-separated list."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and 1 <= int(part) <= 8 for part in parts):
        raise ArgumentTypeError(f"expected sizes from 1 to 8 such as 1,2,3, received {text!r}")
    return tuple(int(part) for part in parts)


def whole_numbers(text: str) -> tuple[int, ...]:
    """Return whole numbers from 0, parsed from a comma-separated list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= MAX_DIGITS for part in parts):
        raise ArgumentTypeError(f"expected whole numbers such as 0,255, received {text!r}")
    return tuple(int(part) for part in parts)


def _decimal(text: str) -> float:
    """Return a decimal number; underscores, which Python allows, are refused."""
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _checked(text: str, parse: Callable[[str], Any], check: Callable[[Any], None]) -> Any:
    """Return the parsed text if it passes the check; else refuse the text as typed."""
    try:
        value = parse(text)
    except ValueError:
        value = text
    try:
        check(value)
    except InvalidProblemError:
        try:
            check(text)  # a text is never a number: the message shows it as typed
        except InvalidProblemError as error:
            raise ArgumentTypeError(str(error).removeprefix(": ").removesuffix(".")) from None
    return value
