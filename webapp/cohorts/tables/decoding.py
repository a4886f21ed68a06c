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
_HEAD = 2_000  # characters that tell the encoding
# What stands in no text: control characters, halves of characters, and what nobody defined.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ue000-\uf8ff\ufffe\uffff]")
_MARKS = set("€‚„…‘’“”•–—™ ¡¢£¥§©«»°±·¿½¼¾\u00ad´×")


def decode(data: bytes, delimiters: str) -> tuple[str, str]:
    """Return the text and the name of its encoding; raise TableError where it is in doubt."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _decode_utf16(data, "utf-16"), "UTF-16"
    unmarked = unmarked_utf16(data)
    if unmarked:
        return _decode_utf16(data, unmarked), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError as error:
        text = _western(data)
        if text is not None:
            return text, "Windows-1252"
        raise _not_utf8(data, error, delimiters) from error


def unmarked_utf16(data: bytes) -> str:
    """Return the encoding of UTF-16 that lost its mark; "" where the bytes are none.

    Where they are, the ends of lines and cells are characters of their own, and no control
    character comes out. Latin text has a zero in every second byte; other alphabets need no more
    than these.
    """
    head = data[: 2 * _HEAD]
    if b"\x00" not in head or len(data) % 2:
        return ""
    for name in ("utf-16-le", "utf-16-be"):
        text = head.decode(name, "ignore")
        if re.search(r"[\r\n]", text) and re.search(r"[\t,;|]", text) and not _NO_TEXT.search(text):
            return name
    return ""


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
