"""Problems by cause: one fix each, all fixes at once, a way back, and sums that add up."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.urls import reverse

from engine.datasets.survey_csv import infer_questionnaire, read_survey_csv
from engine.tabular.choices import Choices, Keep, Role
from engine.tabular.guesses import guess_choices, with_guessed_order
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import Review, review, use_all
from engine.tabular.table import Table
from tests.tabular.file_writers import (
    COVER,
    PEOPLE,
    REPEATED,
    answers,
    as_csv,
    as_xlsx,
    plain_rows,
    qualtrics_rows,
)
from tests.webapp.factories.cohorts import survey_csv
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft, Recipe
from webapp.cohorts.services.drafts import draft_create, draft_review
from webapp.cohorts.services.imports import draft_import


def qualtrics(people: list = PEOPLE, **changes: str) -> bytes:
    """A Qualtrics file with people twice, a preview answer and texts that fit no choice."""
    table = qualtrics_rows(answers(people, twice=True), headers=3, person="question")
    names = table[0]
    table[10][names.index("Status")] = "Survey Preview"
    table[20][names.index("Q5_1")] = "idk"
    table[21][names.index("Q5_1")] = "depends on the day"
    for row in table[1:]:
        for name, cell in changes.items():
            row[names.index(name)] = cell
    return as_csv(table, encoding="utf-8-sig", quote_all=True)


def reviewed(table: Table, choices: Choices | None = None) -> Review:
    return review(build_preview(table, choices or guess_choices(table)))


def again(table: Table) -> Callable[[Choices], Review]:
    return lambda choices: reviewed(table, choices)


@pytest.fixture
def drafted(bob: User) -> Callable[[bytes], Draft]:
    def make(data: bytes, user: User = bob) -> Draft:
        return draft_create(user=user, filename="s.csv", size=len(data), read=lambda: data)

    return make


def press(client: object, draft: Draft, **fields: str) -> object:
    draft.refresh_from_db()
    return client.post(
        reverse("cohorts:draft-change", args=[draft.pk]),
        {"version": draft.version, **fields},
        headers={"HX-Request": "true"},
    )


def test_causes_are_few_and_in_order() -> None:
    found = reviewed(read_table(qualtrics()))
    titles = [cause.title for cause in found.causes]
    assert titles[:5] == [
        "3 people answered more than once",
        "2 answers fit no choice",
        "Gender reads like a rule",
        "Free time holds several answers in a cell",
        "Sleep hours is a number",
    ]
    assert "2 header rows are Qualtrics’ own" in titles
    assert "17 columns are Qualtrics’ own" in titles
    assert "Comments is free text" in titles
    assert "1 row: answers are previews or tests" in titles


def test_the_rows_add_up_at_every_step() -> None:
    table = read_table(qualtrics())
    choices = guess_choices(table)
    seen = []
    while True:
        found = reviewed(table, choices)
        assert sum(term for term, _ in found.arithmetic) == found.preview.n_students
        seen.append(found.preview.n_students)
        cause = next((one for one in found.causes if one.is_open), None)
        if cause is None:
            break
        choices = cause.fix.act(choices)
    assert seen[0] == len(PEOPLE) + len(REPEATED) - 1
    assert found.arithmetic[0] == (len(PEOPLE) + len(REPEATED) + 2, "rows")
    assert {words: n for n, words in found.arithmetic}["repeats"] == -len(REPEATED)
    assert found.preview.can_import


def test_every_button_has_a_way_back() -> None:
    table = read_table(qualtrics())
    before = guess_choices(table)
    fixed = use_all(reviewed(table, before), again(table))
    undone = fixed
    for key in [cause.key for cause in reviewed(table, fixed).causes if cause.is_done]:
        cause = next((c for c in reviewed(table, undone).causes if c.key == key), None)
        if cause is not None and cause.other is not None and key not in ("names", "left test"):
            undone = cause.other.act(undone)
    assert undone.keep is Keep.ALL
    assert undone.left_out == before.left_out
    assert len(undone.columns) == len(before.columns)
    assert all(column.groups is None for column in undone.columns)
    assert not any("" in meanings.values() for meanings in undone.meanings.values())


def test_the_latest_answer_counts_and_the_first_can() -> None:
    table = read_table(qualtrics())
    choices = guess_choices(table)
    person = PEOPLE[REPEATED[0]]
    ids = table.header.index("Q1")
    bed = table.header.index("Q4")

    def kept(keep: Keep) -> list[str]:
        preview = build_preview(table, replace(choices, keep=keep))
        return [
            row[bed]
            for number, row in zip(table.row_numbers, table.rows, strict=True)
            if row[ids] == person.number and number not in preview.dropped
        ]

    assert kept(Keep.LATEST) == [person.bedtime]
    assert kept(Keep.FIRST) == ["Before 10 pm"]


def test_an_unfinished_answer_is_not_the_latest() -> None:
    rows = qualtrics_rows(PEOPLE, headers=3, person="question")
    late = list(rows[5])
    finished, person = rows[0].index("Finished"), rows[0].index("Q1")
    late[finished] = "False"
    late[rows[0].index("RecordedDate")] = "2027-01-01 00:00:00"
    table = read_table(as_csv([*rows, late]))
    preview = build_preview(table, replace(guess_choices(table), keep=Keep.LATEST))
    (left,) = [number for number, why in preview.dropped.items() if why == "repeat"]
    position = table.row_numbers.index(left)
    assert table.rows[position][finished] == "False"
    assert table.rows[position][person] == late[person]


def test_the_response_id_is_no_person() -> None:
    table = read_table(qualtrics())
    (column,) = build_preview(table, guess_choices(table)).columns_as(Role.ID)
    assert column.header == "Q1"
    rows = plain_rows(PEOPLE)
    numbered = [["Response ID", *rows[0]]]
    numbered += [[f"{k}", *row] for k, row in enumerate([*rows[1:], rows[3]], start=1)]
    table = read_table(as_csv(numbered))
    (column,) = build_preview(table, guess_choices(table)).columns_as(Role.ID)
    assert column.name == "Student ID"


def test_many_causes_of_a_kind_are_one() -> None:
    header = ["Student ID", *(f"Hours of thing {k}" for k in range(240))]
    rows = [
        [f"N{r}", *(f"{(r * (k + 3)) % 37 / 2:g}" for k in range(240))] for r in range(40)
    ]  # six hold one number
    found = reviewed(read_table(as_csv([header, *rows])))
    numbers = [cause for cause in found.causes if "numbers" in cause.title]
    assert [cause.title for cause in numbers] == ["234 columns are numbers"]
    assert len(found.causes) < 12


def test_names_are_short_and_different() -> None:
    table = read_table(qualtrics())
    names = [c.name for c in guess_choices(table).columns if c.name]
    assert all(len(name) <= 16 for name in names)
    assert len({name.casefold() for name in names}) == len(names)


def test_numbers_in_doubt_are_not_read() -> None:
    """1,234 may be a thousand or one and a bit; a file that mixes both ways is not guessed."""
    for cells in (
        ["1,234", "2,345", "3,456"] * 5,
        ["7,5", "8.5", "6,25", "9.75", "5,5", "4.1"] * 4,
    ):
        rows = [["Student ID", "Distance", "Smokes"]]
        rows += [[f"N{k}", f"{cell[:-1]}{k % 10}", "Yes" if k % 2 else "No"]
                 for k, cell in enumerate(cells)]  # fmt: skip
        found = reviewed(read_table(as_csv(rows)))
        assert not [cause for cause in found.causes if "number" in cause.title]


def test_any_header_row_and_any_sheet_can_be_chosen(
    bob: User, client_of: Callable, drafted: Callable
) -> None:
    rows = plain_rows(PEOPLE)
    data = as_xlsx({"Cover": COVER, "Answers": rows, "Old": [*COVER, *rows[:20]]})
    draft, client = drafted(data), client_of(bob)
    assert (draft.n_rows, draft.read_as) == (len(PEOPLE), "XLSX, sheet Answers")
    page = client.get(reverse("cohorts:draft", args=[draft.pk]) + "?tab=reading")
    assert Page(page).has("button", "Read this sheet")
    press(client, draft, do="action=read_anew&sheet=2")
    draft.refresh_from_db()
    assert (draft.n_rows, draft.choices["layout"]["header_row"]) == (19, 5)
    press(client, draft, do="action=read_anew&sheet=2&header_row=1")
    draft.refresh_from_db()
    assert draft.choices["layout"]["header_row"] == 5  # a title of one cell names no seven columns
    press(client, draft, do="action=read_anew&sheet=9")
    draft.refresh_from_db()
    assert draft.choices["layout"]["sheet"] == 2


def test_next_year_is_read_with_one_click(
    bob: User, mallory: User, client_of: Callable, drafted: Callable
) -> None:
    draft, client = drafted(qualtrics()), client_of(bob)
    press(client, draft, action="fix_all")
    press(client, draft, do="action=rename&column=19&from=name-19", **{"name-19": "Sleeps at"})
    draft.refresh_from_db()
    draft_import(user=bob, draft=draft, name="2026", version=draft.version)
    assert Recipe.objects.get().organisation == bob.organisation
    assert PEOPLE[0].number not in str(Recipe.objects.get().content)

    changed = [replace(p, bedtime="At dawn") if k in (4, 5) else p for k, p in enumerate(PEOPLE)]
    after = drafted(qualtrics(changed))
    offer = draft_review(after).causes[0]
    assert offer.title == "This file has the form of 2026"
    assert "Sleeps at has 1 new answer: “At dawn”" in offer.why
    press(client, after, action="fix", value="recipe")
    after.refresh_from_db()
    found = draft_review(after)
    assert "Sleeps at" in [column.name for column in found.preview.columns]
    errors = [cause.title for cause in found.causes if cause.is_error]
    assert errors == ["1 answer fits no choice"]  # the other one is in an answer that was a test
    assert found.preview.n_students == len(PEOPLE) - 1
    press(client, after, action="other", value="recipe")
    after.refresh_from_db()
    assert "recipe" not in [cause.key for cause in draft_review(after).causes]

    theirs = drafted(qualtrics(), mallory)
    assert theirs.recipe is None


def test_only_what_changed_comes_back(bob: User, client_of: Callable, drafted: Callable) -> None:
    draft, client = drafted(qualtrics()), client_of(bob)
    answer = press(client, draft, do="action=role&column=20&from=role-20", **{"role-20": "ignore"})
    assert answer["HX-Reswap"] == "none"
    assert re.findall(r'<tbody hx-swap-oob="true" id="column-(\d+)"', answer.content.decode()) == [
        "20"
    ]
    opened = Page(press(client, draft, do="action=open&column=20", open="18"))
    parts = opened.element.xpath("//tbody[@hx-swap-oob='true']/@id")
    assert parts == ["column-18", "column-20"]
    assert opened.source.count('class="column-editor"') == 1
    split = Page(press(client, draft, do="action=split&column=22"))
    assert split.element.xpath("//div[@id='draft']")  # new columns: the whole of it


def test_the_command_line_reads_the_same(tmp_path: Path) -> None:
    rows = [row[:5] for row in plain_rows(PEOPLE)]
    path = tmp_path / "survey.csv"
    path.write_bytes(as_csv(rows))
    theirs = read_survey_csv(path, infer_questionnaire([path]))
    table = read_table(path.read_bytes())
    preview = build_preview(table, guess_choices(table))
    ours = {c.name: c.choice for c in preview.columns_as(Role.QUESTION)}
    assert {q.name: (q.kind, q.levels) for q in theirs.questionnaire.questions} == {
        name: (choice.kind.value, choice.levels) for name, choice in ours.items()
    }
    assert theirs.ids == table.column(0)


def test_an_imported_file_keeps_wordings_and_parts(bob: User, drafted: Callable) -> None:
    draft = drafted(qualtrics())
    table = read_table(qualtrics())
    choices = use_all(reviewed(table), again(table))
    Draft.objects.filter(pk=draft.pk).update(choices=choices.to_json())
    draft.refresh_from_db()
    cohort: Cohort = draft_import(user=bob, draft=draft, name="All", version=draft.version)
    assert cohort.n_students == len(PEOPLE) - 1  # one answer was a test
    by_name = {question["name"]: question for question in cohort.questions}
    assert by_name["Bedtime"]["wording"] == "What time do you usually go to bed on a weekday?"
    assert by_name["Music"]["levels"] == ["No", "Yes"]
    assert cohort.constraints == ["Gender"]
    student = cohort.students.get(original_id=PEOPLE[0].number)
    assert student.attributes == {"Gender": PEOPLE[0].gender}


def with_marks(*, reference: str = "StudentId") -> Table:
    """A file of Qualtrics: one stopped half-way, one wrote their number in small letters."""
    rows = [["StartDate", "EndDate", "Finished", "ResponseId", reference, "Smoking"]]
    for k in range(20):
        time = f"2026-05-01 10:{k:02d}:00"
        done = "FALSCH" if k == 3 else "True"
        rows.append([time, time, done, f"R_{k}aB", f"N{k:03d}", ("Yes", "No")[k % 2]])
    time = "2026-05-02 10:00:00"
    rows.append([time, time, "True", "R_0Ab", "n000", "No"])
    return read_table(as_csv(rows))


def test_who_did_not_finish_is_left_out_or_kept() -> None:
    table = with_marks()
    cause = reviewed(table).cause("unfinished")
    assert (cause.title, cause.count) == ("1 answer was not finished", "row 5")
    choices = cause.fix.act(guess_choices(table))
    found = reviewed(table, choices)
    assert (-1, "not finished") in found.arithmetic
    assert found.cause("left unfinished").other.act(choices) == guess_choices(table)
    kept = reviewed(table, cause.other.act(guess_choices(table)))
    assert "unfinished" not in {one.key for one in kept.causes}


def test_a_number_in_other_capitals_is_asked_about() -> None:
    table = with_marks()
    cause = reviewed(table).cause("capitals")
    assert cause.title == "1 id differs in capitals only"
    preview = build_preview(table, cause.fix.act(guess_choices(table)))
    assert (preview.n_students, preview.can_import) == (20, True)
    assert preview.dropped == {2: "repeat"}, "the latest answer counts, as it was written"
    both = build_preview(table, cause.other.act(guess_choices(table)))
    assert (both.n_students, both.can_import) == (21, True)


def test_ids_of_responses_differ_by_their_capitals() -> None:
    """Qualtrics tells R_0aB from R_0Ab: two responses, as different as any."""
    table = with_marks(reference="Note")
    choices = guess_choices(table).with_role([3], Role.ID)
    assert "capitals" not in {cause.key for cause in reviewed(table, choices).causes}


def test_a_mark_of_a_need_is_a_need_although_the_rest_is_blank() -> None:
    """Offices write yes for who needs a step-free room, and nothing for everybody else."""
    head, *rows = survey_csv().decode().splitlines()
    marked = [f"{row},{'yes' if k % 6 == 0 else ''}" for k, row in enumerate(rows)]
    table = read_table("\n".join([f"{head},Accessible", *marked]).encode())
    found = reviewed(table)
    assert [c.name for c in found.preview.columns_as(Role.NEED)] == ["Accessible"]
    assert found.cause("needs").title == "Accessible is a need"
    assert found.preview.can_import
    assert not [one for one in found.causes if one.is_open]


def test_a_need_used_as_a_question_is_offered_as_a_need_again() -> None:
    head, *rows = survey_csv().decode().splitlines()
    marked = [f"{row},{('no', 'yes', 'yes')[k % 3]}" for k, row in enumerate(rows)]
    table = read_table("\n".join([f"{head},Accessible", *marked]).encode())
    last = len(guess_choices(table).columns) - 1
    choices = guess_choices(table).with_role([last], Role.QUESTION)
    found = reviewed(table, with_guessed_order(choices, last, ("no", "yes")))
    (cause,) = [one for one in found.causes if one.title == "Accessible reads like a need"]
    assert cause.fix.act(found.preview.choices).columns[last].role is Role.NEED
