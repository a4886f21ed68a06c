"""Whose job is next: short work apart from long, organisations in turn, none beyond its limit."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.utils import timezone

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.jobs import registry, runner
from webapp.jobs.claims import job_claim_next, place_in_line
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.registry import JobKind, Outcome, Queue
from webapp.jobs.services import job_enqueue

KINDS = ["test.short"]


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(context: JobContext) -> Outcome:
        return {}

    for name, queue in (("test.short", Queue.SHORT), ("test.long", Queue.LONG)):
        kind = JobKind(name=name, run=run, verb="Nap", queue=queue)
        monkeypatch.setitem(registry._kinds, name, kind)


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run in the test's own transaction."""
    run = runner._run
    monkeypatch.setattr(runner, "_run", lambda job, *, watched: run(job, watched=False))


def enqueue(user: User, kind: str = "test.short", count: int = 1) -> list[Job]:
    return [job_enqueue(user=user, kind=kind, parameters={}) for _ in range(count)]


def next_organisation() -> str:
    job = job_claim_next(kinds=KINDS)
    assert job is not None
    return job.organisation.name


def test_who_sends_a_hundred_jobs_shares_the_workers_with_who_sends_one(
    bob: User, mallory: User
) -> None:
    enqueue(bob, count=5)
    enqueue(mallory, count=2)
    order = [next_organisation() for _ in range(7)]
    # Nobody's job ends meanwhile: whoever has fewer running is next.
    assert order == [
        "Northfield", "Southgate", "Northfield", "Southgate", "Northfield", "Northfield",
        "Northfield",
    ]  # fmt: skip
    assert job_claim_next(kinds=KINDS) is None


def test_within_an_organisation_the_oldest_is_next(bob: User) -> None:
    jobs = enqueue(bob, count=3)
    found = [job_claim_next(kinds=KINDS) for _ in jobs]
    assert [job.pk for job in found if job] == [job.pk for job in jobs]


def test_a_message_for_one_job_runs_the_one_whose_turn_it_is(bob: User, mallory: User) -> None:
    first, *_, last = enqueue(bob, count=3)
    (other,) = enqueue(mallory)
    runner.run_next(last.pk)
    runner.run_next(last.pk)
    states = dict(Job.objects.values_list("pk", "state"))
    assert states[first.pk] == JobState.SUCCEEDED
    assert states[last.pk] == JobState.QUEUED
    assert states[other.pk] == JobState.QUEUED  # none of bob's ran any more when it was his turn
    for key in (first.pk, other.pk):
        runner.run_next(key)  # their own messages, which come late
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.SUCCEEDED}


def test_a_message_of_one_queue_runs_no_job_of_the_other(bob: User) -> None:
    (long,) = enqueue(bob, "test.long")
    (short,) = enqueue(bob)
    runner.run_next(short.pk)
    runner.run_next(short.pk)
    long.refresh_from_db()
    assert long.state == JobState.QUEUED
    runner.run_next(long.pk)
    long.refresh_from_db()
    assert long.state == JobState.SUCCEEDED


def test_an_organisation_at_its_limit_leaves_the_workers_to_others(
    bob: User, mallory: User, settings: LazySettings, sent_job_ids: list[str]
) -> None:
    settings.ORGANISATION_MAX_RUNNING_JOBS = 1
    first, second = enqueue(bob, count=2)
    assert next_organisation() == "Northfield"
    assert job_claim_next(kinds=KINDS) is None
    (other,) = enqueue(mallory)
    assert next_organisation() == "Southgate"
    Job.objects.filter(pk__in=(first.pk, other.pk)).update(state=JobState.QUEUED, claim=None)
    runner.run_next(first.pk)  # when it ends, the next of the same organisation is sent
    assert str(second.pk) in sent_job_ids


def test_a_message_of_a_job_that_is_gone_is_passed_over(bob: User) -> None:
    (job,) = enqueue(bob)
    key = job.pk
    job.delete()
    runner.run_next(key)


def worker(processes: int) -> None:
    Worker.objects.create(name="short-1@host", processes=processes, seen_at=timezone.now())


def test_one_process_stays_free_of_each_of_several_organisations(
    bob: User, mallory: User, settings: LazySettings
) -> None:
    """Two long jobs of one organisation kept another's waiting until one of them ended."""
    worker(processes=2)
    enqueue(bob, count=3)
    claims = [job_claim_next(kinds=KINDS, queue="short") for _ in range(2)]
    assert [job is not None for job in claims] == [True, True]  # nobody else had jobs lately
    Job.objects.all().delete()
    enqueue(bob, count=3)
    (other,) = enqueue(mallory)
    job_claim_next(kinds=KINDS, queue="short")
    found = job_claim_next(kinds=KINDS, queue="short")
    assert found is not None
    assert found.pk == other.pk
    other.refresh_from_db()
    Job.objects.filter(pk=other.pk).update(state=JobState.SUCCEEDED)
    assert job_claim_next(kinds=KINDS, queue="short") is None
    Job.objects.filter(pk=other.pk).update(created_at=timezone.now() - timedelta(days=2))
    assert job_claim_next(kinds=KINDS, queue="short") is not None


def test_a_waiting_job_has_its_place_in_line(client_of, bob: User, mallory: User) -> None:
    first, second, third = enqueue(bob, count=3)
    (other,) = enqueue(mallory)
    jobs = [first, other, second, third]
    assert [place_in_line(job, kinds=KINDS) for job in jobs] == [1, 2, 3, 4]
    taken = [job_claim_next(kinds=KINDS) for _ in jobs]
    assert [job.pk for job in taken if job] == [job.pk for job in jobs]
    assert place_in_line(first, kinds=KINDS) is None


def test_the_page_of_a_waiting_job_says_its_place(client_of, bob: User) -> None:
    _, second = enqueue(bob, count=2)
    page = Page(client_of(bob).get(f"/jobs/{second.pk}/"))
    assert page.says("Number 2 in line")
