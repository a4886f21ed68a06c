"""Opener of TIFF files; a chain of pages without an end is refused."""

import struct
from io import BytesIO
from typing import TYPE_CHECKING

from engine.core.errors import InvalidProblemError

if TYPE_CHECKING:
    from tifffile import TiffFile

_CLASSIC, _BIG = 42, 43


def open_tiff(content: bytes, label: str) -> "TiffFile":
    """Open a TIFF in memory; use it as a context manager.

    Raises
    ------
    InvalidProblemError
        If a page is followed by one before it: tifffile would read its pages for ever.
    """
    from tifffile import TiffFile  # slow to import

    if has_circle(content):
        raise InvalidProblemError(
            f"{label}: its pages follow each other in a circle. It is damaged or cut off."
        )
    return TiffFile(BytesIO(content))


def has_circle(content: bytes) -> bool:
    """Return True if the chain of pages returns to a page; False for no TIFF or a broken chain."""
    order = {b"II": "<", b"MM": ">"}.get(content[:2], "")
    if not order or len(content) < 8:
        return False
    (version,) = struct.unpack_from(f"{order}H", content, 2)
    if version not in (_CLASSIC, _BIG):
        return False
    # Of a page: its number of entries, the entries, and where the next page begins.
    count, entry, place, first = ("H", 12, "I", 4) if version == _CLASSIC else ("Q", 20, "Q", 8)
    seen: set[int] = set()
    try:
        (page,) = struct.unpack_from(f"{order}{place}", content, first)
        while page:
            if page in seen:
                return True
            seen.add(page)
            (n_entries,) = struct.unpack_from(f"{order}{count}", content, page)
            end = page + struct.calcsize(f"={count}") + n_entries * entry
            (page,) = struct.unpack_from(f"{order}{place}", content, end)
    except (struct.error, OverflowError):  # beyond the end
        return False
    return False
