"""Changing jobs: enqueue, claim, cancel, sweep; every step a compare-and-set."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.jobs import claims, endings, liveness, registry, services
from webapp.jobs.context import JobContext
from webapp.jobs.liveness import is_alive, this_process
from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.registry import Outcome
from webapp.jobs.runner import run_job
from webapp.jobs.watchdog import Watchdog


@pytest.fixture(autouse=True)
def nap(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(context: JobContext) -> Outcome:
        return {}

    def kept(job: Job) -> str:
        return f"{job.parameters['x']} of 3 naps are kept."

    kind = registry.JobKind(name="test.nap", run=run, verb="Nap", kept=kept)
    monkeypatch.setitem(registry._kinds, "test.nap", kind)


def enqueue(user: User) -> Job:
    return services.job_enqueue(user=user, kind="test.nap", parameters={"x": 1}, title="sofa")


def test_it_is_sent_once_the_transaction_has_committed(
    bob: User, sent_job_ids: list[str], django_capture_on_commit_callbacks
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        job = enqueue(bob)
        assert sent_job_ids == []
    for callback in callbacks:
        callback()
    assert sent_job_ids == [str(job.pk)]
    assert (job.title, job.state, job.organisation) == ("Nap: sofa", "queued", bob.organisation)
    assert job.code_version
    assert AuditLine.objects.filter(verb="started", target_id=str(job.pk)).count() == 1


def test_an_unknown_kind_is_refused(bob: User) -> None:
    with pytest.raises(KeyError):
        services.job_enqueue(user=bob, kind="test.unknown", parameters={})
    assert not Job.objects.exists()


def test_only_one_of_two_claims_succeeds(bob: User) -> None:
    job = enqueue(bob)
    first = claims.job_claim(job_id=job.pk)
    assert first is not None
    assert (first.state, first.attempt) == (JobState.RUNNING, 1)
    assert claims.job_claim(job_id=job.pk) is None


def test_a_process_that_lost_its_claim_changes_nothing(bob: User) -> None:
    job = enqueue(bob)
    slow = claims.job_claim(job_id=job.pk)
    Job.objects.filter(pk=job.pk).update(worker="elsewhere:1:1", heartbeat_at=None)
    services.jobs_sweep()
    quick = claims.job_claim(job_id=job.pk)
    assert quick.attempt == 2
    with pytest.raises(claims.ClaimLostError):
        endings.job_succeed(job=slow, result={})
    with pytest.raises(claims.ClaimLostError):
        claims.job_update(job=slow, progress=0.5)
    assert not endings.job_finish_cancelled(job=slow)
    endings.job_succeed(job=quick, result={"x": 2})
    assert Job.objects.get().result == {"x": 2}


def test_a_queued_job_is_cancelled_at_once(bob: User) -> None:
    job = enqueue(bob)
    assert services.job_cancel(user=bob, job=job)
    assert job.state == JobState.CANCELLED
    assert claims.job_claim(job_id=job.pk) is None
    assert not services.job_cancel(user=bob, job=job)
    assert AuditLine.objects.filter(verb="cancelled").count() == 1


def test_a_running_job_is_asked_to_stop_once(bob: User, carol: User) -> None:
    job = enqueue(bob)
    claims.job_claim(job_id=job.pk)
    assert services.job_cancel(user=bob, job=job)
    assert job.is_cancelling
    assert not services.job_cancel(user=carol, job=job)
    assert job.cancelled_by == bob


def claimed(user: User, **fields: object) -> Job:
    job = enqueue(user)
    claims.job_claim(job_id=job.pk)
    Job.objects.filter(pk=job.pk).update(**fields)
    return job


def test_the_sweep_leaves_living_jobs_alone(bob: User) -> None:
    job = claimed(bob)
    assert services.jobs_sweep()["requeued"] == 0
    assert Job.objects.get(pk=job.pk).state == JobState.RUNNING


def test_the_sweep_requeues_a_job_whose_process_is_gone(bob: User, sent_job_ids: list[str]) -> None:
    host, _, start = this_process().split(":")
    job = claimed(bob, worker=f"{host}:999999:{start}")
    assert services.jobs_sweep() == {"requeued": 1, "given_up": 0, "cancelled": 0, "sent_again": 1}
    assert Job.objects.get(pk=job.pk).state == JobState.QUEUED
    assert sent_job_ids == [str(job.pk)]


def test_the_sweep_requeues_a_job_of_another_machine_only_after_silence(bob: User) -> None:
    quiet = timezone.now() - timedelta(seconds=settings.JOB_ORPHAN_SECONDS + 5)
    job = claimed(bob, worker="elsewhere:12:34")
    assert services.jobs_sweep()["requeued"] == 0
    Job.objects.filter(pk=job.pk).update(heartbeat_at=quiet)
    assert services.jobs_sweep()["requeued"] == 1


def test_a_job_that_kills_its_process_again_and_again_is_given_up(bob: User) -> None:
    job = claimed(bob, worker="elsewhere:1:1", heartbeat_at=None, deaths=settings.JOB_MAX_DEATHS)
    job.folder.mkdir(parents=True)
    assert services.jobs_sweep()["given_up"] == 1
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "ended by itself 5 times, and it was given up. 1 of 3 naps are kept. It may" in job.error
    assert not job.folder.exists()


def test_a_cancelled_job_whose_process_is_gone_ends_as_cancelled(bob: User) -> None:
    job = claimed(
        bob, worker="elsewhere:1:1", heartbeat_at=None, cancel_requested_at=timezone.now()
    )
    assert services.jobs_sweep()["cancelled"] == 1
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert job.sentence.endswith(" s. 1 of 3 naps are kept.")


def test_a_job_cancelled_between_two_attempts_says_what_the_first_kept(
    bob: User, django_capture_on_commit_callbacks
) -> None:
    job = claimed(bob, worker="elsewhere:1:1", heartbeat_at=None)
    job.folder.mkdir(parents=True)
    services.jobs_sweep()
    with django_capture_on_commit_callbacks(execute=True):
        assert services.job_cancel(user=bob, job=job)
        assert job.folder.exists()  # until the cancellation stands
    assert (job.state, job.sentence) == (
        JobState.CANCELLED,
        "Cancelled while it waited. 1 of 3 naps are kept.",
    )
    assert not job.folder.exists()


def test_the_sweep_removes_what_jobs_that_are_over_left(bob: User) -> None:
    """A process that is killed at the end of its job has no time to clear up."""
    running, over = claimed(bob), claimed(bob, state=JobState.SUCCEEDED)
    for job in (running, over):
        job.folder.mkdir(parents=True)
    services.jobs_sweep()
    assert (running.folder.exists(), over.folder.exists()) == (True, False)


def test_a_job_of_a_kind_that_is_gone_fails_all_the_same(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = enqueue(bob)
    monkeypatch.delitem(registry._kinds, "test.nap")
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.error.startswith("Something failed on our side. Nothing was changed.")


def test_a_lost_message_is_sent_again_with_growing_pauses(
    bob: User, sent_job_ids: list[str]
) -> None:
    job = enqueue(bob)
    services.job_dispatch(job_id=job.pk)
    assert services.jobs_sweep()["sent_again"] == 0
    for seconds, due in ((15, 0), (21, 1), (25, 0), (41, 1)):
        then = timezone.now() - timedelta(seconds=seconds)
        Job.objects.filter(pk=job.pk).update(dispatched_at=then)
        assert services.jobs_sweep()["sent_again"] == due, seconds
    assert len(sent_job_ids) == 3


def test_a_job_never_waits_for_its_turn_beside_an_idle_worker(
    bob: User, sent_job_ids: list[str]
) -> None:
    first, second = enqueue(bob), enqueue(bob)
    queue = registry.queue_of(first.kind)
    ago = timezone.now() - timedelta(seconds=15)
    often = {"dispatched_at": ago, "dispatch_count": 5}  # their next turn is minutes away
    Job.objects.all().update(**often)
    sent_job_ids.clear()
    assert services.jobs_sweep()["sent_again"] == 0  # no worker answers: messages would pile up
    worker = Worker.objects.create(name=f"{queue}-a@b", processes=1, seen_at=timezone.now())
    assert services.jobs_sweep()["sent_again"] == 1
    assert services.jobs_sweep()["sent_again"] == 0  # one message at a time
    assert sent_job_ids == [str(first.pk)]
    Job.objects.all().update(**often)
    Job.objects.filter(pk=first.pk).update(
        state=JobState.RUNNING, worker=this_process(), heartbeat_at=timezone.now()
    )
    assert services.jobs_sweep()["sent_again"] == 0  # its only process is busy
    Worker.objects.filter(pk=worker.pk).update(processes=2)
    assert services.jobs_sweep()["sent_again"] == 1
    assert sent_job_ids == [str(first.pk), str(second.pk)]


def test_liveness_tells_the_living_from_the_dead_and_the_unknown() -> None:
    host, pid, start = this_process().split(":")
    assert is_alive(this_process()) is True
    assert is_alive(f"{host}:{pid}:{int(start) - 1}") is False  # the id was given to a new process
    assert is_alive(f"{host}:999999:{start}") is False
    assert is_alive("elsewhere:1:1") is None
    assert is_alive("") is None


@pytest.mark.parametrize("differs", ["boot_id", "namespace"])
def test_a_host_of_the_same_name_is_another_host(
    bob: User, differs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers and copies of a machine share a name: each took the other's jobs for dead."""
    machine, _, _ = this_process().rpartition(":")[0].rpartition(":")
    host, boot, namespace = machine.split("/")
    other = f"{host}/{boot}/1" if differs == "namespace" else f"{host}/0{boot[1:]}x/{namespace}"
    name = f"{other}:999999:12"
    assert is_alive(name) is None
    assert is_alive(f"{machine}:999999:12") is False
    job = claimed(bob, worker=name)
    services.jobs_sweep()
    job.refresh_from_db()
    assert job.state == JobState.RUNNING


def test_the_name_of_a_process_fits_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.jobs.liveness.socket.gethostname", lambda: "h" * 64)
    liveness.machine_name.cache_clear()
    longest = this_process().rpartition(":")[0].rpartition(":")[0] + f":{2**22}:{10**12}"
    liveness.machine_name.cache_clear()
    assert len(longest) <= Job._meta.get_field("worker").max_length


def test_heartbeats_are_of_the_databases_clock(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose clock is an hour late used to lose every job to the sweep of another."""
    before = timezone.now()
    late = before - timedelta(hours=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: late)
    job = claims.job_claim(job_id=enqueue(bob).pk)
    Job.objects.update(worker="elsewhere:12:34")
    Watchdog(job)._beat()
    JobContext(job).report("Counting")
    monkeypatch.undo()
    job.refresh_from_db()
    assert job.heartbeat_at >= before - timedelta(seconds=1)
    assert job.attempt_started_at >= before - timedelta(seconds=1)
    assert services.jobs_sweep()["requeued"] == 0
    assert job.elapsed < timedelta(minutes=1)


def test_a_clock_set_back_an_hour_neither_kills_jobs_nor_keeps_dead_ones(bob: User) -> None:
    ahead = timezone.now() + timedelta(hours=1)
    job = claimed(bob, worker="elsewhere:12:34")
    Job.objects.filter(pk=job.pk).update(heartbeat_at=ahead, attempt_started_at=ahead)
    assert services.jobs_sweep()["requeued"] == 0
    job.refresh_from_db()
    assert job.heartbeat_at <= timezone.now() + timedelta(seconds=1)
    assert job.elapsed == timedelta()
    quiet = job.heartbeat_at - timedelta(seconds=settings.JOB_ORPHAN_SECONDS + 1)
    Job.objects.filter(pk=job.pk).update(heartbeat_at=quiet)
    assert services.jobs_sweep()["requeued"] == 1
    Job.objects.filter(pk=job.pk).update(dispatched_at=ahead, dispatch_count=1)
    assert services.jobs_sweep()["sent_again"] == 1


def test_the_broker_away_leaves_the_job_queued(
    bob: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks
) -> None:
    monkeypatch.setattr("webapp.jobs.dispatch.send", lambda job_id, queue: False)
    with django_capture_on_commit_callbacks(execute=True):
        job = enqueue(bob)
    job.refresh_from_db()
    assert job.state == JobState.QUEUED
    assert job.dispatched_at is None, "the sweep sends it at its next turn"
    monkeypatch.undo()
    sent: list[str] = []
    monkeypatch.setattr("webapp.jobs.dispatch.send", lambda job_id, queue: not sent.append(job_id))
    assert services.jobs_sweep()["sent_again"] == 1
    assert sent == [job.pk]


def test_a_job_ended_by_the_hard_time_limit_is_not_started_again(bob: User) -> None:
    now = timezone.now()
    job = claimed(
        bob,
        worker="elsewhere:1:1",
        attempt_started_at=now - timedelta(seconds=settings.JOB_HARD_TIME_LIMIT + 60),
        heartbeat_at=now - timedelta(seconds=settings.JOB_ORPHAN_SECONDS + 1),
    )
    assert services.jobs_sweep()["given_up"] == 1
    job.refresh_from_db()
    assert "the most that a job may. 1 of 3 naps are kept. Make it smaller" in job.error


def test_a_night_between_two_attempts_is_not_running_time(bob: User) -> None:
    """Interrupted in the evening and once more in the morning: neither too long nor nine hours."""
    evening, morning = timezone.now() - timedelta(hours=9), timezone.now() - timedelta(minutes=2)
    gone = {"worker": "elsewhere:1:1"}
    job = claimed(
        bob,
        **gone,
        started_at=evening,
        attempt_started_at=evening,
        heartbeat_at=evening + timedelta(seconds=30),
    )
    assert services.jobs_sweep()["requeued"] == 1
    job.refresh_from_db()
    assert job.elapsed == timedelta(seconds=30)
    claims.job_claim(job_id=job.pk)
    Job.objects.filter(pk=job.pk).update(
        **gone, attempt_started_at=morning, heartbeat_at=morning + timedelta(seconds=12)
    )
    assert services.jobs_sweep()["requeued"] == 1
    assert services.job_cancel(user=bob, job=job)
    assert job.elapsed == timedelta(seconds=42)


def test_a_cancelled_job_whose_process_is_gone_ran_until_its_last_sign_of_life(bob: User) -> None:
    evening = timezone.now() - timedelta(hours=9)
    job = claimed(
        bob,
        worker="elsewhere:1:1",
        attempt_started_at=evening,
        heartbeat_at=evening + timedelta(seconds=30),
        cancel_requested_at=evening,
    )
    services.jobs_sweep()
    job.refresh_from_db()
    assert job.sentence.startswith("Cancelled after 30 s.")
