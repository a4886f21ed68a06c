"""Answers with several units are ordered by what they amount to: 30 minutes stood after 2 hours."""

import random

import pytest

from engine.tabular.answer_order import order_answers


@pytest.mark.parametrize(
    "line",
    [
        "30 min|1 hour|2 hours",
        "Less than 30 minutes|30-60 minutes|1-2 hours|More than 2 hours",
        "30 min - 1 hour|1-2 hours|2+ hours",
        "<30 min|30-60 min|1-2 h|>2 h",
        "45m|1h|1h30|2h",
        "1 hour|1 hour 30 min|2 hours",
        "half an hour|an hour|2 hours",
        "less than an hour|1-2 hours|more than 2 hours",
        "0 min|30 min|1 h",
        "30 min a day|1 hour a day|2 hours a day",
        "2 weeks|1 month|6 months|1 year",
        "Less than 6 months|6-12 months|1-2 years|More than 2 years",
        "weniger als 30 Minuten|30 Minuten bis 1 Stunde|mehr als 1 Stunde",
        "30 minutos|1 hora|2 horas",
        "30 minutes|1 heure|2 heures",
        "30 minuti|1 ora|2 ore",
        "500 m|1 km|2 km",
        "5'4|5'10|6'0",
        "5' 4\"|5' 10\"|6' 0\"",
        "5 ft 4 in|5 ft 10 in|6 ft",
        "500 MB|1 GB|2 TB",
        "$500|$1k|$10k",
        "<5k|5k-10k|>10k",
    ],
)
def test_amounts_are_ordered_by_size(line: str) -> None:
    answers = line.split("|")
    shuffled = random.Random(1).sample(answers, len(answers))
    assert order_answers(shuffled) == (tuple(answers), True)


@pytest.mark.parametrize(
    "line",
    [
        "1 hour a day|1 hour a week|3 hours a day",
        "1 hour per week|30 minutes per day|2 hours per day",
        "30 min|1 hour|2",
        "once a week|2 hours a day|daily",
    ],
)
def test_what_cannot_be_compared_has_no_order(line: str) -> None:
    assert not order_answers(line.split("|"))[1]


@pytest.mark.parametrize(
    "line",
    [
        "Never|1 day a week|2-3 days a week|5 days a week|daily",
        "every 4 weeks|every 2 weeks|every week",
        "1 Tag pro Woche|2-3 Tage pro Woche|täglich",
        "once a month|2 weekends a month|every weekend",
        "1 week|2 weeks|3 weeks",
    ],
)
def test_days_a_week_are_frequencies_and_weeks_are_not(line: str) -> None:
    """5 days a week stood after daily."""
    answers = line.split("|")
    assert order_answers(answers[::-1]) == (tuple(answers), True)
