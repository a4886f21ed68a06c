"""A ZIP is sent while it is made."""

import io
import zipfile

from webapp.files.zip_stream import ZipMember, stream_zip, unique_names


def test_it_reads_back() -> None:
    members = [
        ZipMember("a.txt", [b"one", b"two"], compress=True),
        ZipMember("folder/b.bin", [bytes(100_000)]),
        ZipMember("empty", []),
    ]
    content = b"".join(stream_zip(members))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a.txt", "folder/b.bin", "empty"]
        assert archive.read("a.txt") == b"onetwo"
        assert archive.read("folder/b.bin") == bytes(100_000)


def test_memory_stays_at_a_chunk() -> None:
    """Ten megabytes go through; never more than a few chunks wait."""
    chunk = bytes(64 * 1024)
    largest = max(len(piece) for piece in stream_zip([ZipMember("big", [chunk] * 160)]))
    assert largest < 2 * len(chunk)


def test_members_are_read_only_when_their_turn_comes() -> None:
    opened = []

    def chunks(name: str):
        opened.append(name)
        yield b"x" * 1000

    stream = stream_zip([ZipMember("a", chunks("a")), ZipMember("b", chunks("b"))])
    next(stream)
    assert opened == ["a"]


def test_equal_names_are_told_apart() -> None:
    assert unique_names(["a.png", "A.png", "b", "b"]) == ["a.png", "A (2).png", "b", "b (2)"]
