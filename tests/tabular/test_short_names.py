"""Short names say what was asked, not what a survey program adds to every question."""

import pytest

from engine.tabular.short_names import own_part, short_names


def test_what_qualtrics_adds_to_a_question_names_no_column() -> None:
    """Two columns of a file were called "Selected Choice" and "Text"."""
    asked = [
        "Which pets do you have? - Selected Choice",
        "Which pets do you have? - Other, please say - Text",
        "Where did you grow up? - Text",
    ]
    assert short_names(asked) == ["Pets", "Other", "Grow up"]


@pytest.mark.parametrize(
    ("wording", "own"),
    [
        ("How far do you agree? - I like it quiet", "I like it quiet"),
        ("How far do you agree? [I like it quiet]", "I like it quiet"),
        ("Text", "Text"),
    ],
)
def test_a_row_of_a_grid_is_what_is_its_own(wording: str, own: str) -> None:
    assert own_part(wording) == own
