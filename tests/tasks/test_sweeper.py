"""The sweep calls the periodic work of every application, and no work delays another lane."""

import threading
from collections.abc import Callable

import pytest
from django.conf import LazySettings

from tasks import sweeper as module
from tasks.sweeper import Sweeper
from webapp.common.periodic import DAY, PeriodicWork, periodic_work


@pytest.fixture(autouse=True)
def without_pauses(settings: LazySettings) -> None:
    """Lanes go on at once, so that a test does not wait."""
    settings.JOB_SWEEP_SECONDS = 0


def stopping_after(calls: int, sweeper: list[Sweeper], seen: list[int]) -> Callable[[], int]:
    """Work that counts its calls in ``seen`` and stops the sweep after some."""

    def run() -> int:
        seen.append(len(seen))
        if len(seen) >= calls:
            sweeper[0].stop()
        return 0

    return run


def run_until_stopped(sweepers: list[Sweeper], works: list[PeriodicWork]) -> None:
    """Run all lanes; a lane that hangs is left after a moment."""
    sweepers.append(Sweeper(works))
    sweepers[0].run()


def test_every_application_registers_its_own_work() -> None:
    names = {work.name.removeprefix("webapp.") for work in periodic_work()}
    assert len(names) == len(periodic_work())
    assert names >= {
        "cohorts.services.drafts.drafts_expire",
        "files.orphaned_files.remove_orphaned_files",
        "jobs.services.jobs_sweep",
        "letters.services.letters.letters_send",
        "operations.alerts.alerts_note",
        "surveys.services.invitations.mails_send",
        "webhooks.services.deliveries_send",
    }
    lanes = {work.lane for work in periodic_work()}
    assert lanes == {"checks", "mails", "webhooks", "mailbox", "tidying", "demonstration"}
    tidying = [work.run.__name__ for work in periodic_work() if work.lane == "tidying"]
    assert tidying[-1] == "remove_orphaned_files"  # once every row that expires has gone


def test_a_mail_server_that_does_not_answer_delays_no_other_lane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LAST_WORDS_SECONDS", 0.1)
    answered, sweepers, seen = threading.Event(), [], []
    works = [
        PeriodicWork(answered.wait, "mails"),
        PeriodicWork(stopping_after(50, sweepers, seen), "webhooks"),
    ]
    try:
        run_until_stopped(sweepers, works)
    finally:
        answered.set()
    assert len(seen) == 50


@pytest.mark.parametrize("error", [OSError("no disk"), KeyError("unforeseen")])
def test_work_that_fails_delays_no_other_of_its_lane_and_is_called_again(error: Exception) -> None:
    sweepers, failed, seen = [], [], []

    def fail() -> int:
        failed.append(1)
        raise error

    works = [PeriodicWork(fail, "a"), PeriodicWork(stopping_after(3, sweepers, seen), "a")]
    run_until_stopped(sweepers, works)
    assert len(seen) == 3
    assert len(failed) == 3


def test_work_with_a_period_waits_and_a_failure_is_repeated_within_the_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    sweepers, times = [], []

    def pass_time() -> int:
        clock[0] += 1800
        if clock[0] > 2 * DAY:
            sweepers[0].stop()
        return 0

    def tidy() -> int:
        times.append(clock[0])
        if len(times) == 1:
            raise OSError("no disk")
        return 1

    run_until_stopped(sweepers, [PeriodicWork(tidy, "a", DAY), PeriodicWork(pass_time, "a")])
    assert times == [0.0, 3600.0, 3600.0 + DAY]


def test_messages_are_sent_without_a_pause_while_more_are_due(settings: LazySettings) -> None:
    settings.JOB_SWEEP_SECONDS = 3600
    sweepers, left = [], [3]

    def send() -> int:
        left[0] -= 1
        if left[0] == 0:
            threading.Timer(0.1, sweepers[0].stop).start()
        return left[0]

    run_until_stopped(sweepers, [PeriodicWork(send, "mails", repeats=True)])
    assert left == [0]
