"""The operations page: alarms in words, nothing of other organisations, for operators."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.common.models import Installation
from webapp.jobs.models import Job, JobState, Worker
from webapp.monitoring import readiness

ClientOf = Callable[[User], Client]


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "checks", {})
    monkeypatch.setattr(readiness, "_last", None)


def heard(name: str, ago: float) -> Worker:
    seen_at = timezone.now() - timedelta(seconds=ago)
    return Worker.objects.create(name=name, processes=2, seen_at=seen_at)


def waiting(user: User, kind: str, ago: float) -> Job:
    job = Job.objects.create(
        organisation=user.organisation, created_by=user, kind=kind, title="Secret plan", seed=1
    )
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(seconds=ago))
    return job


def page(client: Client) -> Page:
    return Page(client.get(reverse("operations:page")))


def test_when_all_is_well_it_says_so(otto: User, client_of: ClientOf) -> None:
    heard("short-a1@housing-1", 2)
    heard("long-a1@housing-1", 2)
    Installation.objects.create(pk=1, store_mark="x", backed_up_at=timezone.now())
    text = page(client_of(otto))
    assert text.has("heading", "Nothing to look at")
    assert text.says("1 host, 2 workers, 0 jobs running")
    assert text.one("row", "housing-1").says("Working")


def test_a_silent_worker_is_named_and_can_be_taken_out(otto: User, client_of: ClientOf) -> None:
    worker = heard("long-b2@lab-gpu", 180)
    client = client_of(otto)
    text = page(client)
    assert text.one("region", "To look at").says("lab-gpu has not answered for 3 min")
    assert text.one("region", "To look at").says("Nothing was lost")
    assert text.one("row", "lab-gpu").says("Not answering")
    client.post(reverse("operations:forget", args=[worker.pk]))
    assert "lab-gpu has not" not in page(client).source
    assert AuditLine.objects.filter(verb="took out of use").count() == 1


def test_jobs_that_nobody_takes_are_an_alarm(
    otto: User, mallory: User, client_of: ClientOf
) -> None:
    heard("short-a1@housing-1", 2)
    waiting(mallory, "roommates.learn", 20)
    text = page(client_of(otto))
    assert text.one("region", "To look at").says("Nobody takes long jobs")
    assert "Secret plan" not in text.source
    assert "Southgate" not in text.source


def test_a_long_wait_an_old_backup_and_failures_are_alarms(otto: User, client_of: ClientOf) -> None:
    heard("short-a1@housing-1", 2)
    waiting(otto, "roommates.propose", 1200)
    failed = waiting(otto, "roommates.propose", 30)
    Job.objects.filter(pk=failed.pk).update(state=JobState.FAILED, finished_at=timezone.now())
    Installation.objects.create(
        pk=1, store_mark="x", backed_up_at=timezone.now() - timedelta(days=3)
    )
    text = page(client_of(otto))
    assert text.one("region", "To look at").says("A short job has waited 20 min")
    assert text.one("region", "To look at").says("The last backup is")
    assert text.one("region", "To look at").says("1 job failed within a day")


def test_the_memory_of_every_host_is_a_bar(otto: User, client_of: ClientOf) -> None:
    worker = heard("long-a1@housing-1", 2)
    text = page(client_of(otto))
    assert "Memory of housing-1" not in text.source
    Worker.objects.filter(pk=worker.pk).update(memory_used=12 * 10**9, memory_total=16 * 10**9)
    text = page(client_of(otto))
    assert text.has("progressbar", "Memory of housing-1: 75 % used")
    assert text.one("row", "housing-1").says("4.0 of 16.0 GB free")


def test_ones_own_share_of_the_workers_is_a_bar(
    otto: User, mallory: User, client_of: ClientOf
) -> None:
    heard("long-a1@housing-1", 2)
    for user in (otto, mallory, mallory):
        job = waiting(user, "roommates.learn", 20)
        Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
    text = page(client_of(otto))
    bar = text.one("progressbar", "Long: learning, predicting: 1 of 3 running are yours")
    assert (bar.value, bar.element.get("max")) == ("1", "3")
    assert "Southgate" not in text.source


def test_a_part_that_does_not_work_is_named_first(
    otto: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("away")

    monkeypatch.setattr(readiness, "checks", {"store": fail})
    text = page(client_of(otto))
    assert text.one("region", "To look at").says("Store: not ready")
    assert text.one("region", "To look at").says("Nothing is lost")
