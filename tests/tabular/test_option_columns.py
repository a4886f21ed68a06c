"""Questions of several answers as Qualtrics and SurveyMonkey write them: one column an option."""

import json

import pytest

from engine.tabular.guesses import guess_choices
from engine.tabular.option_columns import find_option_columns
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import review
from engine.tabular.table import Table
from tests.tabular.file_writers import as_csv, as_xlsx

OPTIONS = ("Music", "Calls, long ones", "Sport - outside", "Games")
CHOSEN = [{0, 1}, {2}, set(), {0, 2, 3}, {1}, {3}, {0}, {2, 3}, {0, 1, 2, 3}, {1, 2}]
WANTED = [
    ["" if not chosen else "Yes" if k in chosen else "No" for k in range(len(OPTIONS))]
    for chosen in CHOSEN
]
ASKED = "What do you do in your room in the evening?"


def qualtrics(*, mark: str, headers: int) -> list[list[str]]:
    own = ["StartDate", "EndDate", "ResponseId", "RecipientEmail", "Finished"]
    codes = ["Q1", *(f"Q7_{k + 1}" for k in range(4)), "Q8_1", "Q8_2"]
    said = ["I am tidy", *(f"{ASKED} - Selected Choice - {option}" for option in OPTIONS)]
    said += ["How much do you like: - Cats", "How much do you like: - Dogs"]
    wordings = ["Start Date", "End Date", "Response ID", "Recipient Email", "Finished", *said]
    imports = [json.dumps({"ImportId": f"i{k}"}) for k in range(len(wordings))]
    table = [own + (said if headers == 1 else codes), wordings, imports][:headers]
    for k, chosen in enumerate(CHOSEN):
        row = ["2026-05-01 10:00:00", "2026-05-01 10:05:00", f"R_{k}", f"p{k}@x.example", "True"]
        cells = [(mark or option) if n in chosen else "" for n, option in enumerate(OPTIONS)]
        table.append([*row, str(1 + k % 5), *cells, str(1 + k % 3), str(1 + k % 2)])
    return table


def surveymonkey() -> list[list[str]]:
    own = ["Respondent ID", "Collector ID", "Start Date", "End Date", "IP Address", "Email Address"]
    table = [[*own, "I am tidy", ASKED, "", "", ""], [""] * 6 + ["Response", *OPTIONS]]
    for k, chosen in enumerate(CHOSEN):
        row = [str(900 + k), "4", "05/01/2026 10:00:00", "05/01/2026 10:04:00", "192.0.2.1"]
        cells = [option if n in chosen else "" for n, option in enumerate(OPTIONS)]
        table.append([*row, f"p{k}@x.example", str(1 + k % 5), *cells])
    return table


def found_in(table: Table) -> list[list[str]]:
    (group,) = table.options
    return [[row[k] for k in group.positions] for row in table.rows]


FILES = {
    "qualtrics words": qualtrics(mark="", headers=3),
    "qualtrics numbers": qualtrics(mark="1", headers=3),
    "qualtrics two headers": qualtrics(mark="", headers=2),
    "surveymonkey": surveymonkey(),
}


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("name", FILES)
def test_an_option_that_was_not_chosen_is_a_no(name: str, kind: str) -> None:
    rows = FILES[name]
    data = as_csv(rows, quote_all=True) if kind == "csv" else as_xlsx({"Sheet0": rows})
    table = read_table(data)
    assert found_in(table) == WANTED
    preview = build_preview(table, guess_choices(table))
    kinds = {c.index: c.choice.kind for c in preview.columns}
    assert all(kinds[k] == "binary" for k in table.options[0].positions)
    titles = [cause.title for cause in review(preview).causes]
    assert "One question stands in 4 columns, one an option" in titles


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ([["1", "2"], ["3", "1"], ["2", "2"]], "a grid of scales"),
        ([["A", ""], ["", "B"], ["A", ""]], "one of: nobody chose two"),
        ([["A", "B"], ["A", "C"], ["", "B"]], "another text than the option"),
    ],
)
def test_what_is_no_question_of_several_stays_as_it_is(cells: list[list[str]], why: str) -> None:
    wordings = ("Asked? - A", "Asked? - B")
    assert find_option_columns(("Q1_1", "Q1_2"), wordings, cells) == (), why
