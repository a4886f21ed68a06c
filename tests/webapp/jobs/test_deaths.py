"""Deaths of a job: its own process ended while the worker's others went on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings

from tests.patience import wait_for
from webapp.accounts.models import User
from webapp.jobs import claims, liveness, registry, services
from webapp.jobs.models import Job, JobState

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")

# A worker that forks a process for jobs, and shows it when it is asked to stop.
_WORKER = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from webapp.jobs.liveness import say_stopping
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: say_stopping())
print(child, flush=True)
while True:
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        time.sleep(60)
"""


@dataclass
class Worker:
    """A worker and the process that runs its job, by their ids and names."""

    process: subprocess.Popen[str]
    child: int
    name: str
    child_name: str


@pytest.fixture
def worker() -> Iterator[Worker]:
    root = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-c", _WORKER, root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        names = [liveness._name_of(pid) for pid in (process.pid, child)]
        yield Worker(process, child, *names)
        for pid in (child, process.pid):
            if liveness._start_of(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def nap(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = registry.JobKind(name="test.nap", run=lambda context: {}, verb="Nap")
    monkeypatch.setitem(registry._kinds, kind.name, kind)


@pytest.fixture
def job(bob: User, worker: Worker) -> Job:
    """A job that this worker runs."""
    made = services.job_enqueue(user=bob, kind="test.nap", parameters={}, title="sofa")
    return claimed(made, worker)


def claimed(job: Job, worker: Worker) -> Job:
    claims.job_claim(job_id=job.pk)
    Job.objects.filter(pk=job.pk).update(worker=worker.child_name, worker_parent=worker.name)
    return job


def end(worker: Worker) -> None:
    os.kill(worker.child, signal.SIGKILL)
    wait_for(lambda: not liveness.is_alive(worker.child_name), seconds=30)


def swept(job: Job) -> Job:
    services.jobs_sweep()
    job.refresh_from_db()
    return job


def test_a_process_that_ends_alone_is_a_death(job: Job, worker: Worker) -> None:
    assert swept(job).state == JobState.RUNNING
    end(worker)
    assert (swept(job).state, job.deaths) == (JobState.QUEUED, 1)


def test_a_worker_that_was_asked_to_stop_takes_its_jobs_along(job: Job, worker: Worker) -> None:
    worker.process.terminate()
    wait_for(lambda: not liveness.is_at_work(worker.name), seconds=30)
    assert liveness.is_alive(worker.name)
    end(worker)
    assert (swept(job).state, job.deaths) == (JobState.QUEUED, 0)


def test_a_worker_that_is_killed_with_its_jobs_is_no_death_of_them(
    job: Job, worker: Worker
) -> None:
    worker.process.kill()
    worker.process.wait()
    end(worker)
    assert (swept(job).state, job.deaths) == (JobState.QUEUED, 0)


def test_a_worker_that_is_ended_for_want_of_memory_is_a_death_of_its_job(
    job: Job, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may choose the worker: its job ended it a hundred times before it was given up."""
    counts = tmp_path / "vmstat"
    counts.write_text("nr_free_pages 7\noom_kill 3\noom_kill_other 9\n")
    monkeypatch.setattr(liveness, "_COUNTS", counts)
    Job.objects.filter(pk=job.pk).update(memory_kills=liveness.memory_kills())
    worker.process.kill()
    worker.process.wait()
    end(worker)
    assert (swept(job).state, job.deaths) == (JobState.QUEUED, 0)  # a restart
    claims.job_claim(job_id=job.pk)
    Job.objects.filter(pk=job.pk).update(worker=worker.child_name, worker_parent=worker.name)
    assert Job.objects.get(pk=job.pk).memory_kills == 3
    counts.write_text("nr_free_pages 7\noom_kill 4\n")
    assert (swept(job).state, job.deaths) == (JobState.QUEUED, 1)


def test_a_machine_that_is_silent_is_no_death(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(
        worker="elsewhere:1:1", worker_parent="elsewhere:2:2", heartbeat_at=None
    )
    assert (swept(job).state, job.deaths) == (JobState.QUEUED, 0)


def test_restarts_do_not_give_a_job_up_and_deaths_do(job: Job, worker: Worker) -> None:
    end(worker)
    for _ in range(2 * settings.JOB_MAX_DEATHS):  # the server is started again and again
        Job.objects.filter(pk=job.pk).update(worker_parent="")
        assert swept(job).state == JobState.QUEUED
        claimed(job, worker)
    assert job.deaths == 0
    for number in range(1, settings.JOB_MAX_DEATHS):
        assert (swept(job).state, job.deaths) == (JobState.QUEUED, number)
        claimed(job, worker)
    assert swept(job).state == JobState.FAILED
    assert job.error.startswith("The process of this computation ended by itself 5 times")


def test_a_job_that_ends_its_whole_worker_stops_in_the_end(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(
        worker="elsewhere:1:1", heartbeat_at=None, attempt=settings.JOB_MAX_ATTEMPTS
    )
    assert swept(job).state == JobState.FAILED
    assert "The server was stopped 100 times while this ran" in job.error
