"""Responses as survey programs record them: times, events, and which were finished."""

import pytest

from engine.tabular.reading import read_table
from engine.tabular.responses import Responses, responses_of


def responses(text: str) -> Responses:
    return responses_of(read_table(text.encode()))


QUALTRICS = (
    "StartDate,EndDate,Finished,ResponseId,Q1\n"
    "2026-03-01 10:00:00,2026-03-01 10:20:00,True,R_1,Yes\n"
    "2026-03-01 11:00:00,2026-03-01 11:05:00,{unfinished},R_2,No\n"
    "2026-02-27 10:00:00,2026-02-27 10:10:00,True,R_3,No\n"
)


@pytest.mark.parametrize("word", ["False", "FALSCH", "Faux", "ложь", "0"])
def test_unfinished_rows_are_known_in_the_language_of_the_spreadsheet(word: str) -> None:
    found = responses(QUALTRICS.format(unfinished=word))
    assert found.unfinished == [3]


def test_the_end_of_a_response_counts_before_its_start() -> None:
    found = responses(QUALTRICS.format(unfinished="True"))
    assert found.time_column == 1
    assert found.unfinished == []


def test_a_finished_row_is_later_than_an_unfinished_one() -> None:
    found = responses(QUALTRICS.format(unfinished="False"))
    assert found.latest([0, 1]) == 0
    assert found.latest([1, 2]) == 2
    assert responses(QUALTRICS.format(unfinished="True")).latest([0, 1, 2]) == 1


def test_without_times_the_order_of_the_rows_counts() -> None:
    found = responses("id,Smokes\na,Yes\na,No\nb,No\n")
    assert (found.time_column, found.event_column) == (None, None)
    assert found.latest([0, 1]) == 1


def test_events_are_known_where_they_differ() -> None:
    redcap = (
        "record_id,redcap_event_name,tidy,habits_complete\n1,{one},3,2\n1,{two},4,2\n2,{one},5,2\n"
    )
    assert responses(redcap.format(one="baseline", two="spring")).event_column == 1
    assert responses(redcap.format(one="baseline", two="baseline")).event_column is None
