"""The same bytes are the same text, from a file, a stream or an archive."""

import gzip
import io
from pathlib import Path

import pytest

from engine.core.errors import InvalidProblemError
from engine.core.text_file import read_text

TEXT = "Łukasz,Ana,3\na,b,2\n"
FORMS = {
    "plain": TEXT.encode(),
    "mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "windows": TEXT.replace("\n", "\r\n").encode(),
    "old Macintosh": TEXT.replace("\n", "\r").encode(),
    "gzip": gzip.compress(TEXT.encode()),
    "gzip with a mark": gzip.compress(b"\xef\xbb\xbf" + TEXT.encode()),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_every_form_is_the_same_text(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes(data)
    assert read_text(path) == TEXT
    assert read_text(io.BytesIO(data)) == TEXT
    # As standard input does where the console has another encoding.
    assert read_text(io.TextIOWrapper(io.BytesIO(data), encoding="cp1252")) == TEXT
    assert read_text(io.StringIO("\ufeff" + TEXT)) == TEXT


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("a,b,1\nJosé,b,2\n".encode("cp1252"), r"line 2 is not UTF-8 text \(byte 0xE9\)"),
        (TEXT.encode("utf-16"), "UTF-16"),
        (b"a\0b", "not text"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-6], "damaged"),
        (b"\x1f\x8bnonsense", "damaged"),
        (gzip.compress("é".encode("cp1252"), mtime=0), "line 1 is not UTF-8"),
    ],
)
def test_what_is_no_such_text_is_refused_alike(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes(data)
    for source in (path, io.BytesIO(data)):
        with pytest.raises(InvalidProblemError, match=words):
            read_text(source)
