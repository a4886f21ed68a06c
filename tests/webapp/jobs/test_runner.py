"""Running a job in place: how it ends, what it leaves, what a second attempt sees."""

import errno
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from engine import InfeasibleError, InvalidProblemError, Progress
from webapp.accounts.models import Organisation, User
from webapp.common.errors import Refusal
from webapp.jobs import context as context_module
from webapp.jobs import priority, registry, runner, services
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job, JobState, JobTracePoint
from webapp.jobs.registry import Outcome
from webapp.jobs.runner import run_job

Run = Callable[[JobContext], Outcome]
Kept = Callable[[Job], str]


@pytest.fixture
def start(bob: User, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Job]:
    """A function that enqueues a job which runs the given function."""

    def enqueue(run: Run, kept: Kept = registry.keeps_nothing, **parameters: Any) -> Job:
        kind = registry.JobKind(name="test.run", run=run, verb="Run", kept=kept)
        monkeypatch.setitem(registry._kinds, "test.run", kind)
        return services.job_enqueue(user=bob, kind="test.run", parameters=parameters, seed=3)

    return enqueue


def finished(job: Job) -> Job:
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    return job


def test_it_succeeds_with_a_result(start: Callable[..., Job]) -> None:
    job = finished(start(lambda c: {"draw": float(c.rng.random()), "x": c.parameters["x"]}, x=5))
    assert (job.state, job.progress) == (JobState.SUCCEEDED, 1.0)
    assert job.result == {"draw": float(np.random.default_rng(3).random()), "x": 5}
    assert job.finished_at >= job.started_at


def test_it_gives_way_while_it_computes_and_not_while_it_stores(
    start: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int | str] = []
    monkeypatch.setattr(priority, "_steps", 7)
    monkeypatch.setattr(priority, "_set_session", seen.append)

    def run(context: JobContext) -> Outcome:
        seen.append("computes")
        return lambda: seen.append("stores")

    assert finished(start(run)).state == JobState.SUCCEEDED
    assert seen == ["computes", 0, "stores", 7]


FAILURES = [
    (InvalidProblemError("Row 3: no id."), "Row 3: no id. {kept}"),
    (InfeasibleError("an odd number"), "an odd number. {kept}"),
    (Refusal("A student is in two pairs."), "A student is in two pairs. {kept}"),
    (OSError(errno.ENOSPC, "full"), "The server's disk is full. {kept} Start it again once"),
    (MemoryError(), "This needs more memory than the machine has. {kept}"),
    (SoftTimeLimitExceeded(), "It ran for 6 hours, the most that a job may. {kept} Make it"),
    (RuntimeError("/secret"), "Something failed on our side. {kept} Start it again; if it fails"),
]


@pytest.mark.parametrize(("error", "sentence"), FAILURES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kept", ["Nothing was changed.", "2 of 9 are done."])
def test_a_failure_says_why_and_what_is_kept(
    start: Callable[..., Job], error: Exception, sentence: str, kept: str
) -> None:
    """The inside of a bug stays in the log."""

    def run(context: JobContext) -> Outcome:
        context.folder.mkdir(parents=True)
        raise error

    job = finished(start(run, kept=lambda job: kept))
    assert job.state == JobState.FAILED
    assert job.error.startswith(sentence.format(kept=kept))
    assert not job.folder.exists()


def test_what_was_too_much_is_let_go_before_the_failure_is_recorded(
    start: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[Any]] = []
    left: list[object] = []

    def run(context: JobContext) -> Outcome:
        large = np.zeros(1_000)
        held.append(weakref.ref(large))
        raise MemoryError

    def fail(**values: Any) -> None:
        left.append(held[0]())
        job_fail(**values)

    job_fail = runner.endings.job_fail
    monkeypatch.setattr(runner.endings, "job_fail", fail)
    assert finished(start(run)).error.startswith("This needs more memory")
    assert left == [None]


def test_it_says_once_that_nothing_was_kept(start: Callable[..., Job]) -> None:
    def run(context: JobContext) -> Outcome:
        raise Refusal("A student is in more than one pair. Nothing was saved.")

    error = finished(start(run)).error
    assert error == "A student is in more than one pair. Nothing was changed."


@pytest.mark.parametrize("error", [error for error, _ in FAILURES], ids=lambda e: type(e).__name__)
def test_a_failure_after_a_cancellation_is_no_failure(
    start: Callable[..., Job], bob: User, error: Exception
) -> None:
    """What the job worked on may have been deleted, which cancelled it."""

    def run(context: JobContext) -> Outcome:
        services.job_cancel(user=bob, job=context.job)
        raise error

    job = finished(start(run))
    assert (job.state, job.error) == (JobState.CANCELLED, "")


def test_a_long_reason_does_not_push_out_what_is_kept(start: Callable[..., Job]) -> None:
    def run(context: JobContext) -> Outcome:
        raise InvalidProblemError(900 * "x")

    error = finished(start(run)).error
    assert len(error) == 500
    assert error.endswith("x Nothing was changed.")


def test_rows_and_success_stand_or_fall_together(start: Callable[..., Job]) -> None:
    def run(context: JobContext) -> Outcome:
        def save() -> dict[str, Any]:
            Organisation.objects.create(name="written by the job")
            raise RuntimeError("the last write failed")

        return save

    assert finished(start(run)).state == JobState.FAILED
    assert not Organisation.objects.filter(name="written by the job").exists()


def test_a_job_taken_over_writes_no_rows(start: Callable[..., Job]) -> None:
    def run(context: JobContext) -> Outcome:
        Job.objects.filter(pk=context.job.pk).update(claim=None, state=JobState.QUEUED)

        def save() -> dict[str, Any]:
            Organisation.objects.create(name="written by a ghost")
            return {}

        return save

    job = finished(start(run))
    assert job.state == JobState.QUEUED
    assert not Organisation.objects.filter(name="written by a ghost").exists()


def test_a_cancelled_job_changes_nothing_even_if_it_returns(
    start: Callable[..., Job], bob: User
) -> None:
    def run(context: JobContext) -> Outcome:
        services.job_cancel(user=bob, job=context.job)
        return {"x": 1}

    job = finished(start(run))
    assert job.state == JobState.CANCELLED
    assert job.result == {}
    assert job.sentence.endswith("Nothing was changed.")


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_while_the_database_is_away_it_waits_and_goes_on(
    start: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """No fault of the job's: nothing is failed, and the next process has it at once."""
    answers = [error("connection refused"), error("starting up"), None]
    requeue = services.job_requeue

    def put_back(**values: Any) -> bool:
        if refusal := answers.pop(0):
            raise refusal
        return requeue(**values)

    def stop(context: JobContext) -> dict[str, Any]:
        if context.job.attempt == 1:
            raise error("server closed the connection unexpectedly")
        return {"sentence": "Counted"}

    monkeypatch.setattr(services, "job_requeue", put_back)
    monkeypatch.setattr(runner, "LOOK_SECONDS", 0)
    monkeypatch.setattr(runner.connection, "close", lambda: None)  # it holds the test's rows
    job = finished(start(stop))
    assert (job.state, job.claim, job.error) == (JobState.QUEUED, None, "")
    assert job.sentence == "The database did not answer; it goes on from its last checkpoint"
    assert finished(job).sentence == "Counted"


def test_a_checkpoint_without_room_is_no_reason_to_stop(
    start: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("engine.core.checkpoint.write_npz", full)
    job = finished(start(lambda c: c.checkpoint.save({"step": np.array(1)})))
    assert job.state == JobState.SUCCEEDED


def test_it_runs_once_however_often_it_is_delivered(start: Callable[..., Job]) -> None:
    runs = []
    job = start(lambda c: runs.append(1) or {})
    for _ in range(3):
        run_job(job.pk, watched=False)
    assert runs == [1]


def test_progress_is_written_to_row_and_trace(
    start: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "WRITE_SECONDS", 0.0)
    seen = []

    def run(context: JobContext) -> Outcome:
        for k in range(1, 4):
            context.on_progress(
                Progress("Narrowing", fraction=k / 3, iteration=k, objective=5.0 / k, gap=np.inf)
            )
            seen.append(Job.objects.values_list("progress", "sentence").get(pk=context.job.pk))
        return {}

    job = finished(start(run))
    assert seen[1] == (2 / 3, "Narrowing")
    points = list(JobTracePoint.objects.filter(job=job))
    assert (points[0].iteration, points[-1].iteration) == (1, 3)
    assert points[-1].objective == pytest.approx(5 / 3)
    assert points[-1].gap is None  # infinity is not a number of the database


def test_a_second_attempt_goes_on_from_the_checkpoint_and_the_trace(
    start: Callable[..., Job],
) -> None:
    def run(context: JobContext) -> Outcome:
        state = context.checkpoint.load()
        if state is None:
            for k in (1, 2, 3):
                point = Progress("x", iteration=k, objective=1.0)
                context.on_progress(point)
                context._write_trace(
                    JobTracePoint(job=context.job, iteration=k, seconds=10.0 * k, objective=1.0)
                )
            context.checkpoint.save({"step": np.array(2)})
            # The process dies: the row stays, the sweep puts it back.
            Job.objects.filter(pk=context.job.pk).update(worker="elsewhere:1:1", heartbeat_at=None)
            services.jobs_sweep()
            return {}
        assert context.seconds >= 30.0
        context.on_progress(Progress("x", iteration=int(state["step"]) + 1, objective=2.0))
        return {"went on": True}

    job = finished(start(run))
    assert job.state == JobState.QUEUED
    job = finished(job)
    assert (job.state, job.attempt, job.resumed_from) == (JobState.SUCCEEDED, 2, 3)
    assert list(job.trace.values_list("iteration", "objective")) == [(1, 1.0), (2, 1.0), (3, 2.0)]
    assert not job.folder.exists()


def test_a_cancel_before_the_claim_never_runs(start: Callable[..., Job], bob: User) -> None:
    runs = []
    job = start(lambda c: runs.append(1) or {})
    services.job_cancel(user=bob, job=job)
    assert finished(job).state == JobState.CANCELLED
    assert runs == []


def test_elapsed_counts_all_attempts(bob: User, start: Callable[..., Job]) -> None:
    job = start(lambda c: {})
    assert job.elapsed.total_seconds() == 0
    job.ran_before = 30.0
    job.attempt_started_at = timezone.now() - timezone.timedelta(seconds=60)
    assert 89 < job.elapsed.total_seconds() < 95


def test_other_threads_report_and_ask_without_a_connection_of_their_own(
    start: Callable[..., Job], bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "STOP_SECONDS", 0.0)
    opened, answers = [], []

    def run(context: JobContext) -> Outcome:
        def work(k: int) -> None:
            context.on_progress(Progress("Elsewhere", iteration=k, objective=float(k)))
            answers.append(context.should_stop())
            opened.extend(c.alias for c in connections.all(initialized_only=True) if c.connection)

        def in_threads(*numbers: int) -> None:
            threads = [threading.Thread(target=work, args=(k,)) for k in numbers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        in_threads(1, 2)
        services.job_cancel(user=bob, job=context.job)
        assert context.should_stop()
        in_threads(3)
        context.flush()
        return {}

    job = finished(start(run))
    assert opened == []
    assert answers == [False, False, True]
    assert job.trace.order_by("iteration").last().iteration == 3
    assert job.sentence.startswith("Cancelled")


def test_words_before_the_work_leave_the_trace_of_the_earlier_attempt(
    start: Callable[..., Job],
) -> None:
    def run(context: JobContext) -> Outcome:
        context.report("Reading the images")
        if context.job.attempt == 1:
            points = [
                JobTracePoint(job=context.job, iteration=k, seconds=float(k)) for k in (1, 2, 3)
            ]
            JobTracePoint.objects.bulk_create(points)
            Job.objects.filter(pk=context.job.pk).update(worker="elsewhere:1:1", heartbeat_at=None)
            services.jobs_sweep()
            return {}
        context.on_progress(Progress("Starting", iteration=0, objective=9.0))
        context.on_progress(Progress("On", iteration=3, objective=2.0))
        return {}

    job = finished(finished(start(run)))
    assert (job.attempt, job.resumed_from) == (2, 3)
    assert list(job.trace.values_list("iteration", flat=True)) == [1, 2, 3]
