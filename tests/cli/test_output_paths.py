"""Places where a command may not write are refused before its work."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.cli.output_paths import check_writable, make_folder
from engine.core.errors import InvalidProblemError


@pytest.fixture
def protect(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Let a path be closed to writers: permissions do not stop root."""

    def protect(place: Path) -> None:
        allowed = os.access
        monkeypatch.setattr(
            "engine.cli.output_paths.os.access",
            lambda path, mode: Path(path) != place and allowed(path, mode),
        )

    return protect


def test_a_write_protected_file_is_refused(tmp_path: Path, protect: Callable[[Path], None]) -> None:
    mine = tmp_path / "m.npz"
    check_writable(mine)
    mine.touch()
    check_writable(mine)
    protect(mine)
    with pytest.raises(InvalidProblemError, match=r"m\.npz: this file is write-protected"):
        check_writable(mine)


def test_a_write_protected_folder_is_refused(
    tmp_path: Path, protect: Callable[[Path], None]
) -> None:
    assert make_folder(tmp_path / "a" / "b").is_dir()
    protect(tmp_path / "a")
    with pytest.raises(InvalidProblemError, match="this folder cannot be written to"):
        make_folder(tmp_path / "a")
    with pytest.raises(InvalidProblemError, match="its folder does not exist or cannot be"):
        check_writable(tmp_path / "a" / "m.npz")


def test_years_are_not_simulated_for_a_folder_that_cannot_be_written(
    tmp_path: Path,
    protect: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    protect(tmp_path)
    monkeypatch.setattr("engine.cli.simulate.simulate_university", None)
    assert main(["roommates", "simulate", "--students", "60", "--out", str(tmp_path)]) == 2
    assert "this folder cannot be written to" in capsys.readouterr().err
