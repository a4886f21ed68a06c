"""Compiled kernels are found again only by the sources that they were compiled from."""

import atexit
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

import pytest
from numba import config

from engine.kernels import cache_folder


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "top.py").write_text("from inner import f\n", encoding="utf-8")
    (tmp_path / "inner.py").write_text("def f(): return 1\n", encoding="utf-8")
    monkeypatch.setattr(cache_folder, "_SOURCES", tmp_path)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def close(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let no file be written below folders that are there: permissions do not stop root."""
    write = tempfile.TemporaryFile

    def refuse(dir: Path) -> IO[bytes]:
        if any(dir.is_relative_to(folder) for folder in folders):
            raise PermissionError(13, "Permission denied")
        return write(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)


def test_an_edit_of_any_file_asks_for_another_folder_and_removes_the_old_one(sources: Path) -> None:
    cache_folder.use_own_cache_folder()
    before = Path(config.CACHE_DIR)
    assert before.is_dir()
    cache_folder.use_own_cache_folder()
    assert Path(config.CACHE_DIR) == before
    (sources / "inner.py").write_text("def f(): return 2\n", encoding="utf-8")
    cache_folder.use_own_cache_folder()
    assert Path(config.CACHE_DIR) != before
    assert list((sources / "__pycache__").iterdir()) == [Path(config.CACHE_DIR)]


def test_a_given_folder_is_used_and_what_others_keep_there_stays(
    sources: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path_factory.mktemp("given")
    (given / "kernels-of-another").mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(given))
    cache_folder.use_own_cache_folder()
    assert Path(config.CACHE_DIR).parent == given
    assert (given / "kernels-of-another").is_dir()


def test_a_given_place_that_cannot_be_written_is_passed_over(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sources / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(sources / "file"))
    cache_folder.use_own_cache_folder()
    assert Path(config.CACHE_DIR).parent == sources / "__pycache__"


def test_a_closed_installation_keeps_kernels_with_the_user_even_if_the_folder_is_there(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_folder.use_own_cache_folder()
    inside = Path(config.CACHE_DIR)
    close(monkeypatch, sources / "__pycache__")
    cache_folder.use_own_cache_folder()
    assert Path(config.CACHE_DIR) == sources / "cache" / "bethe-hall" / inside.name
    assert inside.is_dir()


@pytest.mark.parametrize("cache", ["cache", "relative"])
def test_where_nothing_can_be_written_kernels_last_as_long_as_the_process(
    sources: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    (sources / "__pycache__").touch()
    (sources / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(sources / cache) if cache == "cache" else cache)
    (sources / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(sources / "temporary"))
    at_exit: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", lambda f, *given: at_exit.append(partial(f, *given)))
    cache_folder.use_own_cache_folder()
    folder = Path(config.CACHE_DIR)
    assert folder.parent == sources / "temporary"
    assert folder.stat().st_mode & 0o077 == 0
    with monkeypatch.context() as fork:
        fork.setattr(os, "getpid", lambda: -1)
        at_exit[0]()
    assert folder.is_dir()
    at_exit[0]()
    assert not folder.exists()
