"""Counts of answers: shared by forked processes, never lost with one, and never a file."""

import math
import os

import pytest

from webapp.monitoring.request_counts import RequestCounts, view_names


def found(counts: RequestCounts) -> dict[tuple[str, str], tuple[float, float]]:
    """Answers and seconds by view and class."""
    return {
        (view, status): (buckets[-1][1], seconds)
        for view, status, buckets, seconds in counts.histograms()
    }


def test_an_answer_is_counted_up_to_each_bound_above_it() -> None:
    counts = RequestCounts(["common:home"])
    for seconds in (0.01, 0.03, 99.0):
        counts.count("common:home", 204, seconds)
    ((view, status, buckets, seconds),) = counts.histograms()
    assert (view, status, seconds) == ("common:home", "2xx", pytest.approx(99.04))
    by_bound = dict(buckets)
    assert [by_bound[bound] for bound in (0.01, 0.025, 0.05, 30.0, math.inf)] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("status", "name"), [(42, "1xx"), (404, "4xx"), (507, "5xx"), (999, "5xx")]
)
def test_an_unknown_view_counts_as_none(status: int, name: str) -> None:
    counts = RequestCounts(["common:home"])
    counts.count("no such view", status, 1.0)
    assert found(counts) == {("none", name): (1, 1.0)}


def test_forked_processes_count_together_and_one_that_ends_takes_nothing_along() -> None:
    counts = RequestCounts(["common:home"], n_parts=2)
    for _ in range(5):
        part = counts.take_part()
        pid = os.fork()
        if pid == 0:
            counts.count_in(part)
            counts.count("common:home", 200, 0.5)
            os._exit(0)
        os.waitpid(pid, 0)
        counts.free_part(part)
    assert found(counts) == {("common:home", "2xx"): (5, 2.5)}


def test_more_processes_than_parts_share_the_last_part() -> None:
    counts = RequestCounts(["common:home"], n_parts=2)
    assert [counts.take_part() for _ in range(4)] == [0, 1, 1, 1]


def test_every_named_view_has_a_place() -> None:
    names = set(view_names())
    assert {"monitoring:healthz", "jobs:job", "accounts:sign-in"} <= names
