"""Habits of CSV files and makers: encodings, delimiters, events, unfinished rows, dates."""

from collections.abc import Callable

import pytest

from engine.tabular.choices import Keep
from engine.tabular.dates import read_times
from engine.tabular.ranges_as_dates import find_ranges_as_dates
from engine.tabular.reading import read_source, read_table
from engine.tabular.source import TableError
from engine.tabular.text import clean_text, fold_answer, fold_name
from tests.tabular.file_writers import as_csv
from tests.tabular.reviews import cells_of, levels_of, reviewed, settled, titles_of

ROWS = [["Student ID", "Bedtime", "Smoke"]] + [
    [f"N{k:03d}", ("Early", "Late", "Middle")[k % 3], ("No", "Yes")[k % 2]] for k in range(24)
]


@pytest.mark.parametrize(
    ("words", "encoding", "name"),
    [
        (("Café", "Thé"), "mac_roman", "Mac OS Roman"),
        (("Größe", "Süß"), "mac_roman", "Mac OS Roman"),
        (("Café", "Thé"), "cp1252", "Windows-1252"),
        (("从不", "经常"), "gb18030", "GB 18030"),
        (("男", "女"), "gbk", "GB 18030"),
        (("Café", "Thé"), "utf-32", "UTF-32"),
    ],
)
def test_encodings_beyond_doubt_are_read(words: tuple[str, str], encoding: str, name: str) -> None:
    rows = [*ROWS[:1], *([row[0], words[k % 2], row[2]] for k, row in enumerate(ROWS[1:]))]
    source = read_source(as_csv(rows, encoding=encoding))
    assert source.encoding == name
    assert source.sheets[0].lines[1].cells[1] == words[0]


@pytest.mark.parametrize("encoding", ["euc_kr", "shift_jis", "big5", "cp1251"])
def test_encodings_in_doubt_are_refused(encoding: str) -> None:
    word = {"euc_kr": "여자", "shift_jis": "はい", "big5": "經常", "cp1251": "Привет"}[encoding]
    rows = [*ROWS[:1], *([row[0], word, row[2]] for row in ROWS[1:])]
    with pytest.raises(TableError, match="the text is not UTF-8"):
        read_source(as_csv(rows, encoding=encoding))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Before\u200b 10\u00a0pm", "Before 10 pm"),
        ("\u202an@x.example\u202c", "n@x.example"),
        ("co\u00adop", "coop"),
        ("👩🏽\u200d🦱", "👩🏽\u200d🦱"),  # one picture of three
        ("می\u200cخواهم", "می\u200cخواهم"),  # a letter that must not join
        ("a\u200db", "ab"),
        ("2\ufe0f", "2"),
        ('="00123"', "00123"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_what_nobody_sees_and_does_no_work_is_dropped(text: str, clean: str) -> None:
    assert clean_text(text) == clean


def test_answers_and_names_are_compared_by_stated_rules() -> None:
    assert fold_answer("Don’t  KNOW") == fold_answer("don't know")
    assert fold_answer("１０–１１ pm") == fold_answer("10-11 PM")
    assert fold_name("Müller, Zoë") == fold_name("zoe MULLER")
    assert fold_name("Ann Lee") != fold_name("Ann Marie Lee")


def redcap(*, complementary: bool) -> bytes:
    """Two events a record: other questions, or the same ones again."""
    rows = [["record_id", "redcap_event_name", "bedtime", "smoke", "form_complete"]]
    for k in range(24):
        late, smoke = ("Early", "Late", "Middle")[k % 3], ("No", "Yes")[k % 2]
        rows.append([str(k), "baseline_arm_1", late, "" if complementary else smoke, "2"])
        second = ["", smoke] if complementary else ["Late", "No"]
        rows.append([str(k), "visit_arm_1", *second, "2"])
    return as_csv(rows)


def test_events_of_a_record_that_ask_other_things_are_joined() -> None:
    assert "24 records have several events" in titles_of(reviewed(redcap(complementary=True)))
    fixed = settled(redcap(complementary=True))
    assert fixed.preview.choices.keep is Keep.JOINED
    assert fixed.preview.n_students == 24
    assert cells_of(fixed, "bedtime")[:3] == ["Early", "Late", "Middle"]
    assert cells_of(fixed, "smoke")[:3] == ["No", "Yes", "No"]


def test_one_of_several_events_that_ask_the_same_counts() -> None:
    fixed = settled(redcap(complementary=False))
    assert fixed.preview.n_students == 24
    assert cells_of(fixed, "bedtime")[:3] == ["Early", "Late", "Middle"]
    assert sum(term for term, _ in fixed.arithmetic) == 24


def test_limesurvey_leaves_the_date_blank_for_who_did_not_finish() -> None:
    rows = [["id", "submitdate", "lastpage", "startlanguage", "seed", "token", "G1Q1"]]
    rows += [
        [str(k), "" if k == 3 else f"2026-05-01 08:{k:02d}:00", "3", "en", str(10**9 + k),
         f"N{k:03d}", ("Early", "Late")[k % 2]] for k in range(24)
    ]  # fmt: skip
    assert "1 answer was not finished" in titles_of(reviewed(as_csv(rows)))
    assert settled(as_csv(rows)).preview.n_students == 23


def test_columns_in_another_order_below_a_second_header_are_refused() -> None:
    rows = [*ROWS, ["Student ID", "Smoke", "Bedtime"], ["M001", "No", "Early"]]
    with pytest.raises(TableError, match="Row 26 names the columns again, in another order"):
        read_table(as_csv(rows))


def test_a_header_in_two_rows_of_a_csv_file_is_joined() -> None:
    rows = [["Student ID", "Habits", ""], ["", "Bedtime", "Smoke"], *ROWS[1:]]
    table = read_table(as_csv(rows))
    assert table.header == ("Student ID", "Bedtime", "Smoke")
    assert table.n_rows == 24


@pytest.mark.parametrize("cells", [["1,2", "2", "1,3,4", "4"], ["1;2", "2", "1;3", "3"],
                                   ["1 2", "2", "1 3", "3"]])  # fmt: skip
def test_codes_of_several_answers_are_split(cells: list[str]) -> None:
    rows = [["Student ID", "Hobbies", "Smoke"]]
    rows += [[f"N{k:03d}", cells[k % 4], ("No", "Yes")[k % 2]] for k in range(36)]
    assert levels_of(settled(as_csv(rows)), "Hobbies 2") == ("No", "Yes")


def test_decimal_commas_are_no_codes() -> None:
    cells = ["7,5", "8,5", "6,5", "7", "8", "9", "5,5"]
    rows = [["Student ID", "Hours", "Smoke"]]
    rows += [[f"N{k:03d}", cells[k % 7], ("No", "Yes")[k % 2]] for k in range(35)]
    assert not [title for title in titles_of(reviewed(as_csv(rows))) if "several answers" in title]


@pytest.mark.parametrize(
    ("answers", "made"),
    [
        ({"0": 4, "2-Jan": 3, "5-Mar": 2, "10+": 1}, {"2-Jan": "1-2", "5-Mar": "3-5"}),
        ({"01. Feb": 3, "03. Apr": 3, "0": 1}, {"01. Feb": "1-2", "03. Apr": "3-4"}),
        ({"01-févr": 3, "0": 3}, {"01-févr": "1-2"}),
        ({"Jan-02": 3, "0": 2}, {"Jan-02": "1-2"}),
        ({"1/2/2026": 5, "3/4/2026": 5, "5+": 2}, {"1/2/2026": "1-2", "3/4/2026": "3-4"}),
        ({"2-Jan": 5, "5-Mar": 5, "10-Jun": 5}, {"2-Jan": "1-2", "5-Mar": "3-5", "10-Jun": "6-10"}),
        ({"2026-02-01": 1, "2026-01-02": 1, "0": 1}, {}),  # one range as two days
        ({"2-Jan": 1, "14-Jan": 1, "30-Mar": 1}, {}),  # days of a month
    ],
)
def test_ranges_that_became_dates_are_told(answers: dict[str, int], made: dict[str, str]) -> None:
    assert find_ranges_as_dates(answers, "Siblings") == made


def test_a_column_of_days_stays_one() -> None:
    assert find_ranges_as_dates({"2-Jan": 5, "5-Mar": 5, "10-Jun": 5}, "Date of arrival") == {}


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026/10/25 2:50:00 AM GMT+2", "2026/10/25 2:10:00 AM GMT+1"),
        ("2026-11-01 01:50:00 EDT", "2026-11-01 01:10:00 EST"),
        ("2026-10-25T02:50:00+02:00", "2026-10-25T02:10:00+01:00"),
        ("25.10.2026 02:50 MESZ", "25.10.2026 02:10 MEZ"),
        ("1 de mayo de 2026 8:00:00 a. m.", "1 de mayo de 2026 1:00:00 p. m."),
        ("46143.25", "46143.5"),
    ],
)
def test_times_are_compared_in_one_zone(earlier: str, later: str) -> None:
    read = read_times([earlier, later])
    assert read is not None
    assert read[0] < read[1]


WORDS = {
    "euc_kr": "남자 여자 아니오 항상 가끔 김철수",
    "shift_jis": "はい いいえ 佐藤 田中 いつも",
    "big5": "男 女 從不 經常 王小明",
    "gb18030": "男 从不 经常 王小明 陈美玲",
    "cp1251": "Да Нет Иванов Всегда муж",
    "koi8_r": "Да Нет Иванов Никогда",
    "cp1250": "Žena Muž Někdy Dvořák Łukasz",
    "iso8859_7": "Ναι Όχι Πάντα",
    "cp1256": "نعم لا دائما",
    "cp1254": "Hayır Şule",
    "tis_620": "ใช่ ไม่",
}


@pytest.mark.parametrize(
    ("encoding", "word"), [(name, word) for name, words in WORDS.items() for word in words.split()]
)
def test_one_word_of_another_alphabet_is_never_read_as_another_word(
    encoding: str, word: str
) -> None:
    try:
        source = read_source(f"id,Answer\nN1,{word}\nN2,{word}\n".encode(encoding))
    except TableError:
        return
    assert source.sheets[0].lines[1].cells[1] == word


def with_score(cell: Callable[[int], str], *foot: list[str]) -> bytes:
    """A survey with a third column of one's own, and rows at its foot."""
    rows = [[*row[:2], cell(k)] for k, row in enumerate(ROWS[1:])]
    return as_csv([["Student ID", "Bedtime", "Score"], *rows, *foot])


@pytest.mark.parametrize(
    "foot",
    [["Total", "", "72"], ["Summe", "", "72"], ["Average", "", "3.0"], ["Promedio", "", "3,0"],
     ["Grand total", "", "72"], ["Moyenne", "", "3,0"], ["Total: 24", "", ""], ["24", "", ""],
     ["", "", "24"], ["n = 24", "", ""]],
)  # fmt: skip
def test_a_total_at_the_foot_is_no_student_and_its_number_no_answer(foot: list[str]) -> None:
    """In a table of three columns it was one, and 72 became a step of the scale."""
    found = reviewed(with_score(lambda k: str(1 + k % 5), foot))
    assert found.preview.n_students == 24
    assert levels_of(found, "Score") == ("1", "2", "3", "4", "5")
    assert "1 row: rows at the foot are no students" in titles_of(found)


@pytest.mark.parametrize("foot", [["23", "", ""], ["25", "", ""], ["24", "", "3"]])
def test_an_id_at_the_foot_that_counts_nothing_is_a_student(foot: list[str]) -> None:
    assert reviewed(with_score(lambda k: str(1 + k % 5), foot)).preview.n_students == 25


def test_ids_that_count_up_end_with_a_student_who_answered_nothing() -> None:
    rows = [[str(k), f"1{k % 2} pm", str(1 + k % 5)] for k in range(24)]
    data = as_csv([["Student ID", "Bedtime", "Score"], *rows, ["24", "", ""]])
    assert reviewed(data).preview.n_students == 25


@pytest.mark.parametrize(
    ("codes", "scale"),
    [(("-99", "99"), "012"), (("88", "99", "999"), "12345"), (("-9",), "1234567"),
     (("997", "998"), "123")],
)  # fmt: skip
def test_codes_for_no_answer_are_no_steps_of_a_scale(codes: tuple[str, ...], scale: str) -> None:
    cells = (*scale, *codes)
    found = reviewed(with_score(lambda k: cells[k % len(cells)]))
    assert levels_of(found, "Score") == tuple(scale)
    assert cells_of(found, "Score").count("") == sum(
        cells[k % len(cells)] in codes for k in range(24)
    )


@pytest.mark.parametrize(
    "answers", [("1", "2", "3", "4", "9"), ("77", "88", "99"), ("0", "1", "99")]
)
def test_numbers_that_may_be_answers_stay_answers(answers: tuple[str, ...]) -> None:
    found = reviewed(with_score(lambda k: answers[k % len(answers)]))
    assert set(answers) <= set(levels_of(found, "Score"))
    assert "" not in cells_of(found, "Score")


@pytest.mark.parametrize(
    "answers",
    [
        ["Yes", "No", "Yes, but only outside", "No, never", "Sometimes"],
        ["Yes, often", "No, never", "Yes, sometimes"],
    ],
)
def test_a_yes_with_more_words_is_one_answer(answers: list[str]) -> None:
    """It was split into the answers Yes, No, never and but only outside."""
    rows = [["Student ID", "Smoke"]]
    rows += [[f"N{k:03d}", answers[k % len(answers)]] for k in range(40)]
    assert not [title for title in titles_of(reviewed(as_csv(rows))) if "several answers" in title]
