"""Numbers from addresses and forms, which people may have edited."""

import re

MAX_DIGITS = 9  # fits a database column of any kind
_ID_ON_SCREEN = re.compile(r"\s*(?:s[\s-]*)?([0-9]+)\s*", re.IGNORECASE)


def whole_number(text: str) -> int | None:
    """Return the number of a text of 1 to 9 digits, or None for anything else.

    ``str.isdigit`` alone is not enough: it also holds for "²", which ``int`` refuses, and ``int``
    refuses more than 4,300 digits.
    """
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None


def digits_of(text: str) -> str:
    """Return the digits of an id on screen or of a part of one: "1376" of "S-1376" or "s 1376".

    Empty for anything else: the housing system's A-1376 is likely to be another student.
    """
    found = _ID_ON_SCREEN.fullmatch(text)
    return found[1] if found else ""
