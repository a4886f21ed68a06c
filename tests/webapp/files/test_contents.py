"""Files are stored under their digest, whole or not at all."""

import errno
import hashlib
from pathlib import Path

import pytest

from webapp.files.contents import FileStore, StorageFullError, content_remove

pytestmark = pytest.mark.django_db  # a folder without a mark asks the database


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_it_stores_under_the_sha_256(media_root: Path) -> None:
    content = FileStore(7).put([b"leaf", b"scan"])
    assert content.digest == hashlib.sha256(b"leafscan").hexdigest()
    assert content.size == 8
    assert FileStore(7).path(content.digest).read_bytes() == b"leafscan"


def test_equal_bytes_are_kept_once(media_root: Path) -> None:
    for _ in range(2):
        FileStore(7).put([b"same"])
    assert len(files_in(media_root)) == 1


def test_organisations_share_nothing(media_root: Path) -> None:
    first, second = FileStore(7).put([b"same"]), FileStore(8).put([b"same"])
    assert first.digest == second.digest
    assert FileStore(7).path(first.digest) != FileStore(8).path(first.digest)
    content_remove(organisation_id=7, digest=first.digest)
    assert FileStore(8).path(first.digest).exists()
    assert not FileStore(7).path(first.digest).exists()


@pytest.mark.parametrize("digest", ["../../../etc/passwd", "A" * 64, "0" * 63, ""])
def test_a_path_needs_a_digest(digest: str) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        FileStore(7).path(digest)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_while_flushing_leaves_nothing(media_root, monkeypatch, code) -> None:
    def full(_: int) -> None:
        raise OSError(code, "No space left on device")

    monkeypatch.setattr("engine.core.whole_file.os.fsync", full)
    with pytest.raises(StorageFullError, match="disk is full"):
        FileStore(7).put([b"x" * 100_000])
    assert files_in(media_root) == []


def test_a_stream_that_breaks_leaves_nothing(media_root: Path) -> None:
    def broken():
        yield b"first"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        FileStore(7).put(broken())
    assert files_in(media_root) == []


def test_files_are_private(media_root: Path) -> None:
    content = FileStore(7).put([b"leaf"])
    assert FileStore(7).path(content.digest).stat().st_mode & 0o077 == 0


def test_removing_takes_what_was_derived(media_root: Path) -> None:
    content = FileStore(7).put([b"leaf"])
    FileStore(7, "derived").put_derived(content.digest, ".thumb.jpg", b"small")
    content_remove(organisation_id=7, digest=content.digest)
    assert files_in(media_root) == []
