"""Numbers out of addresses and forms, which anybody may have taken apart."""

MAX_DIGITS = 9  # what a database column of any kind still holds


def whole_number(text: str) -> int | None:
    """Return the number that 1 to 9 digits write, or None for anything else.

    ``str.isdigit`` alone is not enough: it also holds for "²", which ``int`` refuses, and ``int``
    refuses more than 4,300 digits.
    """
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None


def digits_of(text: str) -> str:
    """Return the digits of a text: "1376" of "S-1376", by which students are found."""
    return "".join(character for character in text if character.isdecimal())
