"""Errors that libraries raise for damaged or truncated files."""

import struct
import tokenize
import zlib

UNREADABLE: tuple[type[Exception], ...] = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OSError,
    EOFError,
    RuntimeError,
    OverflowError,
    SyntaxError,  # damaged XML, or the header of an array
    tokenize.TokenError,  # the header of an array, which numpy parses as a line of Python
    zlib.error,
    struct.error,  # a file that ends within its header
)


def unreadable_tiff() -> tuple[type[Exception], ...]:
    """Return the errors that tifffile raises for a damaged file, importing it only when needed."""
    from tifffile import TiffFileError

    return (TiffFileError, *UNREADABLE)
