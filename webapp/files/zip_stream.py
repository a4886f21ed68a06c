"""ZIP that is sent while it is made: memory stays at one chunk, whatever the batch's size."""

import io
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# A fixed date makes equal batches equal archives.
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file to write: its name in the archive, its bytes in pieces, and a flag to compress it."""

    name: str
    chunks: Iterable[bytes]
    compress: bool = False


class _Drain(io.RawIOBase):
    """Unseekable sink from which the written bytes are taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


def stream_zip(members: Iterable[ZipMember]) -> Iterator[bytes]:
    """Yield the bytes of a ZIP with these members, in order, as they are read."""
    drain = _Drain()
    with zipfile.ZipFile(drain, "w", allowZip64=True) as archive:
        for member in members:
            info = zipfile.ZipInfo(member.name, date_time=EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED if member.compress else zipfile.ZIP_STORED
            info._compresslevel = 1  # type: ignore[attr-defined]  # no public name before Python 3.13
            with archive.open(info, "w", force_zip64=True) as target:
                for chunk in member.chunks:
                    target.write(chunk)
                    if ready := drain.take():
                        yield ready
    yield drain.take()


def unique_names(names: Iterable[str]) -> list[str]:
    """Return unique names: repeated ones get " (2)", " (3)" before the suffix."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        count = seen[name.casefold()] = seen.get(name.casefold(), 0) + 1
        stem, dot, suffix = name.rpartition(".")
        if count == 1:
            result.append(name)
        elif dot:
            result.append(f"{stem} ({count}).{suffix}")
        else:
            result.append(f"{name} ({count})")
    return result
