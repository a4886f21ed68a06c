"""What is skipped is said; with REQUIRE_ALL=1 a skip is a failure, except for want of extras."""

import gc
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.made_once import shared_folder
from tests.shared_data import EXTRA
from webapp.instance import instance_folder

REQUIRED = os.environ.get("REQUIRE_ALL") == "1"
# Time tells how busy the machine is, not whether a property holds. Where a change is accepted or
# not, the same examples are drawn each time; everywhere else new ones.
settings.register_profile(
    "house",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=REQUIRED or settings.default.derandomize,
)
settings.load_profile("house")
# What a test waits for shares the cores with whatever else runs here, instead of giving way to it.
os.environ.setdefault("LEARN_NICE", "0")
# Processes of a run share what XLA compiles for networks, which takes longer than they do.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(shared_folder() / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
instance_folder()  # the product makes it as it starts; its free room is on several pages


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long: other workers would wait for the last of them."""
    long = {
        item.path
        for item in items
        if item.get_closest_marker("slow") or item.get_closest_marker("browser")
    }
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Search for garbage rarely, and never among the tests, which are kept until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the report of a skipped test into a failure where everything is required."""
    report = yield
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail") and not _is_extra(report):
        report.outcome = "failed"
        report.longrepr = f"skipped although REQUIRE_ALL=1: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file that skips itself while it is collected."""
    report = yield
    if REQUIRED and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped although REQUIRE_ALL=1: {_reason(report.longrepr)}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Leave counts and reasons for ``bin/test``, which adds several runs together."""
    path = os.environ.get("TEST_SUMMARY")
    if path is None or "PYTEST_XDIST_WORKER" in os.environ:  # the workers' reports come to us too
        return
    stats = terminalreporter.stats
    with Path(path).open("a", encoding="utf-8") as file:
        for outcome in ("passed", "failed", "error", "skipped", "xfailed", "xpassed"):
            file.write(f"count {outcome} {len(stats.get(outcome, []))}\n")
        for report in stats.get("skipped", []):
            file.write(f"skip {_reason(report.longrepr)}\n")


def _is_extra(report: pytest.TestReport) -> bool:
    """Whether only an input is absent that no machine has to have."""
    return _reason(report.longrepr).startswith(EXTRA)


def _reason(longrepr: object) -> str:
    """The sentence of a skip."""
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ").replace("\n", " ")
