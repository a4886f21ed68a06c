"""The time of a learning run: told from the first second, reading apart."""

from engine.core.progress import Progress
from engine.learning.segmentation import clock as clock_module
from engine.learning.segmentation.clock import Clock, Pace, expected_seconds


def test_time_left_is_told_at_once_and_reading_does_not_swell_it(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    now = [100.0]
    monkeypatch.setattr(clock_module, "wall_seconds", lambda: now[0])
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


def test_what_comes_after_the_trees_counts_from_the_first_second(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """The page once said "2 seconds" for a minute while ways to learn were compared."""
    now = [0.0]
    monkeypatch.setattr(clock_module, "wall_seconds", lambda: now[0])
    monkeypatch.setattr(clock_module, "count_threads", lambda: 1)
    reports: list[Progress] = []
    clock = Clock(reports.append, max_seconds=None, started=0.0)
    clock.begin(1000, later=60.0)
    clock.report("Filtering the images", 0.0)
    assert reports[-1].seconds_left == expected_seconds(1000) + 60.0
    now[0] = 10.0
    pace = Pace(clock, [2.0, 50.0, 6.0, 2.0])
    pace.next("univariate")
    assert reports[-1].seconds_left == 60.0
    now[0] = 14.0  # a busy machine: twice as slow
    pace.next("likelihood")
    assert reports[-1].seconds_left == 116.0
    now[0] = 70.0
    pace.next("looking")
    left = reports[-1].seconds_left
    assert left is not None
    assert 8.0 < left < 16.0
    fractions = [report.fraction for report in reports]
    assert fractions == sorted(fractions)  # type: ignore[type-var]


def test_no_more_is_left_than_the_limit_allows() -> None:
    reports: list[Progress] = []
    clock = Clock(reports.append, max_seconds=5.0)
    clock.foresee("likelihood", 100.0)
    left = reports[-1].seconds_left
    assert left is not None
    assert left <= 5.0
