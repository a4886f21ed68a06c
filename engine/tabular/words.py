"""Counts and lists in the words of sentences."""

from collections.abc import Sequence

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PLURALS = {"person": "people"}


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: '1 blank', '1,058 blanks' or '2 people'."""
    many = plural or _PLURALS.get(noun, noun + "s")
    return f"{count:,} {noun if count == 1 else many}"


def small_number(count: int) -> str:
    """Return a count in words up to ten."""
    return _SMALL[count] if 0 <= count < len(_SMALL) else str(count)


def listed(values: Sequence[str], shown: int = 3, *, quoted: bool = True) -> str:
    """Return a list in words: "“whenever”, “idk” and 9 more"."""
    words = [f"“{v[:40]}”" if quoted else v for v in values[:shown]]
    more = len(values) - shown
    if more > 0:
        return f"{', '.join(words)} and {more:,} more"
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
