"""Data, logs, mails and backups are read by nobody else, whatever the mask and the folder were."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import LazySettings

from webapp.checks import check_private_files, refuse_unsafe_settings
from webapp.instance import BASE_DIR
from webapp.private_files import close_to_others

NOBODY = 65534


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    paths = [folder, *folder.rglob("*")]
    return [f"{mode_of(path):o} {path}" for path in paths if mode_of(path) & 0o077]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An instance folder that somebody made, with files of a careless version."""
    made = tmp_path / "hall"
    (made / "log").mkdir(parents=True)
    (made / "media" / "organisation-1").mkdir(parents=True)
    for name in ("bethe_hall.sqlite3", "bethe_hall.sqlite3-wal", "log/web.log", "media/a", "tool"):
        (made / name).write_text("x", encoding="ascii")
    for path in (made, *made.rglob("*")):
        path.chmod(0o775 if path.is_dir() or path.name == "tool" else 0o664)
    return made


def test_what_others_could_read_is_closed(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "of-another-program"
    elsewhere.write_text("x", encoding="ascii")
    elsewhere.chmod(0o644)
    (folder / "link").symlink_to(elsewhere)
    assert close_to_others(folder) == ""
    assert mode_of(folder) == 0o700
    assert mode_of(folder / "bethe_hall.sqlite3") == mode_of(folder / "log" / "web.log") == 0o600
    assert mode_of(folder / "media" / "organisation-1") == mode_of(folder / "tool") == 0o700
    assert mode_of(elsewhere) == 0o644, "a link leads to what is not ours"


def test_many_files_are_looked_at_only_where_others_can_enter(folder: Path) -> None:
    media = folder / "media"
    assert close_to_others(folder, large=media) == ""
    assert mode_of(media / "a") == 0o600
    (media / "a").chmod(0o644)
    assert close_to_others(folder, large=media) == close_to_others(media, large=media) == ""
    assert mode_of(media / "a") == 0o644, "the folder above keeps others out"
    assert mode_of(media) == 0o700


def test_a_start_corrects_everything_that_it_keeps(
    settings: LazySettings, folder: Path, tmp_path: Path
) -> None:
    backups, database = tmp_path / "backups", tmp_path / "data.sqlite3"
    backups.mkdir()
    for path in (backups / "hall-2026-01-01-000000.tar", backups / "other.tar", database):
        path.write_text("x", encoding="ascii")
        path.chmod(0o644)
    backups.chmod(0o755)
    settings.INSTANCE_DIR, settings.MEDIA_ROOT = folder, tmp_path / "none"
    settings.BACKUP_FOLDER = backups
    name = settings.DATABASES["default"]["NAME"]
    settings.DATABASES["default"]["NAME"] = str(database)
    try:
        assert check_private_files(None) == []
    finally:
        settings.DATABASES["default"]["NAME"] = name
    assert not open_to_others(folder)
    assert mode_of(database) == mode_of(backups / "hall-2026-01-01-000000.tar") == 0o600
    assert mode_of(backups / "other.tar") == 0o644, "not a backup of ours"


def test_a_folder_that_cannot_be_closed_stops_the_start(
    settings: LazySettings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.INSTANCE_DIR = folder

    def refused(self: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(SystemExit, match="can be read by other users of this machine") as end:
        refuse_unsafe_settings()
    assert f"{folder} can be read by other users of this machine (mode 775)" in str(end.value)
    assert "Make it mode 700" in str(end.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to become another user")
def test_another_user_is_refused_in_one_sentence(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "code"
    copy.mkdir()
    text = (BASE_DIR / "webapp" / "private_files.py").read_text(encoding="utf-8")
    (copy / "private_files.py").write_text(text, encoding="utf-8")
    for path in (tmp_path, *tmp_path.parents):
        if not mode_of(path) & 0o001 and path != Path("/"):
            path.chmod(mode_of(path) | 0o011)  # folders of this test's own run
    for path in (copy, copy / "private_files.py"):
        path.chmod(0o755)
    code = (
        f"import sys; sys.path.insert(0, {str(copy)!r}); from pathlib import Path; "
        f"import private_files; print(private_files.close_to_others(Path({str(folder)!r})))"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-B", "-c", code],
        user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "it belongs to somebody else" in done.stdout, done.stderr
    assert mode_of(folder) == 0o775


_WRITE_EVERYTHING = """
import logging, os
import django
django.setup()
from django.core.mail import send_mail
from django.db import connection
from django.core.management import call_command
from webapp.checks import refuse_unsafe_settings
from webapp.files.contents import FileStore
refuse_unsafe_settings()
call_command("migrate", verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE things (name TEXT)")
    cursor.execute("INSERT INTO things VALUES ('x')")
send_mail("Hello", "text", None, ["anna@x.example"])
import structlog
structlog.get_logger("bethe_hall.lines").info("request")
FileStore(1).put_derived("0" * 64, ".png", b"picture")
print(len(os.listdir(os.environ["BETHE_HALL_INSTANCE"])))
os._exit(0)  # the write-ahead log stays as it is
"""


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_a_process_writes_for_its_own_user_alone(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "hall"
    folder.mkdir()
    folder.chmod(0o755)
    environment = {name: os.environ[name] for name in ("PATH",)} | {
        "BETHE_HALL_INSTANCE": str(folder),
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "LINES_LOG": str(folder / "lines.log"),
    }
    done = subprocess.run(
        [sys.executable, "-c", _WRITE_EVERYTHING],
        env=environment, umask=mask, cwd=BASE_DIR, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {path.name for path in folder.rglob("*")}
    assert {"bethe_hall.sqlite3", "bethe_hall.sqlite3-wal", "mail", "lines.log", "media"} <= names
    assert not open_to_others(folder)
