"""Text files and streams: plain or gzip, with or without a byte order mark."""

import gzip
import io
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import IO, Any

from engine.core.errors import InvalidProblemError

GZIP_SIGNATURE = b"\x1f\x8b"

MAX_BYTES = 2_000_000_000
"""Longest text that is read, bytes after unpacking."""

TextSource = Path | IO[Any]
"""File, or a stream of bytes or text such as standard input."""


def read_text(source: TextSource) -> str:
    """Read the text of a file or stream: the same bytes give the same text from either.

    Line ends become ``\\n``, and a byte order mark is removed.

    Parameters
    ----------
    source : Path or stream
        Bytes are UTF-8, or a gzip archive of UTF-8. A stream that has already decoded its bytes is
        read through its ``buffer`` if it has one.

    Raises
    ------
    InvalidProblemError
        If the bytes are not UTF-8 text, or an archive is damaged; the message names the line.
    OSError
        If the file cannot be read.
    """
    name, data = _name_and_data(source)
    text = data if isinstance(data, str) else _decoded(name, data)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _name_and_data(source: TextSource) -> tuple[str, bytes | str]:
    if isinstance(source, Path):
        return source.name, source.read_bytes()
    stream = getattr(source, "buffer", source)
    return "standard input", stream.read()


def _decoded(name: str, data: bytes) -> str:
    if data.startswith(GZIP_SIGNATURE):
        data = _unpacked(name, data)
    if len(data) > MAX_BYTES:
        raise InvalidProblemError(f"{name}: more than {MAX_BYTES / 1e9:.0f} GB of text.")
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise InvalidProblemError(f"{name}: the file is UTF-16; save it as UTF-8.")
    if b"\0" in data:
        raise InvalidProblemError(f"{name}: the file is not text.")
    try:
        return data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        raise InvalidProblemError(
            f"{name}: line {line} is not UTF-8 text (byte 0x{byte:02X}); save the file as UTF-8."
        ) from error


def _unpacked(name: str, data: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as archive:
            return archive.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidProblemError(f"{name}: the gzip archive is damaged ({error}).") from error
