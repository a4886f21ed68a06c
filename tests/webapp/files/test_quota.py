"""An organisation that stores too much is told so before it keeps more: files and runs alike."""

import contextlib
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.utils import timezone

from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, User
from webapp.cohorts.models import Draft
from webapp.files import quota
from webapp.files.quota import QuotaError, check_quota, refresh_count, stored_bytes
from webapp.files.storage import organisation_folder
from webapp.jobs import registry
from webapp.jobs.models import Job, JobState
from webapp.jobs.services import job_cancel, job_enqueue

SURVEY = b"id,Tidy,Smokes\n" + b"".join(
    f"N{k},{1 + k % 5},{'Yes' if k % 2 else 'No'}\n".encode() for k in range(12)
)


def write(user: User, name: str, size: int) -> Path:
    """Store a file of so many bytes, as an upload does: written first, then counted."""
    refresh_count(user.organisation)
    path = organisation_folder(user.organisation) / "files" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    try:
        with transaction.atomic():
            check_quota(user.organisation, written=size)
    except QuotaError:
        path.unlink()
        raise
    return path


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were walked, in order."""
    walked: list[Path] = []
    size_of = quota._size_of
    monkeypatch.setattr(quota, "_size_of", lambda folder: walked.append(folder) or size_of(folder))
    return walked


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(
        registry._kinds, "test.run", registry.JobKind("test.run", run=lambda c: {}, verb="Run")
    )
    return "test.run"


@pytest.fixture
def full(bob: User, settings: object) -> User:
    """Bob's organisation stores 3,000 bytes and may store 2,000."""
    folder = organisation_folder(bob.organisation) / "files" / "deep"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (folder / name).write_bytes(b"x" * 1500)
    settings.ORGANISATION_QUOTA_GB = 2e-6
    return bob


def test_it_adds_up_every_file_of_the_organisation_and_no_other(full: User, mallory: User) -> None:
    assert stored_bytes(full.organisation) == 3000
    assert stored_bytes(mallory.organisation) == 0
    check_quota(mallory.organisation)
    with pytest.raises(QuotaError, match=r"take 3e-06 GB of the 2e-06 GB that it may use\. R"):
        check_quota(full.organisation)


def test_an_upload_over_the_quota_saves_nothing(full: User, client_of: Callable) -> None:
    file = SimpleUploadedFile("survey.csv", SURVEY)
    page = client_of(full).post("/cohorts/import/", {"file": file})
    assert page.status_code == 422
    assert Page(page, status=422).has("alert", "Remove images, predictions or cohorts")
    assert not Draft.objects.exists()
    assert stored_bytes(full.organisation) == 3000


def test_other_organisations_go_on(full: User, mallory: User, client_of: Callable) -> None:
    file = SimpleUploadedFile("survey.csv", SURVEY)
    assert client_of(mallory).post("/cohorts/import/", {"file": file}).status_code == 302


def test_files_in_a_row_do_not_pass_the_limit(bob: User, settings: object, walks: list) -> None:
    """The folder used to be looked at every 30 seconds only, and what came between was free."""
    settings.ORGANISATION_QUOTA_GB = 5e-6
    for k in range(5):
        write(bob, str(k), 1000)
    assert len(walks) == 1
    with pytest.raises(QuotaError, match=r"take 5.5e-06 GB"):
        write(bob, "one more", 500)
    assert len(walks) == 2  # before it refuses, it looks
    assert stored_bytes(bob.organisation) == 5000


def test_removing_makes_room_at_once(bob: User, settings: object) -> None:
    settings.ORGANISATION_QUOTA_GB = 2e-6
    first = write(bob, "first", 1800)
    with pytest.raises(QuotaError):
        write(bob, "second", 1800)
    first.unlink()
    write(bob, "second", 1800)


def test_what_was_not_counted_is_found_within_half_a_minute(bob: User, settings: object) -> None:
    settings.ORGANISATION_QUOTA_GB = 2e-6
    write(bob, "first", 100)
    (organisation_folder(bob.organisation) / "a thumbnail").write_bytes(b"x" * 5000)
    Organisation.objects.update(stored_at=timezone.now() - timedelta(seconds=31))
    with pytest.raises(QuotaError, match=r"take 5.2e-06 GB"):
        write(bob, "second", 100)


def test_the_folder_is_walked_outside_the_transaction(
    bob: User, client_of: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite nobody could write meanwhile."""
    depths: list[int] = []
    monkeypatch.setattr(
        quota, "_size_of", lambda folder: depths.append(len(connection.savepoint_ids)) or 0
    )
    file = SimpleUploadedFile("survey.csv", SURVEY)
    assert client_of(bob).post("/cohorts/import/", {"file": file}).status_code == 302
    assert depths == [0]


def test_what_others_store_during_a_walk_stays_counted(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(bob, "first", 100)

    def size_while_another_stores(folder: Path) -> int:
        check_quota(bob.organisation, written=70)
        return 5000

    Organisation.objects.update(stored_at=timezone.now() - timedelta(seconds=31))
    monkeypatch.setattr(quota, "_size_of", size_while_another_stores)
    refresh_count(bob.organisation)
    assert Organisation.objects.get(pk=bob.organisation_id).stored_bytes == 5070


def test_of_two_walks_at_once_one_counts(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "_size_of", lambda folder: refresh_once_more() or 5000)

    def refresh_once_more() -> None:
        monkeypatch.setattr(quota, "_size_of", lambda folder: 5000)
        refresh_count(bob.organisation)

    refresh_count(bob.organisation)
    assert Organisation.objects.get(pk=bob.organisation_id).stored_bytes == 5000


def test_the_promises_are_asked_for_once_a_file(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    write(bob, "first", 100)
    monkeypatch.setattr(quota, "_promises", [lambda key, since: asked.append(key) or 0])
    write(bob, "second", 100)
    assert asked == [bob.organisation_id]


def test_a_run_is_refused_before_it_starts(bob: User, settings: object, kind: str) -> None:
    settings.ORGANISATION_QUOTA_GB = 2e-6
    write(bob, "first", 1500)
    with pytest.raises(QuotaError, match=r"take 2\.1e-06 GB .* use, 6e-07 GB of it for"):
        job_enqueue(user=bob, kind=kind, parameters={}, stores=600)
    assert not Job.objects.exists()
    job_enqueue(user=bob, kind=kind, parameters={}, stores=500)


def test_a_run_that_stores_nothing_starts_even_then(full: User, kind: str) -> None:
    job_enqueue(user=full, kind=kind, parameters={})
    assert Job.objects.count() == 1


def test_waiting_runs_keep_their_room(bob: User, settings: object, kind: str) -> None:
    settings.ORGANISATION_QUOTA_GB = 2e-6
    first = job_enqueue(user=bob, kind=kind, parameters={}, stores=1500)
    with pytest.raises(QuotaError, match="GB of it for computations"):
        job_enqueue(user=bob, kind=kind, parameters={}, stores=1500)
    with pytest.raises(QuotaError, match="GB of it for computations"):
        write(bob, "file", 600)
    write(bob, "file", 400)
    job_cancel(user=bob, job=first)
    job_enqueue(user=bob, kind=kind, parameters={}, stores=1500)


def test_rooms_are_reserved_for_each_organisation(
    bob: User, mallory: User, settings: object, kind: str
) -> None:
    settings.ORGANISATION_QUOTA_GB = 2e-6
    for user in (bob, mallory):
        job_enqueue(user=user, kind=kind, parameters={}, stores=1500)


def test_what_a_run_wrote_counts_from_its_end_on(
    bob: User, settings: object, kind: str, walks: list
) -> None:
    settings.ORGANISATION_QUOTA_GB = 2e-6
    job = job_enqueue(user=bob, kind=kind, parameters={}, stores=1500)
    (organisation_folder(bob.organisation) / "files").mkdir(parents=True)
    (organisation_folder(bob.organisation) / "files" / "result").write_bytes(b"x" * 1200)
    Job.objects.filter(pk=job.pk).update(state=JobState.SUCCEEDED, finished_at=timezone.now())
    assert len(walks) == 1
    write(bob, "small", 300)  # what was reserved still stands: nothing is walked
    assert len(walks) == 1
    write(bob, "larger", 400)  # what is there is less than what was reserved
    assert len(walks) == 2
    with pytest.raises(QuotaError, match=r"take 2.3e-06 GB"):
        write(bob, "too much", 400)


@pytest.mark.django_db(transaction=True)
def test_of_two_runs_at_once_one_gets_the_last_room(
    bob: User, settings: object, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite one after the other: its transactions are, and its test database is in memory."""
    settings.ORGANISATION_QUOTA_GB = 2e-6
    refused: list[QuotaError] = []

    def start() -> None:
        try:
            job_enqueue(user=bob, kind=kind, parameters={}, stores=1500)
        except QuotaError as error:
            refused.append(error)

    if connection.vendor == "postgresql":
        both_have_read = threading.Barrier(2)
        promised = quota._promised

        def read_and_wait(*asked: object) -> int:
            """Each waits until the other has read as well, which the lock makes impossible."""
            value = promised(*asked)
            with contextlib.suppress(threading.BrokenBarrierError):
                both_have_read.wait(timeout=1)
            return value

        def start_and_close() -> None:
            start()
            connection.close()

        monkeypatch.setattr(quota, "_promised", read_and_wait)
        threads = [threading.Thread(target=start_and_close) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        start()
        start()
    assert len(refused) == 1
    assert Job.objects.count() == 1
