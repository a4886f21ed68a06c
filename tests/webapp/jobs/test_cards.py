"""Jobs for a graphics card: its worker takes them while it answers, otherwise learners do."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from tasks import jobs as tasks
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.jobs import claims, dispatch, endings, queues, registry, runner, services
from webapp.jobs.context import JobContext
from webapp.jobs.liveness import this_process
from webapp.jobs.metrics import job_gauges
from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.registry import JobKind, Outcome, Queue
from webapp.jobs.services import job_dispatch, job_enqueue, jobs_sweep
from webapp.jobs.stuck import StuckWorkers
from webapp.operations.alarms import installation_alarms, look

ran: list[uuid.UUID] = []


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(context: JobContext) -> Outcome:
        ran.append(context.job.pk)
        return {}

    ran.clear()
    for name, queue in (("test.long", Queue.LONG), ("test.card", Queue.CARD)):
        kind = JobKind(name=name, run=run, verb="Nap", queue=queue)
        monkeypatch.setitem(registry._kinds, name, kind)
    unwatched = runner._run  # in the test's own transaction
    monkeypatch.setattr(runner, "_run", lambda job, *, watched: unwatched(job, watched=False))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[uuid.UUID, Queue]]:
    """The messages: which job, and to which queue."""
    found: list[tuple[uuid.UUID, Queue]] = []

    def record(job_id: uuid.UUID, queue: Queue) -> bool:
        found.append((job_id, queue))
        return True

    monkeypatch.setattr(dispatch, "send", record)
    return found


def worker(queue: str, name: str = "a@lab", *, ago: float = 0, process: str = "") -> Worker:
    seen_at = timezone.now() - timedelta(seconds=ago)
    return Worker.objects.create(
        name=f"{queue}-{name}", processes=1, seen_at=seen_at, process=process
    )


def enqueue(user: User, kind: str = "test.card") -> Job:
    return job_enqueue(user=user, kind=kind, parameters={})


def let_pass(seconds: float) -> None:
    """Let time pass for messages, heartbeats and the answers of workers."""
    for job in Job.objects.all():
        for name in ("dispatched_at", "heartbeat_at"):
            if (at := getattr(job, name)) is not None:
                Job.objects.filter(pk=job.pk).update(**{name: at - timedelta(seconds=seconds)})
    for one in Worker.objects.all():
        Worker.objects.filter(pk=one.pk).update(seen_at=one.seen_at - timedelta(seconds=seconds))


def state_of(job: Job) -> str:
    return Job.objects.values_list("state", flat=True).get(pk=job.pk)


def test_the_worker_with_a_card_takes_it_while_it_answers(
    bob: User, sent: list[tuple[uuid.UUID, Queue]]
) -> None:
    worker("card")
    worker("long")
    job, long = enqueue(bob), enqueue(bob, "test.long")
    job_dispatch(job_id=job.pk)
    assert sent == [(job.pk, Queue.CARD)]
    for _ in range(2):  # a learner, whatever message reaches it
        runner.run_next(long.pk, queue=Queue.LONG)
        runner.run_next(job.pk, queue=Queue.LONG)
    assert (state_of(job), state_of(long)) == (JobState.QUEUED, JobState.SUCCEEDED)
    runner.run_next(job.pk, queue=Queue.CARD)
    assert state_of(job) == JobState.SUCCEEDED


def test_the_worker_with_a_card_takes_no_other_long_job(bob: User) -> None:
    worker("card")
    long = enqueue(bob, "test.long")
    runner.run_next(long.pk, queue=Queue.CARD)
    assert state_of(long) == JobState.QUEUED


def test_without_such_a_worker_every_learner_takes_it(
    bob: User, sent: list[tuple[uuid.UUID, Queue]]
) -> None:
    worker("long")
    long, job = enqueue(bob, "test.long"), enqueue(bob)
    job_dispatch(job_id=job.pk)
    assert sent == [(job.pk, Queue.LONG)]
    runner.run_next(job.pk, queue=Queue.LONG)
    runner.run_next(job.pk, queue=Queue.LONG)
    assert ran == [long.pk, job.pk]  # in the order of one line


def test_when_the_worker_dies_with_the_job_a_learner_runs_it_once(
    bob: User, sent: list[tuple[uuid.UUID, Queue]]
) -> None:
    worker("card", process="lab:1:1")
    learner = worker("long")
    job = enqueue(bob)
    lost = claims.job_claim(job_id=job.pk)
    assert lost is not None
    Job.objects.filter(pk=job.pk).update(worker="lab:2:1", worker_parent="lab:1:1")
    sent.clear()
    let_pass(35)
    assert jobs_sweep()["requeued"] == 1
    assert sent == [(job.pk, Queue.CARD)]  # the worker may be starting again
    runner.run_next(job.pk, queue=Queue.LONG)
    assert state_of(job) == JobState.QUEUED
    let_pass(30)
    Worker.objects.filter(pk=learner.pk).update(seen_at=timezone.now())
    assert jobs_sweep()["sent_again"] == 1
    assert sent[1:] == [(job.pk, Queue.LONG)]
    runner.run_next(job.pk, queue=Queue.LONG)
    runner.run_next(job.pk, queue=Queue.CARD)  # the earlier message, once the card is back
    assert ran == [job.pk]
    row = Job.objects.get(pk=job.pk)
    assert (row.state, row.attempt) == (JobState.SUCCEEDED, 2)
    with pytest.raises(claims.ClaimLostError):
        endings.job_succeed(job=lost, result={})


def test_a_job_that_waits_when_the_card_goes_does_not_wait_for_ever(
    bob: User, sent: list[tuple[uuid.UUID, Queue]]
) -> None:
    worker("card")
    job = enqueue(bob)
    job_dispatch(job_id=job.pk)
    Worker.objects.all().delete()  # "Take it out of use" on the page Operations
    worker("long")
    let_pass(11)
    Worker.objects.update(seen_at=timezone.now())
    assert jobs_sweep()["sent_again"] == 1
    assert sent[-1] == (job.pk, Queue.LONG)


def test_a_card_that_comes_gets_the_jobs_that_wait(
    bob: User, sent: list[tuple[uuid.UUID, Queue]]
) -> None:
    worker("long", process="lab:3:1")
    first, second = enqueue(bob), enqueue(bob)
    for job in (first, second):
        job_dispatch(job_id=job.pk)
    Job.objects.filter(pk=first.pk).update(
        state=JobState.RUNNING, worker=this_process(), worker_parent="lab:3:1",
        heartbeat_at=timezone.now(),
    )  # fmt: skip
    Job.objects.filter(pk=second.pk).update(dispatch_count=9)  # its next turn is minutes away
    worker("card")
    let_pass(11)
    Worker.objects.update(seen_at=timezone.now())
    # The job that a learner runs does not occupy the card.
    assert jobs_sweep()["sent_again"] == 1
    assert sent[-1] == (second.pk, Queue.CARD)
    assert {load.queue: load.running for load in look().queues} == {
        Queue.SHORT: 0, Queue.LONG: 1, Queue.CARD: 0,
    }  # fmt: skip


def test_two_workers_with_a_card_share_the_jobs(bob: User) -> None:
    worker("card", "a@lab")
    worker("card", "b@attic")
    assert claims.n_processes(Queue.CARD) == 2
    first, second = enqueue(bob), enqueue(bob)
    kinds = queues.kinds_taken(Queue.CARD, "test.card")
    taken = [claims.job_claim_next(kinds=kinds, queue=Queue.CARD) for _ in range(3)]
    assert [job and job.pk for job in taken] == [first.pk, second.pk, None]


@pytest.mark.parametrize("has_card", [True, False])
def test_a_message_in_both_queues_runs_it_once(bob: User, has_card: bool) -> None:
    if has_card:
        worker("card")
    job = enqueue(bob)
    for queue in (Queue.LONG, Queue.CARD, Queue.LONG, Queue.CARD):
        runner.run_next(job.pk, queue=queue)
    assert ran == [job.pk]


def test_a_worker_with_a_card_that_nobody_asked_yet_takes_the_job(bob: User) -> None:
    job = enqueue(bob)
    runner.run_next(job.pk, queue=Queue.CARD)
    assert ran == [job.pk]


def test_a_job_of_an_earlier_version_ends_in_any_queue(bob: User) -> None:
    for queue in Queue:
        job = enqueue(bob)
        Job.objects.filter(pk=job.pk).update(kind="test.gone")
        runner.run_next(job.pk, queue=queue)
        assert state_of(job) == JobState.FAILED, queue


def test_the_place_in_line_is_that_of_the_queue_that_takes_it(client_of, bob: User) -> None:
    enqueue(bob, "test.long")
    job = enqueue(bob)
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/"))
    assert page.says("Waiting for a free worker")
    assert page.says("Number 2 in line")
    worker("card")
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/"))
    assert page.says("Waiting for a free worker")
    assert page.says("Number 1 in line")


def test_a_learner_at_work_on_it_is_not_ended_when_a_card_comes(
    bob: User, monkeypatch: pytest.MonkeyPatch, settings
) -> None:
    settings.JOB_STUCK_SECONDS = 0.0
    ended: list[str] = []
    monkeypatch.setattr("webapp.jobs.stuck.end_process", ended.append)
    worker("long", process=this_process())
    job = enqueue(bob)
    Job.objects.filter(pk=job.pk).update(
        state=JobState.RUNNING, worker_parent=this_process(), heartbeat_at=timezone.now()
    )
    Job.objects.filter(pk=enqueue(bob, "test.long").pk).update(dispatched_at=timezone.now())
    worker("card")
    StuckWorkers().look()
    assert ended == []
    Job.objects.filter(pk=job.pk).delete()
    StuckWorkers().look()
    assert ended == [this_process()]


def test_operations_show_the_queue_only_where_there_is_a_card(otto: User, client_of) -> None:
    worker("long")
    worker("short")
    enqueue(otto)
    assert not [alarm for alarm in installation_alarms() if "card" in alarm.title]
    page = Page(client_of(otto).get("/operations/"))
    assert not page.says("Card: learning networks")
    assert [load.waiting for load in look().queues] == [0, 1]
    worker("card", "b@attic")
    page = Page(client_of(otto).get("/operations/"))
    assert page.has("row", "Card: learning networks")
    assert [load.waiting for load in look().queues] == [0, 0, 1]


def numbers() -> dict[tuple[str, str], float]:
    return {
        (sample.name.removeprefix("bethe_hall_"), next(iter(sample.labels.values()), "")): (
            sample.value
        )
        for family in job_gauges()
        for sample in family.samples
    }


def test_metrics_tell_the_queues_apart(bob: User) -> None:
    job = enqueue(bob)
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(seconds=100))
    found = numbers()
    assert found["longest_wait_seconds", "long"] >= 100
    assert ("longest_wait_seconds", "card") not in found
    assert found["worker_processes", "long"] == 0
    assert ("worker_processes", "card") not in found  # no alarm where there never was one
    worker("card")
    found = numbers()
    assert found["longest_wait_seconds", "long"] == 0
    assert found["longest_wait_seconds", "card"] >= 100
    assert found["worker_processes", "card"] == 1
    let_pass(70)
    found = numbers()
    assert found["worker_processes", "card"] == 0
    assert found["longest_wait_seconds", "long"] >= 100


def test_the_next_of_an_organisation_at_its_limit_is_sent_to_the_card(
    bob: User, settings, sent: list[tuple[uuid.UUID, Queue]]
) -> None:
    settings.ORGANISATION_MAX_RUNNING_JOBS = 1
    worker("card")
    job = enqueue(bob)
    services.wake_for_waiting(organisation_id=bob.organisation_id, queue=Queue.LONG)
    assert sent == []
    services.wake_for_waiting(organisation_id=bob.organisation_id, queue=Queue.CARD)
    assert sent == [(job.pk, Queue.CARD)]


def test_a_worker_knows_its_queue_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tasks.queue_of("card-1a2b3c@lab-gpu") is Queue.CARD
    assert tasks.queue_of("long-1a2b3c@card-1") is Queue.LONG
    assert tasks.queue_of("celery@lab") is None
    given: list[object] = []
    monkeypatch.setattr(tasks, "run_next", lambda key, queue: given.extend((key, queue)))
    key = uuid.uuid4()
    tasks.run.push_request(hostname="card-1a2b3c@lab")
    try:
        tasks.run.run(str(key))
    finally:
        tasks.run.pop_request()
    assert given == [key, Queue.CARD]


def test_a_worker_without_a_card_says_so_once_and_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    devices = iter(["cpu", "cpu", "gpu"])
    monkeypatch.setattr(tasks, "_CARD_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(tasks, "_in_a_child", lambda look: look())
    monkeypatch.setattr(tasks, "device_name", lambda: next(devices))
    tasks.wait_for_card()
    assert caplog.text.count("no job is taken: there is no graphics card for JAX") == 1
    assert "JAX offers the processor only." in caplog.text
    assert next(devices, None) is None


def test_a_look_without_jax_or_with_a_broken_driver_is_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> str:
        raise RuntimeError("no driver")

    monkeypatch.setattr(tasks, "device_name", broken)
    assert tasks._look_at_card() == "RuntimeError: no driver"
    monkeypatch.setattr(tasks, "device_name", lambda: "metal")
    assert tasks._look_at_card() == ""


@pytest.mark.parametrize(("name", "looks"), [("card-1@lab", 1), ("long-1@lab", 0)])
def test_only_the_worker_of_the_card_looks_for_one(
    monkeypatch: pytest.MonkeyPatch, name: str, looks: int
) -> None:
    found: list[str] = []
    for step in ("refuse_unsafe_settings", "wait_for_store"):
        monkeypatch.setattr(tasks, step, lambda: None)
    monkeypatch.setattr(tasks, "give_way", lambda steps: None)
    monkeypatch.setattr(tasks, "wait_for_card", lambda: found.append("look"))

    class Started:
        hostname = name

    tasks.check_settings(sender=Started())
    assert len(found) == looks
