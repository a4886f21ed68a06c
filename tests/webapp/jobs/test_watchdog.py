"""The watchdog's looks at the row: whose process it ends, and whose it lets clear up."""

import signal
import uuid
from typing import Any

import pytest
from django.utils import timezone

from webapp.accounts.models import User
from webapp.jobs import claims, services, watchdog
from webapp.jobs.models import Job, JobState
from webapp.jobs.watchdog import GRACE_SECONDS, Watchdog


class Clock:
    """Stands for the module ``time``: it goes on when it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(watchdog, "time", clock)
    return clock


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The signals that a watchdog would have sent to its process."""
    signals: list[int] = []
    monkeypatch.setattr(watchdog.os, "kill", lambda _, number: signals.append(number))
    return signals


@pytest.fixture
def job(bob: User) -> Job:
    job = services.job_enqueue(user=bob, kind="roommates.learn", parameters={})
    claimed = claims.job_claim(job_id=job.pk)
    assert claimed is not None
    return claimed


def change(job: Job, **fields: Any) -> None:
    Job.objects.filter(pk=job.pk).update(**fields)


def test_a_job_that_has_succeeded_clears_up_in_peace(
    job: Job, clock: Clock, ended: list[int]
) -> None:
    dog = Watchdog(job)
    change(job, state=JobState.SUCCEEDED)
    for _ in range(3):
        dog._look()
        clock.now += GRACE_SECONDS
    assert ended == []


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_a_job_that_ended_otherwise_has_the_grace(
    job: Job, clock: Clock, ended: list[int], state: JobState
) -> None:
    """It may have ended by itself, or have been given up while its process was thought dead."""
    dog = Watchdog(job)
    change(job, cancel_requested_at=timezone.now())
    dog._look()
    clock.now += 0.9 * GRACE_SECONDS
    change(job, state=state)
    dog._look()
    clock.now += 0.9 * GRACE_SECONDS
    dog._look()
    assert ended == []
    clock.now += 0.2 * GRACE_SECONDS
    dog._look()
    assert ended == [signal.SIGKILL]


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.SUCCEEDED])
def test_a_job_that_another_process_took_over_ends_this_one(
    job: Job, ended: list[int], state: JobState
) -> None:
    change(job, claim=uuid.uuid4(), state=state)
    Watchdog(job)._look()
    assert ended == [signal.SIGKILL]


def test_a_cancelled_job_that_does_not_stop_is_ended(
    job: Job, clock: Clock, ended: list[int]
) -> None:
    dog = Watchdog(job)
    change(job, cancel_requested_at=timezone.now())
    dog._look()
    assert ended == []
    clock.now += GRACE_SECONDS
    dog._look()
    assert ended == [signal.SIGKILL]
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
