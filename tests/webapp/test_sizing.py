"""Sizes follow what a machine really gives, and can be set."""

import os
from pathlib import Path

import pytest

from webapp.sizing import count_cores, sizes
from webapp.supervisor import roles

NAMES = (
    "WEB_WORKERS", "WEB_THREADS", "JOB_WORKERS", "LEARN_WORKERS", "JOB_THREADS", "CARD_WORKERS",
)  # fmt: skip


@pytest.fixture(autouse=True)
def large_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 64),
        ({"cpu.max": "nonsense\n"}, 64),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ({}, 64),
    ],
)
def test_a_containers_quota_counts(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    """A container of two cores on a host of 64 used to start 128 processes."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="ascii")
    assert count_cores(tmp_path) == cores


def test_the_affinity_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert count_cores(tmp_path) == 3


def test_one_core_still_gets_two_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.sizing.count_cores", lambda: 1)
    assert (sizes().web_workers, sizes().job_workers, sizes().job_threads) == (2, 2, 1)


def test_each_number_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(NAMES, start=11):
        monkeypatch.setenv(name, str(number))
    found = sizes()
    assert [getattr(found, name.lower()) for name in NAMES] == [11, 12, 13, 14, 15, 16]


@pytest.mark.parametrize(("text", "nice"), [("", 10), ("0", 0), ("5", 5), ("40", 19)])
def test_long_work_gives_way_as_far_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch, text: str, nice: int
) -> None:
    monkeypatch.setenv("LEARN_NICE", text)
    assert sizes().learn_nice == nice
    assert roles.low_priority("card-learner", sizes()) == {"WORKER_NICE": str(nice)}
    assert roles.low_priority("learner", sizes()) == {"WORKER_NICE": str(nice)}
    assert roles.low_priority("worker", sizes()) == {"WORKER_NICE": str(min(nice, 10))}


@pytest.mark.parametrize("text", ["0", "-2", "many", "1.5"])
def test_a_number_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("WEB_WORKERS", text)
    with pytest.raises(ValueError, match="WEB_WORKERS: expected a whole number"):
        sizes()
