"""Files appear whole or not at all, and are on the disk before they appear."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from engine.core.npz_file import write_npz
from engine.core.whole_file import part_file, whole_file


def test_the_content_is_on_the_disk_before_the_name_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "a", []
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append((path.read_bytes(), handle)))
    with whole_file(path) as file:
        file.write(b"new")
    assert [content for content, _ in seen] == [b"old"]
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def write() -> None:
        with whole_file(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_part_that_is_not_settled_goes(tmp_path: Path) -> None:
    with part_file(tmp_path) as part:
        part.file.write(b"x")
        assert part.path.suffix == ".part"
        assert stat.S_IMODE(part.path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_obeys_the_mask_which_nobody_else_loses_meanwhile(tmp_path: Path) -> None:
    """The mask used to be read by setting it to zero: files of other threads were open to all."""
    masks: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            text = Path("/proc/self/status").read_text(encoding="ascii")
            masks.add(text.partition("Umask:\t")[2].partition("\n")[0])

    if "Umask" not in Path("/proc/self/status").read_text(encoding="ascii"):
        pytest.skip("needs /proc with the mask")
    before = os.umask(0o027)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for k in range(60):
            write_npz(tmp_path / f"{k}.npz", {})
    finally:
        done.set()
        thread.join()
        os.umask(before)
    assert masks == {"0027"}
    assert stat.S_IMODE((tmp_path / "0.npz").stat().st_mode) == 0o640


def test_only_this_writer_renames_what_it_wrote() -> None:
    """Every other writer would have to think of the flush, the rename and the clearing up again."""
    root = Path(__file__).resolve().parent.parent.parent
    found = [
        str(path.relative_to(root))
        for folder in ("engine", "webapp", "tasks")
        for path in (root / folder).rglob("*.py")
        if "mkstemp(" in path.read_text(encoding="utf-8") or "os.umask(" in path.read_text("utf-8")
    ]
    assert found == ["webapp/private_files.py"]  # sets the mask of a whole process at its start
