"""A job that waits for the processor says so, and how many others want it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.jobs import claims, processor, services
from webapp.jobs.models import Job, JobState
from webapp.jobs.processor import WINDOW_SECONDS, ProcessorWatch
from webapp.jobs.watchdog import Watchdog
from webapp.monitoring import readiness

ClientOf = Callable[[User], Client]
SECOND = 10**9


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nine other processes that run, and one that sleeps."""
    monkeypatch.setattr(processor, "_PROC", tmp_path)
    for pid, state in [*((100 + k, "R") for k in range(9)), (200, "S")]:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (name) R) {state} 1 2 3")
    for thread in (1, 2):
        (tmp_path / "self" / "task" / str(thread)).mkdir(parents=True)
    return tmp_path


def set_times(proc: Path, ran: float, waited: float) -> None:
    for thread in (1, 2):
        text = f"{int(ran / 2 * SECOND)} {int(waited / 2 * SECOND)} 7\n"
        (proc / "self" / "task" / str(thread) / "schedstat").write_text(text)


@pytest.mark.parametrize(
    ("ran", "waited", "expected"),
    [
        (0.5, 15.0, 9),  # two threads that wait nearly all of eight seconds
        (12.0, 3.0, 0),  # it mostly runs
        (0.1, 0.3, 0),  # it mostly sleeps, as a job that reads files
    ],
)
def test_a_process_that_mostly_waits_names_its_competitors(
    proc: Path, ran: float, waited: float, expected: int
) -> None:
    watch = ProcessorWatch()
    set_times(proc, 100, 100)
    assert watch.competitors(0.0) == 0
    set_times(proc, 100 + ran, 100 + waited)
    assert watch.competitors(WINDOW_SECONDS / 2) == 0, "the window is not over"
    assert watch.competitors(WINDOW_SECONDS) == expected
    set_times(proc, 108 + ran, 100 + waited)
    assert watch.competitors(2 * WINDOW_SECONDS) == 0, "it runs again"


def test_a_kernel_that_does_not_count_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_PROC", tmp_path)
    watch = ProcessorWatch()
    assert [watch.competitors(k * WINDOW_SECONDS) for k in range(3)] == [0, 0, 0]


@pytest.fixture
def job(bob: User, monkeypatch: pytest.MonkeyPatch) -> Job:
    made = services.job_enqueue(user=bob, kind="roommates.learn", parameters={}, title="A model")
    claimed = claims.job_claim(job_id=made.pk)
    assert claimed is not None
    return claimed


def test_the_page_and_operations_name_the_cause(
    job: Job, bob: User, otto: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "checks", {})
    monkeypatch.setattr(readiness, "_last", None)
    watchdog = Watchdog(job)
    monkeypatch.setattr(watchdog._processor, "competitors", lambda now: 9)
    watchdog._beat()
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/card/"))
    assert page.says("waiting for processor time: 9 other processes")
    operations = Page(client_of(otto).get("/operations/"))
    assert operations.one("region", "To look at").says("is busy: jobs wait for processor time")
    assert operations.one("region", "To look at").says("9 other processes may use its cores")
    monkeypatch.setattr(watchdog._processor, "competitors", lambda now: 0)
    watchdog._beat()
    for client, path in (
        (client_of(bob), f"/jobs/{job.pk}/card/"),
        (client_of(otto), "/operations/"),
    ):
        assert not Page(client.get(path)).says("processor time")


def test_one_other_process_is_said_as_one(job: Job) -> None:
    job.n_competitors = 1
    assert job.competition == "waiting for processor time: 1 other process"
    job.state = JobState.SUCCEEDED
    assert job.competition == ""
