"""Facts about a student can be rules of sharing a room; what somebody would like cannot."""

import pytest

from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.reading import read_table
from engine.tabular.rule_columns import rule_of

HALLS = {"North": 20, "South": 20, "East": 20}


@pytest.mark.parametrize(
    ("title", "rule"),
    [
        ("Hall", "hall"),
        ("Residence hall", "hall"),
        ("Which building did you live in?", "hall"),
        ("Gender (choose one)", "gender"),
        ("RA?", "RA"),
        ("Hall choice 1", ""),
        ("1st choice hall", ""),
        ("Hall rank", ""),
        ("Which hall do you want to live in?", ""),
        ("House rules", ""),
        ("Do you want to be an RA?", ""),
        ("Do you want a wheelchair accessible room?", "accessible"),
        ("I wish for a ground-floor room", "accessible"),
    ],
)
def test_a_wish_is_no_rule(title: str, rule: str) -> None:
    assert rule_of(title, "", HALLS) == rule


@pytest.mark.parametrize("title", ["1st choice hall", "Preferred hall"])
def test_a_hall_that_somebody_would_like_divides_nobody(title: str) -> None:
    """Students of different first choices could not share a room."""
    halls = tuple(HALLS)
    rows = "".join(f"N{k:03d},{halls[k % 3]},{halls[k % 2]}\n" for k in range(40))
    table = read_table(f"Student ID,{title},Hall\n{rows}".encode())
    roles = [column.role for column in guess_choices(table).columns]
    assert roles == [Role.ID, Role.QUESTION, Role.CONSTRAINT]
