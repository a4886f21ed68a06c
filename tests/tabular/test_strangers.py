"""Surveys that strangers brought: each is read right, or what is wrong is said with one fix."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.hunts.surveys import try_seed
from engine.core.errors import InvalidProblemError
from engine.datasets.survey_csv import infer_questionnaire, read_survey_csv
from engine.tabular.answers import read_answers
from engine.tabular.choices import Kind, Role
from engine.tabular.pair_choices import find_pairs_layout, guess_pair_choices
from engine.tabular.pairs import PairsPreview, check_pairs
from engine.tabular.person_search import People
from engine.tabular.reading import read_source
from engine.tabular.table import build_table
from tests.tabular.reviews import cells_of, column_of, levels_of, reviewed, settled, titles_of
from webapp.surveys.invited import read_people

FILES = Path(__file__).with_name("strangers")
BEDTIMES = ("Before 10 pm", "10-11 pm", "After 11 pm")
AGREEMENT = (
    "Strongly disagree",
    "Disagree",
    "Neither agree nor disagree",
    "Agree",
    "Strongly agree",
)


def hidden_rows(data: bytes) -> None:
    assert "12 rows are hidden in the file" in titles_of(reviewed(data))
    cause = reviewed(data).cause("hidden rows")
    assert cause.fix is not None
    assert cause.fix.label == "Leave out 12 rows"
    assert settled(data).preview.n_students == 12


def strict(data: bytes) -> None:
    found = reviewed(data)
    assert (found.preview.n_students, found.preview.can_import) == (24, True)
    assert levels_of(found, "Bedtime") == BEDTIMES


def merged_header(data: bytes) -> None:
    found = reviewed(data)
    assert found.preview.table.header == ("Student ID", "Bedtime", "Smoke", "Tidy")
    assert found.preview.table.wordings == ("", "Habits: Bedtime", "Habits: Smoke", "Habits: Tidy")
    assert (found.preview.n_students, found.preview.can_import) == (24, True)
    assert "The header stands in 2 rows" in titles_of(found)


def ids_zero_format(data: bytes) -> None:
    assert cells_of(reviewed(data), "Student ID")[:3] == ["00123", "00124", "00125"]


def x000d(data: bytes) -> None:
    found = reviewed(data)
    assert levels_of(found, "Bedtime") == BEDTIMES
    assert levels_of(settled(data), "Music") == ("No", "Yes")


def ranges_as_dates(data: bytes) -> None:
    found = reviewed(data)
    assert not found.preview.can_import
    assert "Excel made dates of 1-2 and 3-4" in titles_of(found)
    fixed = settled(data)
    assert levels_of(fixed, "Siblings") == ("0", "1-2", "3-4", "5+")
    assert fixed.preview.can_import
    assert column_of(fixed.preview, "Date").choice.role is Role.IGNORE


def scales_of_survey_programs(data: bytes) -> None:
    found = reviewed(data)
    assert "Excel made dates of 1-2, 3-5 and 6-10" in titles_of(found)
    fixed = settled(data)
    assert levels_of(fixed, "agree7") == (
        *AGREEMENT[:2], "Somewhat disagree", AGREEMENT[2], "Somewhat agree", *AGREEMENT[3:]
    )  # fmt: skip
    lowest_and_highest = {
        "satisfaction": ("Extremely dissatisfied", "Extremely satisfied"),
        "important": ("Not at all important", "Extremely important"),
        "definitely": ("Definitely not", "Definitely yes"),
        "amount": ("None at all", "A great deal"),
        "freq": ("Never", "Always"),
        "likely": ("Extremely unlikely", "Extremely likely"),
        "german": ("Stimme überhaupt nicht zu", "Stimme voll und ganz zu"),
        "years": ("First year", "Fifth year"),
        "excel_dates": ("0", "10+"),
    }
    for name, ends in lowest_and_highest.items():
        column = column_of(fixed.preview, name)
        assert column.choice.kind is Kind.ORDINAL, name
        assert (column.choice.levels[0], column.choice.levels[-1]) == ends
        assert len(column.choice.levels) == 5
    assert levels_of(fixed, "excel_dates") == ("0", "1-2", "3-5", "6-10", "10+")


def prefer_not_on_a_scale(data: bytes) -> None:
    found = reviewed(data)
    assert levels_of(found, "Agree") == AGREEMENT
    assert cells_of(found, "Agree").count("") == 5
    assert found.preview.can_import
    cause = found.cause("declined")
    assert cause.title == "“Prefer not to answer” counts as a blank"
    assert cause.other is not None
    undone = reviewed(found.preview.table, cause.other.act(found.preview.choices))
    assert "Prefer not to answer" in levels_of(undone, "Agree")


def zero_width_answers(data: bytes) -> None:
    assert levels_of(reviewed(data), "Bedtime") == BEDTIMES


def invisible_ids(data: bytes) -> None:
    assert "12 people answered more than once" in titles_of(reviewed(data))
    assert settled(data).preview.n_students == 12


def curly_quotes(data: bytes) -> None:
    assert "1 answer is written in several ways" in titles_of(reviewed(data))
    assert levels_of(settled(data), "Guests") == ("No", "Don't know", "Yes")


def fullwidth(data: bytes) -> None:
    assert "3 answers are written in several ways" in titles_of(reviewed(data))
    assert levels_of(settled(data), "Scale") == ("1", "2", "3", "4", "5")


def header_in_the_middle(data: bytes) -> None:
    found = reviewed(data)
    assert (found.preview.n_students, found.preview.can_import) == (48, True)
    assert "1 row repeats the header" in titles_of(found)


def mojibake(data: bytes) -> None:
    assert "Letters are garbled: “CafÃ©” was “Café”" in titles_of(reviewed(data))
    fixed = settled(data)
    assert levels_of(fixed, "Café") == ("Café", "Thé", "Über")
    assert cells_of(fixed, "Café")[:3] == ["Café", "Thé", "Über"]


def multi_codes(data: bytes) -> None:
    fixed = settled(data)
    chosen = [cells_of(fixed, f"Hobbies {code}")[2] for code in (1, 2, 3, 4)]
    assert chosen == ["Yes", "No", "Yes", "Yes"]  # "1,3,4"


def limesurvey_codes(data: bytes) -> None:
    found = reviewed(data)
    rows = [cells_of(found, f"G1Q2[{code}]")[:5] for code in ("SQ001", "SQ002", "other")]
    assert rows == [
        ["Yes", "No", "Yes", "No", "Yes"],
        ["Yes", "No", "No", "Yes", "No"],
        ["No", "No", "No", "Yes", "No"],
    ]


def redcap_labels(data: bytes) -> None:
    found = reviewed(data)
    assert found.preview.table.layout.maker == "REDCap"
    assert column_of(found.preview, "Complete?").choice.role is Role.IGNORE
    assert levels_of(found, "Hobbies (choice=Music)") == ("Unchecked", "Checked")
    assert column_of(found.preview, "Hobbies (choice=Music)").name == "Music"
    assert "8 answers were not finished" in titles_of(found)


def id_na(data: bytes) -> None:
    found = reviewed(data)
    assert [cause.title for cause in found.causes if cause.is_error] == ["2 rows are without an id"]
    assert settled(data).preview.n_students == 22


def ids_na_several(data: bytes) -> None:
    found = reviewed(data)
    assert [cause.title for cause in found.causes if cause.is_error] == ["3 rows are without an id"]
    assert settled(data).preview.n_students == 21


def ids_scientific(data: bytes) -> None:
    found = reviewed(data)
    assert [c.title for c in found.causes if c.is_error] == ["Excel has destroyed these ids"]
    assert not settled(data).preview.can_import, "nothing brings the digits back"


def google_dst(data: bytes) -> None:
    fixed = settled(data)
    assert fixed.preview.n_students == 24
    person = cells_of(fixed, "Email Address").index("n000@u.example")
    answers = [cells_of(fixed, name)[person] for name in ("Bedtime", "Smoke", "Tidy")]
    assert answers == ["After 11 pm", "Yes", "5"], "2:10 GMT+1 is later than 2:50 GMT+2"


def trailing_commas(data: bytes) -> None:
    found = reviewed(data)
    assert (found.preview.table.n_columns, found.preview.can_import) == (4, True)


def langs_mixed(data: bytes) -> None:
    assert "Guests is answered in several languages" in titles_of(reviewed(data))
    fixed = settled(data)
    assert levels_of(fixed, "Guests") == ("No", "Yes")
    assert cells_of(fixed, "Guests")[:7] == ["Yes", "No", "Yes", "No", "Yes", "Yes", "No"]


def first_name_nan(data: bytes) -> None:
    found = reviewed(data)
    assert column_of(found.preview, "First name").choice.role is Role.NAME
    assert found.preview.can_import


def answer_at_home(data: bytes) -> None:
    assert levels_of(reviewed(data), "Where") == ("@home", "out")


def answer_minus_other(data: bytes) -> None:
    assert levels_of(reviewed(data), "Where") == ("- other", "out")


def names(data: bytes) -> None:
    found = reviewed(data)
    assert column_of(found.preview, "Name").choice.role is Role.NAME
    assert column_of(found.preview, "Roommate request").choice.role is Role.IGNORE


SURVEYS: dict[str, Callable[[bytes], None]] = {
    "xlsx_hidden_rows.xlsx": hidden_rows,
    "xlsx_strict.xlsx": strict,
    "xlsx_merged_header.xlsx": merged_header,
    "xlsx_ids_zero_format.xlsx": ids_zero_format,
    "xlsx_x000D.xlsx": x000d,
    "xlsx_ranges_as_dates.xlsx": ranges_as_dates,
    "csv_scales_of_survey_programs.csv": scales_of_survey_programs,
    "csv_prefer_not_on_a_scale.csv": prefer_not_on_a_scale,
    "csv_zero_width_answers.csv": zero_width_answers,
    "csv_invisible_ids.csv": invisible_ids,
    "csv_curly_quotes.csv": curly_quotes,
    "csv_fullwidth.csv": fullwidth,
    "csv_header_in_the_middle.csv": header_in_the_middle,
    "csv_mojibake.csv": mojibake,
    "csv_multi_codes.csv": multi_codes,
    "csv_limesurvey_codes.csv": limesurvey_codes,
    "csv_redcap_labels.csv": redcap_labels,
    "csv_id_na.csv": id_na,
    "csv_ids_na_several.csv": ids_na_several,
    "csv_ids_scientific_all_alike.csv": ids_scientific,
    "csv_google_dst.csv": google_dst,
    "csv_600_trailing_commas.csv": trailing_commas,
    "csv_langs_mixed.csv": langs_mixed,
    "cli_first_name_nan.csv": first_name_nan,
    "cli_answer_at_home.csv": answer_at_home,
    "cli_answer_minus_other.csv": answer_minus_other,
    "three.csv": names,
}


@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_is_read_right_or_asked_about(name: str) -> None:
    SURVEYS[name]((FILES / name).read_bytes())


def roommates(name: str, *, emails: tuple[str, ...] = ()) -> PairsPreview:
    """Check a file of roommates against the people of its survey."""
    found = reviewed((FILES / "roommates" / "survey.csv").read_bytes())
    people = People(tuple(cells_of(found, "id")), emails)
    return pairs_of((FILES / "roommates" / name).read_bytes(), people)


def pairs_of(data: bytes, people: People) -> PairsPreview:
    source = read_source(data)
    table = build_table(source, find_pairs_layout(source, people))
    return check_pairs(table, people, guess_pair_choices(table, people))


ROOMMATES: dict[str, tuple[list[tuple[int, ...]], str]] = {
    "pairs.csv": ([(0, 1), (2, 3)], ""),
    "triples.csv": ([(0, 1, 2), (3, 4, 5)], ""),
    "headerless_equal_numbers.csv": ([(0, 1), (2, 3)], ""),
    "headerless_trailing_comma.csv": ([(0, 1), (2, 3)], ""),
    "headerless_self.csv": ([(1, 2)], "Row 1: s00 is paired with themselves."),
}


@pytest.mark.parametrize("name", ROOMMATES)
def test_roommates_are_read_right_or_refused_with_the_true_reason(name: str) -> None:
    rooms, error = ROOMMATES[name]
    preview = roommates(name)
    residents = [people for _, people in preview.rooms] or list(preview.pairs)
    assert residents == rooms
    assert [problem.sentence for problem in preview.errors] == ([error] if error else [])


@pytest.mark.parametrize("name", ["survey_nan.csv", "survey_instagram.csv"])
def test_a_column_that_nobody_uses_refuses_no_survey(name: str) -> None:
    found = reviewed((FILES / "roommates" / name).read_bytes())
    assert found.preview.can_import
    assert len(found.preview.columns_as(Role.QUESTION)) == 4


def test_ids_that_differ_by_zeros_are_one_question() -> None:
    survey = reviewed((FILES / "xlsx_ids_zero_format.xlsx").read_bytes())
    data = (FILES / "pairs_leading_zeros.csv").read_bytes()
    people = People(tuple(cells_of(survey, "Student ID")))
    assert len(pairs_of(data, people).pairs) == 12
    bare = People(tuple(label.lstrip("0") for label in people.labels))
    asked = pairs_of(data, bare)
    assert [p.sentence for p in asked.errors] == [
        "24 ids differ from those of the survey by leading zeros only."
    ]
    assert asked.zeros["00123"] == 0


def test_two_people_of_one_name_are_a_question() -> None:
    survey = reviewed((FILES / "names_minimal.csv").read_bytes())
    names = tuple(survey.preview.table.column(1))
    people = People(tuple(cells_of(survey, "Email")), names=names)
    found = pairs_of((FILES / "names_minimal_pairs.csv").read_bytes(), people)
    assert [one.question for one in found.unknown] == ["2 students are called Avaa Kim. Which one?"]
    assert found.sure == {}
    assert found.pairs == ((2, 4), (5, 6))


@pytest.mark.parametrize("name", sorted(set(SURVEYS) - {"csv_ids_scientific_all_alike.csv"}))
def test_the_command_line_reads_what_the_page_reads(name: str) -> None:
    """The same bytes, the same answers: with every fix on either side."""
    path = FILES / name
    page = read_answers(settled(path.read_bytes()).preview)
    questionnaire = infer_questionnaire([path], fixes="all")
    survey = read_survey_csv(path, questionnaire, fixes="all")
    assert survey.ids == (page.ids or tuple(f"S-{1001 + k}" for k in range(page.n_people)))
    assert {(q.name, q.kind, q.levels) for q in questionnaire.questions} == {
        (q.name, q.kind, q.levels) for q in page.questions
    }
    place = {question.name: k for k, question in enumerate(page.questions)}
    for number, question in enumerate(questionnaire.names):
        assert tuple(survey.answers[:, number].tolist()) == page.codes[place[question]], question


def test_the_command_line_refuses_what_the_page_would_ask() -> None:
    asked = {
        "csv_ids_scientific_all_alike.csv": "Excel has destroyed these ids",
        "csv_id_na.csv": "row 5: Student ID is blank",
        "xlsx_hidden_rows.xlsx": "12 rows are hidden in the file",
        "xlsx_ranges_as_dates.xlsx": "Excel made dates of 1-2 and 3-4",
        "csv_mojibake.csv": "Letters are garbled",
        "csv_curly_quotes.csv": "1 answer is written in several ways",
        "csv_langs_mixed.csv": "Guests is answered in several languages",
        "csv_google_dst.csv": "n000@u.example appears 3 times",
    }
    for name, sentence in asked.items():
        with pytest.raises(InvalidProblemError, match=sentence) as caught:
            infer_questionnaire([FILES / name])
        assert str(caught.value).startswith(name)


@pytest.mark.parametrize("seed", [15, 33, 86, 123, 126, 422, 592, 864])
def test_files_that_the_hunt_found_stay_right(seed: int, tmp_path: Path) -> None:
    """Surveys mutated by habits of Excel and of makers; the long form is in benchmarks."""
    assert try_seed(seed, tmp_path)[1] == ""


def test_every_address_of_a_line_is_invited_or_the_line_is_named() -> None:
    text = (FILES / "invite_lines.txt").read_text(encoding="utf-8")
    assert [one.email for one in read_people(text)] == [
        "ann@x.example",
        "a@x.example",
        "b@x.example",
        "mm2@x.example",
        "mm3@x.example",
    ]
