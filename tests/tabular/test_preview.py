"""What columns are guessed to be, which problems are seen, and what each button does."""

import pytest

from engine.tabular.actions import ActionError, apply_action, read_request
from engine.tabular.choices import Choices, Kind, Role
from engine.tabular.guesses import guess_choices
from engine.tabular.preview import Preview, build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import review
from engine.tabular.table import Table
from tests.shared_data import shared_data

BEDTIMES = ("Before 10 pm", "10–11 pm", "11 pm–12", "12–1 am", "After 1 am")


def make_table(rows: int = 40, **changes: dict[int, str]) -> Table:
    """A small survey; ``changes`` maps a column to {row position: cell}."""
    lines = []
    for k in range(rows):
        cells = {
            "student_id": f"N{k:03d}",
            "Bedtime": BEDTIMES[k % 5],
            "Smokes": "Yes" if k % 3 else "No",
            "Tidiness": str(1 + k % 5),
            "Gender": "F" if k % 2 else "M",
            "Email": f"person{k}@example.org",
        }
        for column, cell in changes.items():
            cells[column] = cell.get(k, cells[column])
        lines.append(",".join(cells.values()))
    header = "student_id,Bedtime,Smokes,Tidiness,Gender,Email"
    return read_table("\n".join([header, *lines]).encode())


def preview_of(table: Table) -> Preview:
    return build_preview(table, guess_choices(table))


def sentences(preview: Preview) -> list[str]:
    return [problem.sentence for problem in preview.errors]


def press(
    table: Table, choices: Choices, action: str, columns: list[int] | None = None, **data: str
):
    request = read_request(table, data, [str(c) for c in columns or []])
    return apply_action(action, choices, request)


def test_it_guesses_roles_kinds_and_order() -> None:
    choices = guess_choices(make_table())
    roles = [column.role for column in choices.columns]
    assert roles == [Role.ID, *[Role.QUESTION] * 3, Role.CONSTRAINT, Role.EMAIL]
    assert choices.columns[1].levels == BEDTIMES
    assert [c.kind for c in choices.columns[1:4]] == [Kind.ORDINAL, Kind.BINARY, Kind.ORDINAL]


def test_dates_that_staff_called_dates_may_become_a_question_after_all() -> None:
    siblings = ("0", "02.Jan", "04.Mär", "5+")
    rows = [f"N{k:03d},{siblings[k % 4]},{'Yes' if k % 3 else 'No'}" for k in range(40)]
    table = read_table("\n".join(["student_id,Siblings,Smokes", *rows]).encode())
    choices = guess_choices(table).with_role([1], Role.QUESTION)
    found = review(build_preview(table, choices)).cause("made dates Siblings")
    assert found.other is not None
    called_dates = found.other.act(choices).with_role([1], Role.QUESTION)
    preview = build_preview(table, called_dates)
    assert not [one for one in preview.problems if one.kind == "made dates"]


def test_a_row_that_lacks_a_cell_is_named() -> None:
    """It used to be filled up in silence, with its answers in wrong columns."""
    lines = ["id,Smokes,Tidy,Gender"] + [f"N{k},Yes,{k % 3},F" for k in range(30)]
    for row in (3, *range(6, 28)):
        lines[row - 1] = lines[row - 1].replace("Yes,", "")
    table = read_table("\n".join(lines).encode())
    choices = guess_choices(table)

    def warnings(choices: Choices) -> list[str]:
        found = build_preview(table, choices).warnings
        return [p.sentence for p in found if "one cell fewer" in p.sentence]

    assert warnings(choices)[0] == "Row 3 has one cell fewer than the header."
    assert warnings(choices)[-1] == "3 more rows have one cell fewer than the header."
    assert len(warnings(choices)) == 21
    left = press(table, choices, "leave_out", row="3")
    assert warnings(left)[0].startswith("Row 6 ")


def test_a_good_table_can_be_imported() -> None:
    preview = preview_of(make_table())
    assert preview.can_import
    counts = {role: count for role, count in preview.role_counts.items() if count}
    assert counts == {"id": 1, "question": 3, "constraint": 1, "email": 1}


def test_a_file_with_many_repeated_ids_still_has_its_id_column() -> None:
    table = make_table(40, student_id={k: f"N{k - 15:03d}" for k in range(25, 40)})
    assert "Row 27: N010 appears twice, first in row 12." in sentences(preview_of(table))


def test_a_repeated_id_names_both_rows_and_offers_both() -> None:
    table = make_table(student_id={30: "N005"})
    preview = preview_of(table)
    assert sentences(preview) == ["Row 32: N005 appears twice, first in row 7."]
    assert [fix.label for fix in preview.errors[0].fixes] == ["Leave out row 32", "Leave out row 7"]
    choices = press(table, preview.choices, "leave_out", row="32")
    assert build_preview(table, choices).can_import


def test_a_blank_id_names_its_row() -> None:
    assert sentences(preview_of(make_table(student_id={3: ""}))) == ["Row 5: student_id is blank."]


def test_an_unknown_answer_can_become_blank_or_an_answer() -> None:
    table = make_table(rows=60, Bedtime={9: "whenever"})
    preview = preview_of(table)
    assert sentences(preview) == ["Row 11, Bedtime: “whenever” is not one of the five answers."]
    blank = press(table, preview.choices, "meaning", [1], answer="whenever", value="")
    assert build_preview(table, blank).can_import
    counted = press(table, preview.choices, "meaning", [1], answer="whenever", value=BEDTIMES[4])
    assert build_preview(table, counted).columns[1].counts[4] == 12
    added = press(table, preview.choices, "add_level", [1], answer="whenever")
    assert build_preview(table, added).columns[1].choice.levels[-1] == "whenever"


@pytest.mark.parametrize("cell", ["nan", "inf", "-Infinity"])
def test_a_number_that_is_none_names_row_and_column(cell: str) -> None:
    preview = preview_of(make_table(Tidiness={4: cell}))
    assert sentences(preview) == [f"Row 6, Tidiness: “{cell}” is not a finite number."]


def test_a_constant_question_cannot_be_one() -> None:
    table = make_table(Smokes=dict.fromkeys(range(40), "No"))
    choices = guess_choices(table)
    assert choices.columns[2].role is Role.IGNORE
    forced = build_preview(table, choices.with_role([2], Role.QUESTION))
    assert sentences(forced) == ["Smokes: everyone answered “No”."]


def test_one_student_is_too_few() -> None:
    table = make_table(rows=5)
    choices = guess_choices(table)
    for row in ("3", "4", "5", "6"):
        choices = press(table, choices, "leave_out", row=row)
    assert "Only 1 student: at least 2 are needed to make a pair." in sentences(
        build_preview(table, choices)
    )


def test_an_odd_number_is_said_but_stops_nothing() -> None:
    preview = preview_of(make_table(rows=41))
    assert preview.can_import
    assert any("41 students cannot all be paired" in note.sentence for note in preview.notes)


def test_answers_move_and_the_ends_hold_them() -> None:
    table = make_table()
    choices = guess_choices(table)
    moved = press(table, choices, "move", [1], position="0", value="down")
    assert moved.columns[1].levels[:2] == (BEDTIMES[1], BEDTIMES[0])
    assert press(table, choices, "move", [1], position="0", value="up") == choices
    assert press(table, choices, "reverse", [1]).columns[1].levels == BEDTIMES[::-1]


def test_a_new_id_replaces_the_old_one() -> None:
    table = make_table()
    choices = press(table, guess_choices(table), "role", [5], value="id")
    assert [c.role for c in choices.columns].count(Role.ID) == 1
    assert choices.columns[5].role is Role.ID


@pytest.mark.parametrize(
    ("action", "columns", "data"),
    [
        ("role", [99], {"value": "question"}),
        ("role", [1], {"value": "nonsense"}),
        ("role", [], {"value": "question"}),
        ("kind", [1], {"value": "nonsense"}),
        ("leave_out", [], {"row": "4000"}),
        ("meaning", [1], {"answer": "x", "value": "not an answer"}),
        ("keep_best", [], {"value": "-3"}),
        ("explode", [], {}),
    ],
)
def test_senseless_buttons_get_a_sentence(action: str, columns: list[int], data: dict) -> None:
    table = make_table()
    with pytest.raises(ActionError):
        press(table, guess_choices(table), action, columns, **data)


def test_choices_survive_json() -> None:
    choices = guess_choices(make_table()).without_rows([3]).with_meaning(1, "x", "")
    assert Choices.from_json(choices.to_json()) == choices


def test_the_young_people_survey_is_classified_sensibly() -> None:
    data = (shared_data("young_people_survey") / "responses.csv").read_bytes()
    table = read_table(data)
    choices = guess_choices(table)
    by_name = dict(zip(table.header, choices.columns, strict=True))
    scale = ("1", "2", "3", "4", "5")
    assert sum(column.levels == scale for column in choices.columns) == 135
    assert by_name["Gender"].role is Role.CONSTRAINT
    assert by_name["Height"].levels == ()
    assert by_name["Smoking"].levels[0] == "never smoked"
    preview = build_preview(table, choices)
    assert any("choose 14 to 30" in sentence for sentence in sentences(preview))
    chosen = press(table, choices, "keep_best", value="24")
    better = build_preview(table, chosen)
    assert better.can_import
    assert better.role_counts["question"] == 24
    assert better.role_counts["constraint"] == 1


def test_an_answer_written_in_several_ways_is_made_one() -> None:
    table = make_table(Smokes={1: "YES", 4: "YES", 5: "yes", 7: "yes", 3: "NO", 6: "NO"})
    preview = preview_of(table)
    warnings = [problem for problem in preview.warnings if problem.column == 2]
    assert [problem.sentence for problem in warnings] == [
        "Smokes: “Yes” and “YES” and “yes” count as different.",
        "Smokes: “No” and “NO” count as different.",
    ]
    choices = preview.choices
    for fix in (fix for problem in warnings for fix in problem.fixes):
        choices = press(table, choices, fix.action, [2], answer=fix.answer, value=fix.meaning)
    preview = build_preview(table, choices)
    assert (choices.columns[2].kind, choices.columns[2].levels) == (Kind.BINARY, ("No", "Yes"))
    assert preview.columns[2].counts == (14, 26)
    assert not [problem for problem in preview.problems if problem.column == 2]


def test_a_group_written_in_two_ways_is_made_one() -> None:
    table = make_table(Gender={1: "f"})
    preview = preview_of(table)
    fix = next(p for p in preview.warnings if p.column == 4).fixes[0]
    assert fix.label == "Count “f” as “F”"
    choices = press(table, preview.choices, "meaning", [4], answer=fix.answer, value=fix.meaning)
    assert not [p for p in build_preview(table, choices).problems if p.column == 4]


@pytest.mark.parametrize(
    ("column", "short", "whole", "others"),
    [("Smokes", "Y", "Yes", "No"), ("Smokes", "n", "No", "Yes"), ("Gender", "F", "Female", "Male")],
)
def test_a_letter_for_a_word_is_offered_as_the_word(
    column: str, short: str, whole: str, others: str
) -> None:
    """F and Female were two groups that never share a room."""
    cells = {row: (whole, others)[row % 2] for row in range(40)} | {3: short, 9: short}
    preview = preview_of(make_table(**{column: cells}))
    (warning,) = [problem for problem in preview.warnings if problem.kind == "spelling"]
    assert [(fix.answer, fix.meaning) for fix in warning.fixes] == [(short, whole)]


def test_a_letter_stays_where_no_word_is_meant() -> None:
    table = make_table(Smokes={row: "YNS"[row % 3] for row in range(40)})
    assert not [p for p in preview_of(table).warnings if p.kind == "spelling"]


@pytest.mark.parametrize("slip", ["after 1 AM", "After 1\u00a0 am", "Ａfter 1 am"])
def test_a_single_answer_that_is_written_otherwise_is_no_unknown_answer(slip: str) -> None:
    table = make_table(rows=60, Bedtime={9: slip})
    preview = preview_of(table)
    assert not preview.errors
    (warning,) = [problem for problem in preview.warnings if problem.kind == "spelling"]
    assert [fix.meaning for fix in warning.fixes] == ["After 1 am"]


def test_what_was_counted_as_an_answer_follows_it() -> None:
    table = make_table(Smokes={1: "YES", 4: "YES", 5: "yes", 7: "yes"})
    choices = press(table, guess_choices(table), "meaning", [2], answer="YES", value="yes")
    choices = press(table, choices, "meaning", [2], answer="yes", value="Yes")
    assert build_preview(table, choices).columns[2].counts == (14, 26)
