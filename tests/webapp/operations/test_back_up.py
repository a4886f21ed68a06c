"""Back up now: a job that does what manage.py backup does, one at a time."""

import errno
import tarfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from tests.webapp.roles import Page, Part
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.files.storage import array_path, keep_bytes
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.jobs.services import job_cancel
from webapp.operations import backup
from webapp.operations.services import OperationsError, backup_start

ClientOf = Callable[[User], Client]
UUID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def folder(settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where backups go; the rows of a test are in no file of their own, so their copy is a word."""
    settings.BACKUP_FOLDER = tmp_path / "backups"
    copy_by(monkeypatch, lambda path: path.write_bytes(b"rows"))
    return tmp_path / "backups"


def copy_by(monkeypatch: pytest.MonkeyPatch, copy: Callable[[Path], object]) -> None:
    """Have the rows copied by a function of the test."""
    monkeypatch.setattr(backup, "_snapshot", lambda: nullcontext(copy))


def test_it_writes_a_whole_backup_and_says_so(
    otto: User, client_of: ClientOf, folder: Path
) -> None:
    keep_bytes(array_path(otto.organisation_id, "models", UUID), b"weights")
    client_of(otto).post(reverse("operations:back-up"))
    job = Job.objects.get()
    text = Page(client_of(otto).get(reverse("operations:page")))
    assert text.one("region", job.title).element.get("id") == f"job-{job.pk}"
    (header,) = text.element.find_class("page-header")
    assert not Part(header).has("button", "Back up now")
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED, job.error
    (written,) = folder.iterdir()
    assert written.name in job.sentence
    assert written.stat().st_mode & 0o077 == 0
    with tarfile.open(written) as tar:
        names = set(tar.getnames())
    model = f"media/organisation-{otto.organisation_id}/models/{UUID}.npz"
    assert {"backup.json", "database", model} <= names
    verbs = set(AuditLine.objects.values_list("verb", flat=True))
    assert {"started", "finished"} <= verbs


def test_only_one_is_made_at_a_time(otto: User, client_of: ClientOf) -> None:
    backup_start(user=otto)
    with pytest.raises(OperationsError, match="being made already"):
        backup_start(user=otto)
    client = client_of(otto)
    client.post(reverse("operations:back-up"))
    assert Page(client.get(reverse("operations:page"))).one("alert").says("being made already")
    assert Job.objects.count() == 1


def test_the_oldest_of_those_made_here_go(otto: User, folder: Path, settings: LazySettings) -> None:
    settings.BACKUPS_KEPT = 2
    folder.mkdir()
    for name in ("hall-2026-01-01-000000.tar", "hall-2026-01-02-000000.tar", "mine.tar"):
        (folder / name).write_bytes(b"x")
    run_job(backup_start(user=otto).pk, watched=False)
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 3
    assert "mine.tar" in names
    assert "hall-2026-01-01-000000.tar" not in names


def test_a_cancelled_one_leaves_nothing(
    otto: User, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    job = backup_start(user=otto)
    monkeypatch.setattr("webapp.jobs.context.STOP_SECONDS", 0)

    def cancel(path: Path) -> None:
        path.write_bytes(b"rows")
        job_cancel(user=otto, job=job)

    copy_by(monkeypatch, cancel)
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert not folder.exists() or not list(folder.iterdir())
    assert not list(Path(settings.MEDIA_ROOT).glob(".backup-*"))


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    otto: User, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    def full(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    copy_by(monkeypatch, full)
    job = backup_start(user=otto)
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.error.startswith("The server's disk is full. No backup was made")
    assert not list(Path(settings.MEDIA_ROOT).glob(".backup-*"))
    assert not folder.exists() or not list(folder.iterdir())
