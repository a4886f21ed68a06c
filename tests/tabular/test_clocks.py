"""Hours after midnight come after those of the evening, however a survey writes them."""

import random

import pytest

from engine.tabular.answer_order import order_answers


@pytest.mark.parametrize(
    "line",
    [
        "10-11|11-12|12-1|1-2",
        "before 10|10-11|11-12|12-1|after 1",
        "6-8|8-10|10-12|12-2",
        "22-23|23-0|0-1|1-2",
        "22h|23h|0h|1h",
        "22h|22h30|23h30|0h30",
        "vor 22 Uhr|22-23 Uhr|23-24 Uhr|nach 24 Uhr",
        "22 Uhr|23 Uhr|0 Uhr|1 Uhr",
        "21.00|22.00|23.00|00.00",
        "before 22.00|22.00-23.00|23.00-00.00|after 00.00",
        "22:30|23:30|0:30|1:30",
        "9|10|10:30|11|11:30|12|1",
        "10-11pm|11-12am|12-1am|1-2am",
        "9-10 pm|10-11 pm|11-12 pm|12-1 am",
        "Before 10pm|10-12am|12-2am|After 2am",
        "before 11 pm|11-1 am|after 1 am",
        "10 p.m.|11 p.m.|12 a.m.|1 a.m.",
        "8-10 am|10-12 am|12-2 pm|2-4 pm",
        "10-11 am|11-12 pm|12-1 pm",
    ],
)
def test_a_night_goes_on_after_midnight(line: str) -> None:
    """1-2 stood before 10-11, and 0 Uhr before 22 Uhr."""
    answers = line.split("|")
    shuffled = random.Random(1).sample(answers, len(answers))
    assert order_answers(shuffled) == (tuple(answers), True)


@pytest.mark.parametrize(
    "line",
    [
        "1h|4h|20h",
        "7h|7h30|8h|8h30",
        "7:00|8:00|22:00|23:00",
        "1-5|6-10|11-15",
        "0-5 hours|5-10 hours|10-15 hours|15+ hours",
        "2.50|19.99|23.00",
        "0|1|22|23",
        "0:00|6:00|12:00",
        "1:00|2:00|6:00|12:00",
        "01:00|02:00|12:00",
        "6|6.5|7|7-8|8|9",
        "1|1-2|2|2-3|more than 3",
    ],
)
def test_other_numbers_keep_their_order(line: str) -> None:
    answers = line.split("|")
    assert order_answers(answers[::-1]) == (tuple(answers), True)
