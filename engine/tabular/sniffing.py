"""Detection of an uploaded file's kind from its bytes, never from its name."""

import io
import zipfile

from engine.tabular.decoding import unmarked_utf16
from engine.tabular.source import TableError

_SIGNATURES = (
    (b"%PDF", "a PDF"),
    (
        b"\xd0\xcf\x11\xe0",
        "an old or password-protected Excel file; save it as XLSX without a password",
    ),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a GZIP archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"{\\rtf", "an RTF document"),
    (b"SQLite format 3", "a database"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
_MARKUP = (b"<!doctype", b"<html", b"<?xml", b"<svg", b"<table", b"<style", b"<meta", b"<head")
_PAGE = "a web page or XML, whatever it is called; open it in Excel and save it as XLSX"


def sniff_format(data: bytes) -> str:
    """Return "CSV" or "XLSX".

    Raises TableError naming the actual kind of the file, or that it is empty.
    """
    if not data.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableError("The file is empty. Nothing was saved.")
    for signature, words in _SIGNATURES:
        if data.startswith(signature) and not _looks_like_text(data, signature):
            raise TableError(_not_a_table(words))
    if data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_MARKUP):
        raise TableError(_not_a_table(_PAGE))
    if data.startswith(b"PK"):
        return _sniff_zip(data)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "CSV"
    if unmarked_utf16(data):
        return "CSV"
    if b"\x00" in data[:4096]:
        raise TableError(_not_a_table("a binary file"))
    return "CSV"


def _looks_like_text(data: bytes, signature: bytes) -> bool:
    """Return True if bytes look like text; a program with the letters MZ has zero bytes nearby."""
    return signature.isalnum() and b"\x00" not in data[:256]


def _sniff_zip(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise TableError("The file is a damaged ZIP or XLSX file. Nothing was saved.") from error
    if "xl/workbook.xml" in names:
        return "XLSX"
    if "word/document.xml" in names:
        raise TableError(_not_a_table("a Word document"))
    if "mimetype" in names:
        raise TableError(_not_a_table("an OpenDocument file; open it and save it as XLSX or CSV"))
    raise TableError(_not_a_table("a ZIP archive"))


def _not_a_table(words: str) -> str:
    head, _, advice = words.partition("; ")
    tail = f" {advice[0].upper()}{advice[1:]}." if advice else ""
    return f"The file is {head}, not CSV or XLSX.{tail} Nothing was saved."
