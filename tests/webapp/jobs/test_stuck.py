"""Workers that run but take no job are ended; all others are left alone."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import LazySettings
from django.utils import timezone

from tests.patience import wait_for
from webapp.accounts.models import User
from webapp.common.periodic import periodic_work
from webapp.jobs import liveness, registry
from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.services import job_dispatch, job_enqueue
from webapp.jobs.stuck import StuckWorkers

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")


@pytest.fixture
def worker(db: None, settings: LazySettings) -> Iterator[Worker]:
    """A worker of this machine that does nothing at all, and is ended at once for it."""
    settings.JOB_STUCK_SECONDS = 0.0
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        try:
            yield Worker.objects.create(
                name="short-1@here",
                processes=1,
                process=liveness._name_of(process.pid),
                seen_at=timezone.now(),
            )
        finally:
            process.kill()


@pytest.fixture
def job(bob: User, monkeypatch: pytest.MonkeyPatch, sent_job_ids: list[str]) -> Job:
    """A job that waits, with its message sent."""
    kind = registry.JobKind(
        name="test.nap", run=lambda context: {}, verb="Nap", queue=registry.Queue.SHORT
    )
    monkeypatch.setitem(registry._kinds, kind.name, kind)
    job = job_enqueue(user=bob, kind=kind.name, parameters={})
    job_dispatch(job_id=job.pk)
    return job


def is_ended(worker: Worker) -> bool:
    if StuckWorkers().look():
        return wait_for(lambda: not liveness.is_alive(worker.process))
    assert liveness.is_alive(worker.process)
    return False


def test_a_worker_that_takes_no_job_is_ended(worker: Worker, job: Job) -> None:
    assert is_ended(worker)
    assert StuckWorkers().look() == 0


def test_only_after_some_time_without_interruption(
    worker: Worker, job: Job, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.JOB_STUCK_SECONDS = 100.0
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr("webapp.jobs.stuck.time", SimpleNamespace(monotonic=lambda: clock.now))
    watch = StuckWorkers()

    def look(second: float) -> int:
        clock.now = 1_000.0 + second
        return watch.look()

    assert [look(second) for second in (0, 50, 99)] == [0, 0, 0]
    Job.objects.update(state=JobState.SUCCEEDED)
    assert look(110) == 0
    Job.objects.update(state=JobState.QUEUED)
    assert [look(second) for second in (120, 170, 219)] == [0, 0, 0]
    # The watch was stopped itself, and perhaps the worker with it.
    assert [look(second) for second in (700, 750, 800)] == [0, 0, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"state": JobState.SUCCEEDED},
        {"dispatched_at": None},  # the broker is away
        {"state": JobState.RUNNING},
        {"kind": "test.other"},  # of the other queue
    ],
)
def test_a_worker_without_work_is_left_alone(
    worker: Worker, job: Job, change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = registry.JobKind(
        name="test.other", run=lambda context: {}, verb="Nap", queue=registry.Queue.LONG
    )
    monkeypatch.setitem(registry._kinds, other.name, other)
    Job.objects.update(**change)
    assert not is_ended(worker)


def test_a_worker_that_runs_or_lately_ran_a_job_is_left_alone(
    worker: Worker, job: Job, bob: User
) -> None:
    now = timezone.now()
    own = job_enqueue(user=bob, kind=job.kind, parameters={})
    own_row = Job.objects.filter(pk=own.pk)
    own_row.update(
        state=JobState.RUNNING,
        worker_parent=worker.process,
        heartbeat_at=now - timedelta(hours=1),  # its process may be stopped: the job is its own
    )
    assert not is_ended(worker)
    own_row.update(state=JobState.SUCCEEDED, heartbeat_at=now - timedelta(seconds=10))
    assert not is_ended(worker)
    own_row.update(heartbeat_at=now - timedelta(seconds=40))
    assert is_ended(worker)


def test_jobs_beyond_the_limit_of_their_organisation_are_no_work(
    worker: Worker, job: Job, bob: User, settings: LazySettings
) -> None:
    settings.ORGANISATION_MAX_RUNNING_JOBS = 1
    elsewhere = job_enqueue(user=bob, kind=job.kind, parameters={})
    Job.objects.filter(pk=elsewhere.pk).update(state=JobState.RUNNING, worker_parent="other:1:1")
    assert not is_ended(worker)


def test_a_worker_of_another_machine_is_left_alone(worker: Worker, job: Job) -> None:
    Worker.objects.update(process="elsewhere/1/1:1:1")
    assert StuckWorkers().look() == 0


def test_the_sweep_looks() -> None:
    assert any(work.name.endswith("StuckWorkers.look") for work in periodic_work())
