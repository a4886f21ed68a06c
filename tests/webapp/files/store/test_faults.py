"""A folder that cannot be written, or is another one, is an absent store and no error of ours."""

import errno
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client

from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.common.models import Installation
from webapp.files import store
from webapp.files.storage import array_path, keep_bytes
from webapp.files.store.folder import FolderStore
from webapp.jobs import registry, runner, services
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job

KEY = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("number", "name", "expected"),
    [
        (errno.EROFS, None, True),
        (errno.EIO, None, True),
        (errno.ESTALE, "/elsewhere", True),
        (errno.EACCES, "media", True),
        (errno.EACCES, "/etc/shadow", False),
        (errno.ETIMEDOUT, None, False),  # a mail server, say
        (errno.ENOSPC, "media", False),  # a full disk has words of its own
        (errno.ENOENT, "media", False),
    ],
)
def test_errors_of_the_store_are_told_from_others(
    number: int, name: str | None, expected: bool, settings: LazySettings
) -> None:
    if name == "media":
        name = str(Path(settings.MEDIA_ROOT) / "organisation-1" / "models")
    assert store.is_fault(OSError(number, "error", name)) is expected


def test_nothing_is_written_below_a_missing_mount(tmp_path: Path) -> None:
    """By a process that never saw the store: what it wrote was lost when the mount was back."""
    home = FolderStore(tmp_path, lambda: True)
    with pytest.raises(store.StoreAwayError, match="not mounted"):
        home.put(tmp_path / "file")
    home.write_mark("mark")
    home.put(tmp_path / "file")
    FolderStore(tmp_path / "new").put(tmp_path / "new" / "file")  # an installation without a mark


def test_the_database_knows_that_there_was_a_store(bob: User, monkeypatch) -> None:
    Installation.objects.update_or_create(pk=1, defaults={"store_mark": "of another folder"})
    path = array_path(bob.organisation_id, "models", KEY)
    (Path(store.store().root) / ".store").unlink(missing_ok=True)
    with pytest.raises(store.StoreAwayError):
        keep_bytes(path, b"bytes")


def read_only(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_program_that_writes_into_a_read_only_store_is_told_to_wait(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = token_create(user=bob, name="t", may_change=True, days=1)
    client = Client(headers={"authorization": f"Bearer {secret}"}, raise_request_exception=False)
    monkeypatch.setattr("webapp.segmentation.services.image_sets.ImageSet.save", read_only)
    answer = client.post(
        "/api/v1/image-sets",
        {"name": "Set", "foreground": "leaf"},
        content_type="application/json",
    )
    assert answer.status_code == 503
    assert "The store of files does not answer" in answer.json()["detail"]
    assert int(answer["Retry-After"]) > 0


def test_a_job_waits_and_says_so_and_begins_again_with_the_same_numbers(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, said, attempts = [], [], [0, 0]

    def run(context: JobContext) -> dict[str, float]:
        drawn.append(float(context.rng.random()))
        attempts[0] += 1
        if attempts[0] < 3:
            read_only()
        return {"drawn": drawn[-1]}

    def check() -> None:
        attempts[1] += 1
        if attempts[1] == 1:
            raise store.StoreAwayError("still read-only")

    kind = registry.JobKind(name="test.keep", run=run, verb="Keep")
    monkeypatch.setitem(registry._kinds, kind.name, kind)
    monkeypatch.setattr(JobContext, "wait_for_store", lambda self: said.append("waits"))
    monkeypatch.setattr(store, "check", check)
    job = services.job_enqueue(user=bob, kind="test.keep", parameters={}, seed=5)
    runner.run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("succeeded", 1), job.error
    assert len(set(drawn)) == 1
    assert said == ["waits"] * 3
    assert job.result == {"drawn": drawn[0]}


def test_a_job_that_fails_although_the_store_works_is_not_begun_for_ever(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def run(context: JobContext) -> None:
        runs.append(1)
        read_only()

    kind = registry.JobKind(name="test.keep", run=run, verb="Keep")
    monkeypatch.setitem(registry._kinds, kind.name, kind)
    monkeypatch.setattr(JobContext, "wait_for_store", lambda self: None)
    monkeypatch.setattr(store, "check", lambda: None)
    job = services.job_enqueue(user=bob, kind="test.keep", parameters={}, seed=5)
    runner.run_job(job.pk, watched=False)
    assert Job.objects.get(pk=job.pk).state == "failed"
    assert len(runs) == runner.MAX_STORE_FAULTS + 1
