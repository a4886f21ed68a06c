"""Reading an uploaded ZIP without trusting one byte of it.

Names are used for pairing and display only, never as paths. Links, folders, encrypted and
unsupported entries are refused one by one; a file that unpacks to far more than it weighs,
or an archive with too many entries, is refused whole, before anything is read.
"""

import errno
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import BinaryIO

from engine.datasets.image_names import name_in_set
from webapp.common.errors import Refusal
from webapp.files.contents import CHUNK_BYTES

MAX_ENTRIES = 5_000
MAX_ENTRY_BYTES = 200 * 1024**2
MAX_TOTAL_BYTES = 4 * 1024**3
# Photographs do not compress at all and masks by a factor of some hundreds; DEFLATE stops at 1,032.
MAX_RATIO = 600
RATIO_MATTERS_ABOVE_BYTES = 1024**2
_CLASSES, _OBJECTS = "segmentationclass/", "segmentationobject/"
_OF_OBJECTS = "It numbers objects whose classes SegmentationClass has, which were taken instead."
SYSTEM_FILES = {"thumbs.db", "desktop.ini"}  # that Windows leaves in folders
SUPPORTED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# Read errors of a damaged entry: from the container, from DEFLATE, from the end of the file, and
# from a directory that points before the beginning or beyond all ends.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)


class ArchiveError(Refusal):
    """The archive as a whole, or one entry, cannot be taken; one sentence says why."""


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One file of the archive: the name to show, or the sentence for which it is refused."""

    name: str
    info: zipfile.ZipInfo
    refusal: str | None = None


def display_name(raw: str) -> str:
    """Return the last part of a path of any system, without control characters.

    macOS writes letters with accents as two signs: they are joined, so that files of one name on
    two systems have one name here.
    """
    last = unicodedata.normalize("NFC", PurePosixPath(raw.replace("\\", "/")).name)
    return "".join(c for c in last if c.isprintable()).strip()[:200]


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """Open a ZIP and check its directory.

    Raises
    ------
    ArchiveError
        If it is not a whole ZIP, has over ``MAX_ENTRIES`` entries, or unpacks to over
        ``MAX_TOTAL_BYTES``.
    """
    check_entry_count(file)
    try:
        archive = zipfile.ZipFile(file)
    except (*DAMAGED, OSError) as error:
        raise ArchiveError(
            "The ZIP is damaged or was cut off on the way. Nothing was saved."
        ) from error
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise ArchiveError(_too_many(len(infos)))
    total = sum(info.file_size for info in infos)
    if total > MAX_TOTAL_BYTES:
        raise ArchiveError(
            f"The ZIP unpacks to {total / 1024**3:.1f} GB; at most "
            f"{MAX_TOTAL_BYTES // 1024**3} GB are taken at once. Nothing was saved."
        )
    return archive


def check_entry_count(file: BinaryIO) -> None:
    """Refuse by the count in the end record, before the directory is read into memory."""
    file.seek(0, 2)
    size = file.tell()
    file.seek(max(0, size - 66_000))
    tail = file.read()
    file.seek(0)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) < place + 22:
        return
    count = int.from_bytes(tail[place + 10 : place + 12], "little")
    directory_bytes = int.from_bytes(tail[place + 12 : place + 16], "little")
    large = count == 0xFFFF and tail.rfind(b"PK\x06\x06") >= 0
    if large:
        place = tail.rfind(b"PK\x06\x06")
        count = int.from_bytes(tail[place + 32 : place + 40], "little")
        directory_bytes = int.from_bytes(tail[place + 40 : place + 48], "little")
    # An entry of the directory takes at least 46 bytes, whatever the count claims.
    if count > MAX_ENTRIES or directory_bytes > MAX_ENTRIES * 1_000:
        raise ArchiveError(_too_many(max(count, directory_bytes // 100)))


def _too_many(count: int) -> str:
    return (
        f"The ZIP has about {count:,} entries; at most {MAX_ENTRIES:,} are taken at once. "
        "Nothing was saved."
    )


def archive_entries(archive: zipfile.ZipFile) -> Iterator[ArchiveEntry]:
    """Yield every file of the archive with its refusal, if any; folders and system files are
    passed over in silence. Files of one name are refused all: one would take the others' place.
    Of VOC's two maps of a picture, which have one name, that of classes is taken."""
    found = list(_visible_entries(archive))
    paths: dict[str, list[str]] = {}
    for entry in found:
        if entry.refusal is None:
            paths.setdefault(entry.name, []).append(entry.info.filename)
    for entry in found:
        same = paths.get(entry.name, [])
        if _is_voc_pair(same):
            is_refused = _OBJECTS in entry.info.filename.casefold()
            yield replace(entry, refusal=_OF_OBJECTS) if is_refused else entry
        elif entry.refusal is None and len(same) > 1:
            others = ", ".join(_shown(path) for path in same[:3])
            yield replace(
                entry,
                refusal=f"{entry.name} is {len(same)} times in the ZIP ({others}). None was "
                "taken; rename all but one, or put masks into a folder named masks.",
            )
        else:
            yield entry


def _is_voc_pair(paths: list[str]) -> bool:
    """Whether these are the maps of classes and of objects of one picture, as VOC has them."""
    lower = [path.casefold() for path in paths]
    counts = [sum(folder in path for path in lower) for folder in (_CLASSES, _OBJECTS)]
    return len(paths) == 2 and counts == [1, 1]


def _shown(path: str) -> str:
    """A path within an archive, without control characters."""
    return "".join(c for c in path if c.isprintable())[:120]


def _visible_entries(archive: zipfile.ZipFile) -> Iterator[ArchiveEntry]:
    for info in archive.infolist():
        raw = info.filename
        name = display_name(raw)
        hidden = name.startswith(".") and name not in {"..", "."}
        hidden |= name.casefold() in SYSTEM_FILES
        if raw.endswith("/") or raw.startswith("__MACOSX/") or hidden:
            continue
        yield ArchiveEntry(display_name(name_in_set(raw)), info, entry_refusal(info))


def entry_refusal(info: zipfile.ZipInfo) -> str | None:
    """Return why an entry is not taken, or None."""
    name = display_name(info.filename) or "An entry without a name"
    parts = PurePosixPath(info.filename.replace("\\", "/")).parts
    mode = info.external_attr >> 16
    if ".." in parts or (parts and (parts[0].startswith("/") or parts[0].endswith(":"))):
        return f"{name} points outside the ZIP and was left out."
    if not display_name(info.filename):
        return "An entry without a name was left out."
    if mode and stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        return f"{name} is a link, not a file, and was left out."
    if info.flag_bits & 0x1:
        return f"{name} is locked with a password and was left out."
    if info.compress_type not in SUPPORTED:
        return f"{name} is packed in a way that is not read here. Pack it as an ordinary ZIP."
    if info.file_size > MAX_ENTRY_BYTES:
        return f"{name} is larger than {MAX_ENTRY_BYTES // 1024**2} MB and was left out."
    if info.file_size > RATIO_MATTERS_ABOVE_BYTES and info.file_size > MAX_RATIO * max(
        info.compress_size, 1
    ):
        return f"{name} unpacks to over {MAX_RATIO} times its size and was left out."
    return None


def entry_chunks(archive: zipfile.ZipFile, entry: ArchiveEntry) -> Iterator[bytes]:
    """Yield the bytes of an entry, stopping at the size its directory claims.

    Raises
    ------
    ArchiveError
        If the entry is damaged or longer than it claims.
    """
    try:
        with archive.open(entry.info) as stream:
            taken = 0
            while chunk := stream.read(CHUNK_BYTES):
                taken += len(chunk)
                if taken > min(entry.info.file_size, MAX_ENTRY_BYTES):
                    raise ArchiveError(f"{entry.name} is longer than it claims; it was left out.")
                yield chunk
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # of the disk, not of the archive
        raise ArchiveError(f"{entry.name} is damaged in the ZIP and was left out.") from error
