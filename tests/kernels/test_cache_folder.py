"""Compiled kernels are found again only by the sources that they were compiled from."""

from pathlib import Path

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
    return tmp_path


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


def test_a_place_that_cannot_be_written_is_left_to_numba(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sources / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(sources / "file"))
    cache_folder.use_own_cache_folder()
    assert config.CACHE_DIR == ""
