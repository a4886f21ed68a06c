"""Uploaded ZIPs are not trusted."""

import io
import struct
import zipfile

import pytest

from engine.datasets.annotations import archive
from engine.datasets.annotations.archive import (
    ArchiveError,
    archive_entries,
    display_name,
    entry_chunks,
    open_archive,
)
from tests.webapp.factories.images import zipped


def entries_of(content: bytes):
    opened = open_archive(io.BytesIO(content))
    return opened, list(archive_entries(opened))


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.png", "/etc/passwd.png", "..\\..\\boot.png", "C:\\boot.png", ".."]
)
def test_it_refuses_names_that_point_outside(name: str) -> None:
    _, (entry,) = entries_of(zipped({name: b"x"}))
    assert "points outside" in (entry.refusal or "")
    assert "/" not in entry.name
    assert "\\" not in entry.name


def test_it_takes_only_the_last_part_of_a_name() -> None:
    _, (entry,) = entries_of(zipped({"photos/summer/leaf.jpg": b"x"}))
    assert (entry.name, entry.refusal) == ("leaf.jpg", None)


def test_it_refuses_links() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        info = zipfile.ZipInfo("link.png")
        info.external_attr = 0o120777 << 16
        made.writestr(info, "/etc/passwd")
    _, (entry,) = entries_of(buffer.getvalue())
    assert entry.refusal == "link.png is a link, not a file, and was left out."


def test_it_passes_over_folders_and_system_files() -> None:
    content = zipped(
        {"photos/": b"", "__MACOSX/._leaf.jpg": b"x", ".DS_Store": b"x", "a.png": b"x"}
    )
    _, found = entries_of(content)
    assert [entry.name for entry in found] == ["a.png"]


def test_it_refuses_entries_with_a_password() -> None:
    content = bytearray(zipped({"leaf.png": b"x"}))
    place = content.rfind(b"PK\x01\x02")
    content[place + 8] |= 1
    _, (entry,) = entries_of(bytes(content))
    assert "password" in (entry.refusal or "")


def test_it_refuses_a_bomb_by_its_ratio() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("bomb.png", bytes(20 * 1024**2))
    _, (entry,) = entries_of(buffer.getvalue())
    assert "600 times" in (entry.refusal or "")


def test_it_stops_at_the_claimed_size_of_an_entry_that_lies() -> None:
    """The directory claims ten bytes; the stream has a million."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("liar.png", bytes(1_000_000))
    content = bytearray(buffer.getvalue())
    place = content.rfind(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<I", 10)
    opened, (entry,) = entries_of(bytes(content))
    with pytest.raises(ArchiveError, match=r"liar\.png"):
        b"".join(entry_chunks(opened, entry))


def test_it_refuses_too_many_entries_before_reading_the_directory(monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 10)
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("the directory was read"))
    with pytest.raises(ArchiveError, match="about 11 entries; at most 10"):
        open_archive(io.BytesIO(ELEVEN))


ELEVEN = zipped({f"{k}.png": b"" for k in range(11)})


@pytest.mark.slow
def test_it_refuses_a_hundred_thousand_entries() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for k in range(100_000):
            made.writestr(f"{k}", b"")
    with pytest.raises(ArchiveError, match="100,000 entries; at most 5,000"):
        open_archive(buffer)


def test_it_refuses_an_archive_that_unpacks_to_too_much(monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 1000)
    with pytest.raises(ArchiveError, match="unpacks to"):
        open_archive(io.BytesIO(zipped({"a.png": bytes(600), "b.png": bytes(600)})))


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_it_refuses_a_zip_that_was_cut_off(keep: float) -> None:
    content = zipped({"a.png": bytes(5000)})
    with pytest.raises(ArchiveError, match="cut off"):
        open_archive(io.BytesIO(content[: int(len(content) * keep)]))


def test_a_damaged_entry_is_named() -> None:
    content = bytearray(zipped({"a.png": b"0123456789" * 50}))
    place = content.find(b"0123456789")
    content[place] ^= 0xFF
    opened, (entry,) = entries_of(bytes(content))
    with pytest.raises(ArchiveError, match=r"a\.png is damaged"):
        b"".join(entry_chunks(opened, entry))


def test_display_name_leaves_out_control_characters() -> None:
    assert display_name("a\x00b\r\n\u202e.png") == "ab.png"


def test_masks_of_a_folder_of_their_own_are_named_as_masks() -> None:
    """They took the place of the pictures of the same names: the pictures were lost."""
    files = {"set/images/a.png": b"1", "set/masks/a.png": b"2", "set/masks/b_mask.png": b"3"}
    with open_archive(io.BytesIO(zipped(files))) as archive:
        entries = list(archive_entries(archive))
    assert [entry.name for entry in entries] == ["a.png", "a.mask.png", "b_mask.png"]
    assert all(entry.refusal is None for entry in entries)


def test_files_of_one_name_are_named_by_their_folders() -> None:
    """Projects of Roboflow and CVAT with train and val were refused for their equal names."""
    files = ["left/a.png", "right/a.png", "b.png", "right/c.png", "right/masks/a.png"]
    with open_archive(io.BytesIO(zipped(dict.fromkeys(files, b"1")))) as archive:
        found = {entry.path: entry.name for entry in archive_entries(archive)}
    assert list(found.values()) == [
        "left_a.png", "right_a.png", "b.png", "right_c.png", "right_a.mask.png",
    ]  # fmt: skip


def test_files_of_one_path_are_refused_and_named() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("x/a.png", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            made.writestr("x/a.png", b"2")
    _, found = entries_of(buffer.getvalue())
    for entry in found:
        assert "a.png is 2 times in the ZIP (x/a.png, x/a.png)" in (entry.refusal or "")


def test_an_entry_without_a_name_is_left_out_and_no_failure() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), b"x")
    with open_archive(buffer) as archive:
        (entry,) = archive_entries(archive)
    assert entry.refusal == "An entry without a name was left out."
