"""Reader of ZIP files of pictures and annotations, which are not trusted.

Names are used for pairing and display only, never as paths. Links, folders, encrypted and
unsupported entries are refused one by one. A file that unpacks to far more than its packed size,
or an archive with too many entries, is refused as a whole before anything is read.
"""

import errno
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.label_tables import is_label_table
from engine.datasets.image_names import name_in_set, shortened

MAX_ENTRIES = 5_000
CHUNK_BYTES = 1 << 16
MAX_ENTRY_BYTES = 200 * 1024**2
MAX_TOTAL_BYTES = 4 * 1024**3
LONGEST_NAME = 200
# Photographs do not compress and masks by a factor of some hundreds; DEFLATE stops at 1,032.
MAX_RATIO = 600
RATIO_MATTERS_ABOVE_BYTES = 1024**2
_CLASSES, _OBJECTS = "segmentationclass/", "segmentationobject/"
_OF_OBJECTS = "It numbers objects whose classes SegmentationClass has, which were taken instead."
_SHOWS = "It shows labels to people; the labels themselves were taken instead."
_ARRAYS = "It holds the numbers of a label picture, which was taken instead."
_OF_EXPORT = "It describes the export and is no picture."
SYSTEM_FILES = {"thumbs.db", "desktop.ini"}  # left in folders by Windows
_DESCRIPTIONS = (".yaml", ".yml", ".md", ".html")
SUPPORTED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# Read errors of a damaged entry: from the container, from DEFLATE, from the end of the file, and
# from a directory whose offsets lie outside the file.
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
_IS_UTF_8 = 0x800
_UNICODE_PATH = 0x7075
ENCODINGS = {
    "gb18030": "Chinese, simplified (GBK)",
    "big5": "Chinese, traditional (Big5)",
    "shift_jis": "Japanese (Shift JIS)",
    "euc_kr": "Korean (EUC-KR)",
    "cp866": "Cyrillic (DOS)",
    "cp850": "Western European (DOS)",
    "cp1252": "Western European (Windows)",
}
"""Encodings that a person may choose for names of a ZIP that does not state theirs."""


class ArchiveError(InvalidProblemError):
    """Refusal of an archive or of one entry; the message is one sentence."""


class NamesError(ArchiveError):
    """Refusal of an archive with ambiguous names; ``choices`` has a sample for each encoding."""

    def __init__(self, choices: dict[str, str]) -> None:
        super().__init__(
            "The names in this ZIP are not in Unicode, and it does not state their encoding. "
            "Choose it, or pack the files again with names in UTF-8. Nothing was saved."
        )
        self.choices = choices


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One file of an archive: its name, or the sentence with which it is refused.

    ``path`` is its place in the archive. ``left_out`` is no fault: the entry repeats or describes
    what was taken.
    """

    name: str
    info: zipfile.ZipInfo
    refusal: str | None = None
    path: str = ""
    left_out: str = ""


def display_name(raw: str) -> str:
    """Return the last part of a path of any system, without control characters.

    macOS writes accented letters as two characters: they are joined, so that a file has one name
    on every system. Names that are too long are shortened, each to a unique name.
    """
    last = unicodedata.normalize("NFC", PurePosixPath(raw.replace("\\", "/")).name)
    return shortened("".join(c for c in last if c.isprintable()).strip(), LONGEST_NAME)


def open_archive(file: IO[bytes]) -> zipfile.ZipFile:
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


def check_entry_count(file: IO[bytes]) -> None:
    """Refuse an archive by the count in its end record, before its directory is read."""
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


def archive_entries(archive: zipfile.ZipFile, encoding: str = "") -> list[ArchiveEntry]:
    """Return every file of the archive with its refusal, if any; system files are skipped.

    Files of one name in several folders, such as train and val, get the folder in their names:
    train_a.png. Names that are still equal are refused, since one file would replace the others. Of
    VOC's two maps of a picture, which share a name, the map of classes is taken.

    Raises
    ------
    NamesError
        If the encoding of the names is unclear and ``encoding`` is empty.
    """
    found = _with_folders(list(_left_out(_visible_entries(archive, encoding))))
    paths: dict[str, list[str]] = {}
    for entry in found:
        if entry.refusal is None and not entry.left_out:
            paths.setdefault(entry.name, []).append(entry.path)
    return [_refused_where_doubled(entry, paths.get(entry.name, [])) for entry in found]


def _refused_where_doubled(entry: ArchiveEntry, same: list[str]) -> ArchiveEntry:
    if entry.refusal is not None or entry.left_out or len(same) < 2:
        return entry
    others = ", ".join(_shown(path) for path in same[:3])
    return replace(
        entry,
        refusal=f"{entry.name} is {len(same)} times in the ZIP ({others}). None was "
        "stored; rename all but one, or put masks into a folder named masks.",
    )


def _shown(path: str) -> str:
    """Return a path within an archive without control characters."""
    return "".join(c for c in path if c.isprintable())[:120]


def _visible_entries(archive: zipfile.ZipFile, encoding: str) -> Iterator[ArchiveEntry]:
    infos = archive.infolist()
    for info, path in zip(infos, _decoded_paths(infos, encoding), strict=True):
        name = display_name(path)
        hidden = name.startswith(".") and name not in {"..", "."}
        hidden |= name.casefold() in SYSTEM_FILES
        if path.endswith("/") or path.startswith("__MACOSX/") or hidden:
            continue
        yield ArchiveEntry(display_name(name_in_set(path)), info, entry_refusal(info, path), path)


def _decoded_paths(infos: list[zipfile.ZipInfo], encoding: str) -> list[str]:
    """Return the paths of entries as Unicode: as stated, as UTF-8, or in the chosen encoding."""
    paths: list[str | bytes] = [_stated_path(info) for info in infos]
    unknown = [path for path in paths if isinstance(path, bytes)]
    if unknown and encoding not in ENCODINGS:
        raise NamesError(_choices(unknown))
    try:
        return [path.decode(encoding) if isinstance(path, bytes) else path for path in paths]
    except UnicodeDecodeError as error:
        raise NamesError(_choices(unknown)) from error


def _stated_path(info: zipfile.ZipInfo) -> str | bytes:
    """Return a path as text if its encoding is clear, otherwise as bytes."""
    if info.flag_bits & _IS_UTF_8 or info.filename.isascii():
        return info.filename
    try:
        raw = info.filename.encode("cp437")
    except UnicodeEncodeError:
        return info.filename
    if found := _unicode_path(info.extra, raw):
        return found
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _unicode_path(extra: bytes, raw: bytes) -> str:
    """Return the path in extra field 0x7075 if its checksum is that of the name."""
    place = 0
    while place + 4 <= len(extra):
        kind, size = struct.unpack("<HH", extra[place : place + 4])
        field = extra[place + 4 : place + 4 + size]
        if kind == _UNICODE_PATH and len(field) > 5 and field[0] == 1:
            (check,) = struct.unpack("<I", field[1:5])
            if check == zlib.crc32(raw):
                return field[5:].decode("utf-8", "ignore")
        place += 4 + size
    return ""


def _choices(unknown: list[bytes]) -> dict[str, str]:
    """Return a sample of the names in every encoding that they may have."""
    found = {}
    for encoding in ENCODINGS:
        try:
            names = [display_name(raw.decode(encoding)) for raw in unknown]
        except UnicodeDecodeError:
            continue
        if all(names):
            found[encoding] = ", ".join(names[:2])
    return found


def _left_out(entries: Iterator[ArchiveEntry]) -> Iterator[ArchiveEntry]:
    """Mark entries of exports besides images and labels: views, arrays, tables, descriptions."""
    found = list(entries)
    has_classes = any(_CLASSES in _folders(entry.path) for entry in found)
    for entry in found:
        reason = "" if entry.refusal else _why_left_out(entry, has_classes=has_classes)
        yield replace(entry, left_out=reason)


def _folders(path: str) -> str:
    return f"{PurePosixPath(path.replace(chr(92), '/')).parent}/".casefold()


def _why_left_out(entry: ArchiveEntry, *, has_classes: bool) -> str:
    folders, name = _folders(entry.path), PurePosixPath(entry.path).name.casefold()
    if "visualization/" in folders or "visualisation/" in folders:
        return _SHOWS
    if has_classes and "npy/" in folders and name.endswith(".npy"):
        return _ARRAYS
    if has_classes and _OBJECTS in folders:
        return _OF_OBJECTS
    if is_label_table(name):
        return "It names the classes."
    if name.startswith("readme") or name.endswith(_DESCRIPTIONS) or "imagesets/" in folders:
        return _OF_EXPORT
    return ""


def _with_folders(entries: list[ArchiveEntry]) -> list[ArchiveEntry]:
    """Add folders to the names of files that would otherwise share a name.

    All files below such a folder are renamed alike, so that a mask still matches its image.
    """
    same: dict[str, list[ArchiveEntry]] = {}
    for entry in entries:
        if entry.refusal is None and not entry.left_out:
            same.setdefault(entry.name, []).append(entry)
    telling: set[str] = set()
    for group in same.values():
        if len(group) > 1:
            parts = [_parts(entry.path) for entry in group]
            common = set.intersection(*(set(one) for one in parts))
            telling |= {part for one in parts for part in one if part not in common}
    if not telling:
        return entries
    return [_named_by(entry, telling) for entry in entries]


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path.replace("\\", "/")).parent.parts


def _named_by(entry: ArchiveEntry, telling: set[str]) -> ArchiveEntry:
    own = [part for part in _parts(entry.path) if part in telling]
    if not own or entry.refusal is not None:
        return entry
    name = display_name("_".join([*own, entry.name]))
    return replace(entry, name=name)


def entry_refusal(info: zipfile.ZipInfo, path: str) -> str | None:
    """Return the reason why an entry is refused, or None."""
    name = display_name(path) or "An entry without a name"
    parts = PurePosixPath(path.replace("\\", "/")).parts
    mode = info.external_attr >> 16
    if ".." in parts or (parts and (parts[0].startswith("/") or parts[0].endswith(":"))):
        return f"{name} points outside the ZIP and was left out."
    if not display_name(path):
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
    """Yield the bytes of an entry, at most the size stated in the directory.

    Raises
    ------
    ArchiveError
        If the entry is damaged or longer than stated.
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
            raise  # an error of the disk, not of the archive
        raise ArchiveError(f"{entry.name} is damaged in the ZIP and was left out.") from error


class ArchivePictures:
    """Lookup of an archive's images by the paths that annotations beside them name.

    Parameters
    ----------
    names : names in the set of the archive's images, by path in the archive
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = dict(names)
        self._by_name: dict[str, list[str]] = {}
        self._by_stem: dict[str, list[str]] = {}
        for path in names:
            pure = PurePosixPath(path)
            self._by_name.setdefault(pure.name.casefold(), []).append(path)
            self._by_stem.setdefault(pure.stem.casefold(), []).append(path)

    def find(self, reference: str, about: str) -> str | None:
        """Return the name in the set of the image that an annotation means, or None.

        Parameters
        ----------
        reference : the annotation's name for its image: a name, or a path from another computer
        about : path of the annotation in the archive

        Raises
        ------
        ArchiveError
            If several images match equally well.
        """
        parts = PurePosixPath(reference.replace("\\", "/")).parts
        wanted = tuple(part for part in parts if part not in {".", "..", "/"})
        if not wanted:
            return None
        named = self._by_name.get(wanted[-1].casefold())
        named = named or self._by_stem.get(PurePosixPath(wanted[-1]).stem.casefold(), [])
        if len(named) <= 1:
            return self.names[named[0]] if named else None
        ranked = sorted(((_likeness(path, wanted, about), path) for path in named), reverse=True)
        if ranked[0][0] == ranked[1][0]:
            raise ArchiveError(
                f"{display_name(about)} means {_shown(reference)}, which may be "
                f"{_shown(ranked[0][1])} or {_shown(ranked[1][1])}. Nothing of it was saved."
            )
        return self.names[ranked[0][1]]


def _likeness(path: str, wanted: tuple[str, ...], about: str) -> tuple[int, int]:
    """Return how much of a path an annotation names, and how close it lies to the annotation."""
    parts = PurePosixPath(path).parts
    ending = 0
    while ending < min(len(parts), len(wanted)) and (
        parts[-1 - ending].casefold() == wanted[-1 - ending].casefold()
    ):
        ending += 1
    words = {word for part in PurePosixPath(about).parts for word in _words(part)}
    return ending, sum(part.casefold() in words for part in parts[:-1])


def _words(part: str) -> set[str]:
    """Return a folder's or file's name and its words: val is a word of instances_val.json."""
    lower = part.casefold()
    letters = "".join(c if c.isalnum() else " " for c in lower)
    return {lower, *letters.split()}
