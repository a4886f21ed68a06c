"""Numbers, durations and times as the pages write them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.live.product import ROOT
from webapp.common import formats
from webapp.common.templatetags import interface


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(2436, 0, "2,436"), (-201.6, 1, "−201.6"), (-0.04, 1, "0.0"), (None, 0, ""),
     (float("nan"), 2, ""), (float("inf"), 2, ""), (0, 0, "0")],
)  # fmt: skip
def test_number(value: float | None, digits: int, text: str) -> None:
    assert formats.number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.7, "+0.70"),
        (-0.34, "−0.34"),
        (0.0, "0.00"),
        (0.001, "0.00"),
        (-0.001, "0.00"),
        (None, ""),
    ],
)
def test_signed(value: float | None, text: str) -> None:
    assert formats.signed(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.033, "3.3 %"), (0.0002, "under 0.1 %"), (0.0, "0.0 %"), (1, "100.0 %")]
)
def test_per_cent(value: float, text: str) -> None:
    assert formats.per_cent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(8.7e-5, "0.0087 %"), (1e-4, "0.01 %"), (3e-3, "0.3 %"), (9.41e-5, "0.0095 %"),
     (0.1234, "13 %"), (2.341, "235 %"), (9.96e-4, "0.1 %"), (1e-15, "0.000000001 %"),
     (0.0, "0 %"), (float("inf"), "unknown"), (None, "unknown")],
)  # fmt: skip
def test_a_gap_is_never_rounded_down(value: float | None, text: str) -> None:
    assert formats.gap(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.2e-9, "0.001 %"), (9e-6, "0.001 %"), (8.7e-5, "0.0087 %"), (0.0, "0 %"), (None, "unknown")],
)
def test_staff_read_no_gap_below_a_thousandth_of_a_per_cent(value: float | None, text: str) -> None:
    assert formats.rough_gap(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (38, "38 s"), (59.7, "1 min"), (125, "2 min 5 s"),
     (3600, "1 h"), (3840, "1 h 4 min"), (timedelta(seconds=61), "1 min 1 s")],
)  # fmt: skip
def test_duration(seconds: object, text: str) -> None:
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (3, "a few seconds"), (21, "about 20 s"), (70, "about 1 min"),
     (7300, "about 2 h 2 min")],
)  # fmt: skip
def test_time_left(seconds: float | None, text: str) -> None:
    assert formats.time_left(seconds) == text


def test_when() -> None:
    now = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
    assert formats.when(now.replace(hour=9, minute=12), now) == "today 09:12"
    assert formats.when(now - timedelta(days=1), now) == "yesterday 14:00"
    assert formats.when(datetime(2026, 11, 3, tzinfo=UTC), now) == "3 Nov"
    assert formats.when(datetime(2025, 11, 3, tzinfo=UTC), now) == "3 Nov 2025"


def test_days_and_moments_have_one_form() -> None:
    late = datetime(2026, 8, 5, 14, 7, tzinfo=UTC)
    assert formats.day(late.date()) == interface.day(late.date()) == "5 Aug 2026"
    assert formats.moment(late) == interface.moment(late) == "Wed 5 Aug 2026, 14:07"
    assert interface.day(None) == interface.moment(None) == ""
    written = re.compile(r'\|date:"(?!Y-m-d|H:i")')
    pages = [path for path in (ROOT / "templates").rglob("*.html") if "student" not in path.parts]
    assert len(pages) > 200
    assert [path.name for path in pages if written.search(path.read_text("utf-8"))] == []


def test_mantissa_and_exponent() -> None:
    assert formats.mantissa_and_exponent(7.4e-4) == ("7.4", -4)
    assert formats.mantissa_and_exponent(0.0) == ("0", 0)
    assert formats.mantissa_and_exponent(-123.0) == ("−1.2", 2)


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 pairs"), (1, "1 pair"), (2, "2 pairs"), (1058, "1,058 pairs")]
)
def test_a_count_and_its_noun_agree(count: int, words: str) -> None:
    assert formats.counted(count, "pair") == words
    assert interface.counted(count, "pair") == words
