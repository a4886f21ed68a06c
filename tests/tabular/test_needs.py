"""Columns of needs: recognised where the file is read, and never scored."""

import pytest

from engine.tabular.answers import read_answers
from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.needs import parse_needs
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table

HEAD = "Student id,Sleep,Guests"


def file_with(title: str, cells: list[str]) -> bytes:
    rows = [
        f"N{k:02d},{('early', 'late')[k % 2]},{('yes', 'no', 'no')[k % 3]},{cell}"
        for k, cell in enumerate(cells)
    ]
    return "\n".join([f"{HEAD},{title}", *rows]).encode()


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Do you need an accessible room?", "Ground floor"),
        ("Accessible", "yes"),
        ("Needs", '"Ground floor, Quiet"'),
        ("Medical needs", "Visual alarm"),
        ("Housing needs", "Lift"),
        ("Special needs", "Wheelchair-accessible room"),
        ("Accommodation request", "Ground floor"),
        ("Rollstuhl / barrierefrei", "ja"),
    ],
)
def test_it_recognises_a_column_of_needs(title: str, said: str) -> None:
    cells = [said if k % 5 == 0 else "" for k in range(30)]
    table = read_table(file_with(title, cells))
    preview = build_preview(table, guess_choices(table))
    (need,) = preview.columns_as(Role.NEED)
    answers = read_answers(preview)
    assert answers.needs == (need.name,)
    assert answers.rules[need.name][0] == said.strip('"')
    assert need.name not in {question.name for question in answers.questions}


@pytest.mark.parametrize(
    "title",
    [
        "I need quiet to sleep",
        "How important is an accessible kitchen?",
        "Would you like a roommate who needs quiet?",
        "Guests of the other sex need my consent",
    ],
)
def test_a_question_about_habits_is_no_need(title: str) -> None:
    table = read_table(file_with(title, [("yes", "no")[k % 2] for k in range(30)]))
    assert not build_preview(table, guess_choices(table)).columns_as(Role.NEED)


@pytest.mark.parametrize("said", ["Yes", "ja", "Sí", "Checked", "✓", "TRUE", "Yes."])
def test_a_yes_in_any_program_is_the_need_of_the_column(said: str) -> None:
    assert parse_needs("Step-free", said) == ["Step-free"]


@pytest.mark.parametrize(
    "said",
    ["", "No", "Unchecked", "N/A", "n/a", "–", "None.", "nothing", "Prefer not to say", "keine",
     "keine Angabe", "Ninguna", "Aucun", "No needs", "FALSE", "☐"],
)  # fmt: skip
def test_words_for_no_need_are_no_need(said: str) -> None:
    """No room meets a need called "Unchecked" or "N/A", so those students had no bed."""
    assert parse_needs("Step-free", said) == []


@pytest.mark.parametrize("said", ["maybe", "Yes, but only my phone", "rather not", "?", "yes|no"])
def test_an_answer_that_is_no_clear_yes_is_not_the_column(said: str) -> None:
    assert parse_needs("Share my e-mail", said) != ["Share my e-mail"]


@pytest.mark.parametrize(
    "title",
    [
        "Ground floor needed", "Ground floor", "Deaf/hard of hearing (visual alarm)", "ADA room",
        "Rollstuhlgerechtes Zimmer", "Erdgeschoss nötig", "Silla de ruedas", "Planta baja",
        "Fauteuil roulant", "Rez-de-chaussée",
    ],
)  # fmt: skip
def test_a_ticked_box_is_a_need(title: str) -> None:
    """Columns of "Yes" and blanks were left out silently."""
    rows = "".join(f"X{k},{('Early', 'Late')[k % 2]},{('Yes', '')[k % 2]}\n" for k in range(12))
    choices = guess_choices(read_table(f"Student ID,Bedtime,{title}\n{rows}".encode()))
    assert choices.columns[2].role is Role.NEED
