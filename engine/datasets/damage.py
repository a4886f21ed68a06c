"""What libraries raise of files that are damaged or cut off."""

import struct

UNREADABLE: tuple[type[Exception], ...] = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OSError,
    EOFError,
    RuntimeError,
    OverflowError,
    SyntaxError,  # of damaged XML
    struct.error,  # of a file that ends within its head
)


def unreadable_tiff() -> tuple[type[Exception], ...]:
    """Return what tifffile raises of a damaged file, without importing it before it is needed."""
    from tifffile import TiffFileError

    return (TiffFileError, *UNREADABLE)
