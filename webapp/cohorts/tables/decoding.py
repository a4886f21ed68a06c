"""From bytes to text: UTF-8, UTF-16, and Windows' Western letters where they are beyond doubt."""

import re

from webapp.cohorts.tables.source import TableError

# Where a file without a mark is not UTF-8, its bytes mean different letters in different code
# pages, and nothing in it says which. It is read as Windows-1252 only if all its letters beyond
# ASCII belong to one of the languages that are written with it; else staff are asked to save it
# anew, for a name that is read wrong is worse than a file that is refused.
_LANGUAGES = {
    "German": "äöüß",
    "French": "àâæçéèêëîïôœùûüÿ",
    "Spanish": "áéíñóúüªº",
    "Portuguese": "àáâãçéêíóôõúªº",
    "Italian": "àèéìòóùú",
    "Nordic": "åäöæøéü",
    "Dutch": "áèéêëïóöü",
    "Catalan": "àçèéíïòóúü",
}
_MARKS = set("€‚„…‘’“”•–—™ ¡¢£¥§©«»°±·¿½¼¾\u00ad´×")


def decode(data: bytes, delimiters: str) -> tuple[str, str]:
    """Return the text and the name of its encoding; raise TableError where it is in doubt."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _decode_utf16(data, "utf-16"), "UTF-16"
    for name in ("utf-16-le", "utf-16-be"):
        if _looks_like(data, name):
            return _decode_utf16(data, name), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError as error:
        text = _western(data)
        if text is not None:
            return text, "Windows-1252"
        raise _not_utf8(data, error, delimiters) from error


def _looks_like(data: bytes, name: str) -> bool:
    """Whether every second byte of the beginning is zero, as in UTF-16 without its mark."""
    head = data[:400]
    zeros = head[1::2] if name.endswith("le") else head[::2]
    others = head[::2] if name.endswith("le") else head[1::2]
    return len(head) >= 8 and zeros.count(0) > 0.8 * len(zeros) and others.count(0) == 0


def _decode_utf16(data: bytes, name: str) -> str:
    try:
        return data.decode(name)
    except UnicodeDecodeError as error:
        raise TableError(
            "The file begins like UTF-16 text but is not. Save the file as “CSV UTF-8”."
        ) from error


def _western(data: bytes) -> str | None:
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    # Three letters beyond ASCII in a row are another alphabet; and Italian has its accents where
    # words end.
    strange = re.search(r"[^\W\x00-\x7f]{3}|[ìò](?=\w)", text.lower())
    beyond = {c for c in text.lower() if not c.isascii()} - _MARKS
    if strange is None and any(beyond <= set(letters) for letters in _LANGUAGES.values()):
        return text
    return None


def _not_utf8(data: bytes, error: UnicodeDecodeError, delimiters: str) -> TableError:
    before = data[: error.start]
    row = before.count(b"\n") + 1
    line = before.rsplit(b"\n", 1)[-1].decode("utf-8", "replace")
    header = data.split(b"\n", 1)[0].decode("utf-8", "replace")
    position = line.count(max(delimiters, key=header.count)) + 1
    return TableError(
        f"Row {row:,}, column {position}: the text is not UTF-8, and its letters could be of "
        "several alphabets. Save the file as “CSV UTF-8”."
    )
