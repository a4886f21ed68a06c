"""The time of a learning run: told from the first second, reading apart."""

from engine.core.progress import Progress
from engine.learning import clock as clock_module
from engine.learning.clock import Clock, expected_seconds


def test_time_left_is_told_at_once_and_reading_does_not_swell_it(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    now = [100.0]
    monkeypatch.setattr(clock_module, "perf_counter", lambda: now[0])
    reports: list[Progress] = []
    clock = Clock(reports.append, max_seconds=60.0, started=100.0)
    now[0] = 140.0  # reading took forty seconds
    clock.begin(1_000_000)
    clock.report("Filtering the images", 0.0)
    assert reports[-1].seconds_left == expected_seconds(1_000_000)
    now[0] = 150.0
    clock.report("Growing the first trees", 0.5)
    assert reports[-1].seconds_left == 10.0
    assert reports[-1].seconds == 50.0
    assert clock.left == 10.0  # the limit counts reading


def test_more_pixels_take_longer() -> None:
    assert expected_seconds(10_000_000) > 2 * expected_seconds(1_000_000) > 0
