"""Questions in several languages: typed or from a file, and chosen by the student."""

import csv
import io
from collections.abc import Callable

import pytest
from django.urls import reverse

from tests.webapp.factories.questionnaires import Student, a_translation_file
from tests.webapp.roles import Page
from tests.webapp.surveys.conftest import weight_of
from webapp.accounts.models import User
from webapp.common.errors import Refusal
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import languages_of, questions_of
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.questionnaires import change_undo, question_edit
from webapp.surveys.services.translation_files import translation_file_read, translation_file_use
from webapp.surveys.services.translations import translations_set, write_file
from webapp.tabular.tables_out import as_xlsx

WAKE = "What time do you get up on a weekday?"
FRENCH = {
    WAKE: "À quelle heure te lèves-tu en semaine ?", "Before 6 am": "Avant 6 h",
    "Housing 2027": "Logement 2027", "Your days": "Tes journées",
}  # fmt: skip


@pytest.fixture
def french(bob: User, opened: Questionnaire) -> Questionnaire:
    arabic = {WAKE: "متى تستيقظ؟"}
    translations_set(
        user=bob, questionnaire=opened, version=opened.version,
        translations={"fr": FRENCH, "ar": arabic},
    )  # fmt: skip
    return opened


def read_file(user: User, questionnaire: Questionnaire, data: bytes) -> dict[str, dict[str, str]]:
    """Return the translations of a file; all its columns are understood."""
    draft = a_translation_file(user, questionnaire, data)
    found = translation_file_read(draft=draft, questionnaire=questionnaire)
    assert found.problems == ()
    return found.translations


def use_file(user: User, questionnaire: Questionnaire, data: bytes) -> str:
    """Upload a file and use its texts."""
    return translation_file_use(
        user=user,
        draft=a_translation_file(user, questionnaire, data),
        questionnaire=questionnaire,
        version=1,
        shown=questionnaire.version,
    )


def page(student: Student, **query: str) -> Page:
    return Page(student.client.get(student.url, {"n": 1, **query}))


def test_a_student_chooses_a_language_and_it_stays(
    french: Questionnaire, student: Callable[..., Student]
) -> None:
    anna = student()
    first = page(anna)
    assert first.has("heading", WAKE)
    assert first.has("link", "Français")
    assert first.one("link", "العربيّة").element.get("hreflang") == "ar"
    said = page(anna, lang="fr")
    assert said.has("heading", FRENCH[WAKE])
    group = said.one("group", FRENCH[WAKE])
    assert group.has("radio", "Avant 6 h")
    assert said.element.get("lang") == "fr"
    assert said.says("Tes journées")
    assert group.has("radio", "6 to 7 am"), "what has no translation is shown as it is written"
    assert page(anna).has("heading", FRENCH[WAKE])
    anna.say(1, 0)
    assert list(anna.row.answers.values()) == [0], "an answer is the same in every language"
    assert anna.row.language == "fr"


def test_the_browser_asks_and_arabic_runs_from_the_right(
    french: Questionnaire, student: Callable[..., Student]
) -> None:
    anna = student()
    answer = anna.client.get(anna.url, {"n": 1}, headers={"Accept-Language": "ar-EG,ar;q=0.9"})
    text = Page(answer)
    assert text.element.get("dir") == "rtl"
    assert text.has("heading", "متى تستيقظ؟")
    assert answer["Content-Language"] == "ar"


def test_a_language_that_nobody_offers_shows_the_own_one(
    french: Questionnaire, student: Callable[..., Student]
) -> None:
    anna = student()
    answer = anna.client.get(anna.url, {"n": 1, "lang": "ja"})
    assert Page(answer).has("heading", WAKE)
    assert answer["Content-Language"] == "en"


def test_the_cohort_has_the_questions_as_they_are_written(
    bob: User, french: Questionnaire, student: Callable[..., Student]
) -> None:
    for k, language in enumerate(("fr", "ar", "en")):
        one = student(f"N{k}")
        page(one, lang=language)
        one.say_all(k)
    cohort = cohort_from_answers(user=bob, questionnaire=french, name="All")
    assert cohort.questions[0]["wording"] == WAKE
    assert cohort.questions[0]["levels"][0] == "Before 6 am"


def test_a_reworded_text_waits_for_its_translation(bob: User, french: Questionnaire) -> None:
    first = questions_of(french.content)[0]
    question_edit(
        user=bob, questionnaire=french, version=french.version, key=first.key, name=first.name,
        text="When do you get up?", hint="", reason="", answers=[],
    )  # fmt: skip
    assert questions_of(french.content, "fr")[0].text == "When do you get up?"
    assert questions_of(french.content, "fr")[0].answers[0] == "Avant 6 h"


@pytest.mark.parametrize(
    ("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16")]
)
def test_a_file_goes_out_and_comes_back(
    bob: User, french: Questionnaire, delimiter: str, encoding: str
) -> None:
    rows = list(csv.reader(io.StringIO(write_file(french).decode("utf-8-sig"))))
    assert rows[0] == ["text", "ar", "es", "fr"]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    found = read_file(bob, french, out.getvalue().encode(encoding))
    assert found["fr"] == FRENCH
    assert found["ar"][WAKE] == "متى تستيقظ؟"


def test_a_workbook_and_an_old_encoding_are_read(bob: User, french: Questionnaire) -> None:
    rows = list(csv.reader(io.StringIO(write_file(french).decode("utf-8-sig"))))
    assert read_file(bob, french, as_xlsx({"Texts": rows}))["fr"] == FRENCH
    western = "\r\n".join(f"{text};{said}" for text, said in [("text", "fr"), *FRENCH.items()])
    assert read_file(bob, french, western.encode("cp1252"))["fr"] == FRENCH


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xff", b"a,b\nc,d", b"text\nx", b"text,xx\nA,B", b"text,en\nA,B", b"\x00" * 9],
)
def test_a_file_that_is_none_is_refused(bob: User, opened: Questionnaire, data: bytes) -> None:
    with pytest.raises(Refusal):
        use_file(bob, opened, data)
    opened.refresh_from_db()
    assert languages_of(opened.content) == ["en", "es"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("text,fr\n", "has a header but no rows below it"),
        (f"text,fr\n{WAKE},\n", "holds no translation"),
        ("text,fr\nAnother question?,Une autre question ?\n", "No text of the file is in this"),
        (f"text,fr,FR\n{WAKE},A,B\n", "Columns 2 and 3 are both called “FR”"),
        (f"text,fr,French\n{WAKE},A,B\n", "“fr” and “French” have the same use"),
        (f"text,fr\n{WAKE},A\n{WAKE},B\n", "Row 3, column “fr”: .* another translation in row 2"),
        (f"fr,words\nA,{WAKE}\n", "Column “words” is in no language"),
        (f"fr,de\nA,{WAKE}\n", "No column holds the texts as they are written"),
        (f"text,xx\n{WAKE},A\n", "Column “xx” is in no language"),
        (f"text,en\n{WAKE},A\n", "Column “en” is in no language"),
        (f"text,fr\n{WAKE},{'A' * 2_001}\n", "Row 2, column “fr”: a text has at most 2,000"),
        (f"text,fr\n{WAKE},=1+1\n", "Row 2, fr: the cell holds a formula"),
        (f"text:fr\n{WAKE}:A\n", "has only one column"),
    ],
)
def test_a_file_that_would_empty_a_language_is_refused(
    bob: User, french: Questionnaire, data: str, reason: str
) -> None:
    """A header alone, and the file of another questionnaire, removed the French silently."""
    with pytest.raises(Refusal, match=reason):
        use_file(bob, french, data.encode())
    french.refresh_from_db()
    assert french.content.translations["fr"] == FRENCH


def test_a_column_without_translations_changes_no_language(
    bob: User, french: Questionnaire
) -> None:
    """A spreadsheet moves the line ends within a cell, and Excel notes its separator."""
    said = {**FRENCH, "Your days": "Vos journées"}
    rows = [f'"{text.replace(" ", chr(10), 1)}";;{other}' for text, other in said.items()]
    data = "\r\n".join(["sep=;", "text;ar;fr", *rows])
    use_file(bob, french, data.encode())
    french.refresh_from_db()
    assert french.content.translations["ar"] == {WAKE: "متى تستيقظ؟"}
    assert french.content.translations["fr"] == said


def test_staff_translate_by_the_page(
    bob: User, alice: User, client_of: Callable, opened: Questionnaire
) -> None:
    client, url = client_of(bob), reverse("surveys:languages", args=[opened.pk])
    add = reverse("surveys:languages-add", args=[opened.pk])
    client.post(add, {"version": opened.version, "language": "fr"})
    opened.refresh_from_db()
    assert Page(client.get(url)).field("Housing 2027 (fr)").element.get("lang") == "fr"
    client.post(url, {"version": opened.version, "fr-0": "Logement 2027"})
    opened.refresh_from_db()
    assert opened.content.translations["fr"] == {"Housing 2027": "Logement 2027"}
    use_file(bob, opened, f"text,pt\n{WAKE},A que horas?\n".encode())
    opened.refresh_from_db()
    assert languages_of(opened.content) == ["en", "es", "fr", "pt"]
    remove = reverse("surveys:languages-remove", args=[opened.pk, "fr"])
    client.post(remove, {"version": opened.version})
    opened.refresh_from_db()
    assert languages_of(opened.content) == ["en", "es", "pt"]
    change_undo(user=bob, questionnaire=opened, version=opened.version)
    assert languages_of(opened.content) == ["en", "es", "fr", "pt"]
    assert client_of(alice).get(url).status_code == 403


def test_answers_keep_their_words_in_every_language(bob: User, french: Questionnaire) -> None:
    """Staff may reword a question and add what is missing, not turn one answer into another."""
    common = {"user": bob, "questionnaire": french}
    more = FRENCH | {WAKE: "Quand te lèves-tu ?", "6 to 7 am": "De 6 h à 7 h"}
    translations_set(**common, version=french.version, translations={"fr": more})
    assert french.content.translations["fr"][WAKE] == "Quand te lèves-tu ?"
    for said in (more | {"Before 6 am": "Après 9 h"}, {}):
        with pytest.raises(QuestionnaireError, match="is fixed in Français"):
            translations_set(**common, version=french.version, translations={"fr": said})


def test_the_page_stays_light_with_many_languages(
    bob: User, opened: Questionnaire, student: Callable[..., Student]
) -> None:
    codes = ("ar", "de", "fr", "he", "hi", "ja", "ko", "pt", "ru", "tr", "uk")
    said = {code: {WAKE: f"{code} " + "я" * 300} for code in codes}
    translations_set(user=bob, questionnaire=opened, version=opened.version, translations=said)
    anna = student()
    text = page(anna, lang="uk")
    assert text.has("heading", said["uk"][WAKE])
    links = text.one("navigation", "Language").every("link") or text.every("link")
    assert len([one for one in links if one.element.get("hreflang")]) >= len(codes), (
        "all others are offered"
    )
    assert weight_of(text.source) < 100_000
    assert all(one.element.get("type") == "submit" for one in text.one("form").every("button")[-2:])
