"""A file of translations is checked on a page before its texts are used, and can be discarded."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.questionnaires import a_translation_file
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.draft_files import draft_path
from webapp.cohorts.models import Draft
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.questionnaires import questionnaire_delete
from webapp.surveys.services.translation_files import translation_file_read
from webapp.surveys.services.translations import translations_set

WAKE = "What time do you get up on a weekday?"
TITLE = "Housing 2027"
FRENCH = {TITLE: "Logement", WAKE: "Quand te lèves-tu ?", "Your days": "Tes journées"}
FILE = f"text,fr,pt\n{TITLE},Logement,Habitação\n{WAKE},À quelle heure ?,\nNot here,Pas ici,\n"
ClientOf = Callable[[User], Client]


@pytest.fixture
def french(bob: User, draft: Questionnaire) -> Questionnaire:
    translations_set(
        user=bob, questionnaire=draft, version=draft.version, translations={"fr": FRENCH}
    )
    return draft


def upload(client: Client, questionnaire: Questionnaire, data: str, name: str = "l.csv") -> Any:
    address = reverse("surveys:languages-read", args=[questionnaire.pk])
    return client.post(address, {"file": SimpleUploadedFile(name, data.encode())}, follow=True)


def use(client: Client, draft: Draft, **sent: object) -> Any:
    questionnaire = Questionnaire.objects.get(pk=draft.about)
    address = reverse("surveys:languages-draft-use", args=[questionnaire.pk, draft.pk])
    fields = {"version": draft.version, "shown": questionnaire.version, **sent}
    return client.post(address, fields, follow=True)


def texts_of(questionnaire: Questionnaire) -> dict[str, dict[str, str]]:
    questionnaire.refresh_from_db()
    translations: dict[str, dict[str, str]] = questionnaire.content.translations
    return translations


def test_the_page_shows_new_changed_and_missing_texts_and_changes_nothing(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    before = texts_of(french)
    answer = upload(client_of(bob), french, FILE)
    own = Draft.objects.get(about=french.pk)
    assert answer.redirect_chain[-1][0] == own.get_absolute_url()
    found = translation_file_read(draft=own, questionnaire=french)
    fr, pt = found.languages
    assert [(one.text, one.old, one.new) for one in fr.changed] == [
        (WAKE, FRENCH[WAKE], "À quelle heure ?")
    ]
    assert (fr.added, fr.n_same) == ((), 1)
    assert ("Your days", "Tes journées", "") in [(m.text, m.old, m.new) for m in fr.missing]
    assert [one.new for one in pt.added] == ["Habitação"]
    page = Page(answer)
    french_texts = page.section("Français")
    assert french_texts.says(f"0 new, 1 changed, {len(fr.missing)} missing, 1 unchanged")
    assert french_texts.one("row", f"{WAKE} {FRENCH[WAKE]} À quelle heure ?")
    assert page.section("Português").one("row", f"{TITLE} Habitação")
    problem = "Row 4, column “text”: this questionnaire has no text “Not here”."
    assert page.section("Problems").says(problem)
    assert not page.one("button", "Use these texts").is_disabled
    assert texts_of(french) == before


def test_the_texts_are_used_and_the_texts_before_put_back(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    before, client = texts_of(french), client_of(bob)
    upload(client, french, FILE)
    page = Page(use(client, Draft.objects.get()))
    assert texts_of(french)["fr"] == {TITLE: "Logement", WAKE: "À quelle heure ?"}
    assert texts_of(french)["pt"] == {TITLE: "Habitação"}
    assert texts_of(french)["es"] == before["es"]
    assert not Draft.objects.exists()
    assert AuditLine.objects.filter(verb="translated").count() == 2
    assert page.says("The texts of the file are used: Français and Português.")
    undo = f"{reverse('surveys:undo', args=[french.pk])}?version={french.version}"
    assert undo in page.source
    client.post(undo)
    assert texts_of(french) == before


def test_a_discarded_file_changes_nothing(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    before, client = texts_of(french), client_of(bob)
    upload(client, french, FILE)
    own = Draft.objects.get()
    answer = client.post(reverse("cohorts:draft-discard", args=[own.pk]), follow=True)
    assert answer.redirect_chain[-1][0] == reverse("surveys:languages", args=[french.pk])
    assert Page(answer).says("l.csv was discarded. Nothing was imported.")
    assert texts_of(french) == before
    assert not Draft.objects.exists()
    assert use(client, own).status_code == 404


def test_a_questionnaire_that_changed_meanwhile_refuses_an_old_page(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    client = client_of(bob)
    upload(client, french, FILE)
    own, shown = Draft.objects.get(), french.version
    more = {"fr": FRENCH | {"Before 6 am": "Avant 6 h"}}
    translations_set(user=bob, questionnaire=french, version=shown, translations=more)
    page = Page(use(client, own, shown=shown))
    assert page.says("Somebody else changed this questionnaire meanwhile.")
    assert texts_of(french)["fr"] == more["fr"]
    assert page.section("Français").says("Avant 6 h"), "compared with the present texts"
    use(client, own)
    assert texts_of(french)["fr"] == {TITLE: "Logement", WAKE: "À quelle heure ?"}


def test_a_file_that_changed_meanwhile_refuses_an_old_page(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    before, client = texts_of(french), client_of(bob)
    upload(client, french, FILE)
    own = Draft.objects.get()
    address = own.get_absolute_url()
    client.post(address, {"column": 2, "use": "it", "version": own.version})
    page = Page(use(client, own))
    assert page.says("This upload was changed or finished by somebody else.")
    assert texts_of(french) == before


def test_a_column_is_given_its_language_and_the_choice_undone(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    client = client_of(bob)
    page = Page(upload(client, french, f"text,Brazil\n{TITLE},Habitação\n"))
    no_language = "Column “Brazil” is in no language that can be added"
    assert page.section("Problems").says(no_language)
    own = Draft.objects.get()
    page = Page(use(client, own))
    assert page.says("leave it out. Nothing was changed.")
    address = own.get_absolute_url()
    client.post(address, {"column": 1, "use": "pt", "version": 1})
    assert Page(client.get(address)).section("Português").says("Habitação")
    own.refresh_from_db()
    assert translation_file_read(draft=own, questionnaire=french).can_use
    client.post(address, {"action": "undo", "version": own.version})
    own.refresh_from_db()
    assert translation_file_read(draft=own, questionnaire=french).problems
    for column, chosen in ((9, "pt"), (1, "en"), (1, "nonsense")):
        sent = {"column": column, "use": chosen, "version": own.version}
        page = Page(client.post(address, sent, follow=True))
        assert page.says("There is no such column or use of a column.")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("", "empty"),
        (f"text:fr\n{WAKE}:A\n", "has only one column"),
        (f"text,fr\n{WAKE},=2+3\n", "Row 2, fr: the cell holds a formula"),
        (f"text,fr,fr\n{WAKE},A,B\n", "Columns 2 and 3 are both called “fr”. Rename one."),
        (f"text,fr\n{WAKE},A,B\n", "Row 2 has 3 cells, but the header has 2 columns."),
    ],
)
def test_a_file_that_is_no_table_of_texts_is_refused_in_one_sentence(
    bob: User, client_of: ClientOf, french: Questionnaire, data: str, sentence: str
) -> None:
    answer = upload(client_of(bob), french, data)
    assert answer.redirect_chain[-1][0] == reverse("surveys:languages", args=[french.pk])
    assert Page(answer).says(sentence)
    assert not Draft.objects.exists()
    assert texts_of(french)["fr"] == FRENCH


@pytest.mark.parametrize(
    ("data", "sentence", "can_use"),
    [
        (f"text,xx\n{WAKE},A\n", "Column “xx” is in no language that can be added", False),
        (f"text,en\n{WAKE},A\n", "Column “en” is in no language that can be added", False),
        ("text,fr\nAnother?,Autre ?\n", "Row 2, column “text”: this questionnaire has no", False),
        ("text,fr\nAnother?,Autre ?\n", "No text of the file is in this questionnaire.", False),
        (f"text,fr\n{WAKE},A\n,B\n", "Row 3, column “text”: the cell is empty", True),
        (f"text,fr\n{WAKE},A\n{WAKE},A\n", "the same translation in row 2 already", True),
        (f"text,fr\n{WAKE},A\n{WAKE},B\n", "another translation in row 2. Leave one", False),
        (f"text,fr,pt\n{WAKE},A,\n", "Column “pt” holds no translation: Português stays", True),
        (f"fr,text\nA,{WAKE}\n", "0 new, 1 changed", True),
        (f"English,fr\n{WAKE},A\n", "0 new, 1 changed", True),
    ],
)
def test_what_is_not_understood_is_shown_in_a_sentence(
    bob: User,
    client_of: ClientOf,
    french: Questionnaire,
    data: str,
    sentence: str,
    can_use: bool,
) -> None:
    client = client_of(bob)
    assert Page(upload(client, french, data)).says(sentence)
    assert texts_of(french)["fr"] == FRENCH
    own = Draft.objects.get()
    use(client, own)
    assert (texts_of(french).get("fr") != FRENCH) is can_use


def test_the_same_texts_again_change_nothing(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    rows = "".join(f"{text},{said}\n" for text, said in FRENCH.items())
    client, version = client_of(bob), french.version
    page = Page(upload(client, french, f"text,fr\n{rows}"))
    assert page.says("The questionnaire has exactly these texts already.")
    assert Page(use(client, Draft.objects.get())).says("The file changes no text.")
    french.refresh_from_db()
    assert french.version == version


def test_answers_that_were_open_are_shown_as_fixed(
    bob: User, client_of: ClientOf, opened: Questionnaire
) -> None:
    said = {"fr": {"Before 6 am": "Avant 6 h"}}
    translations_set(user=bob, questionnaire=opened, version=opened.version, translations=said)
    client = client_of(bob)
    for data in ("Before 6 am,Après 9 h", f"{WAKE},Quand ?"):
        page = Page(upload(client, opened, f"text,fr\n{data}\n"))
        fixed = "“Before 6 am” is fixed in Français: it was open in these words."
        assert page.section("Problems").says(fixed)
        own = Draft.objects.latest("created_at")
        assert Page(use(client, own)).says("Nothing was changed.")
        assert texts_of(opened)["fr"] == said["fr"]


def test_an_upload_waits_on_the_page_of_languages_and_on_home(
    bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    own = a_translation_file(bob, french, FILE.encode())
    client = client_of(bob)
    for name, arguments in (("surveys:languages", [french.pk]), ("common:home", [])):
        assert own.get_absolute_url() in client.get(reverse(name, args=arguments)).content.decode()
    for name in ("cohorts:list", "cohorts:upload"):
        assert "l.csv" not in client.get(reverse(name)).content.decode()
    assert client.get(reverse("cohorts:draft", args=[own.pk])).status_code == 404


def test_strangers_and_viewers_see_and_change_nothing(
    alice: User, mallory: User, bob: User, client_of: ClientOf, french: Questionnaire
) -> None:
    own = a_translation_file(bob, french, FILE.encode())
    before, address = texts_of(french), own.get_absolute_url()
    for user, status in ((alice, 403), (mallory, 404)):
        client = client_of(user)
        assert client.get(address).status_code == status
        answer = client.post(address, {"column": 1, "use": "it", "version": 1})
        assert answer.status_code == status
        assert use(client, own).status_code == status
        assert upload(client, french, FILE).status_code == status
    assert texts_of(french) == before
    own.refresh_from_db()
    assert own.version == 1


def test_an_upload_belongs_to_its_questionnaire_and_leaves_with_it(
    bob: User,
    client_of: ClientOf,
    french: Questionnaire,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    own = a_translation_file(bob, french, FILE.encode())
    other = Questionnaire.objects.create(
        organisation=bob.organisation, title="Other", content=french.content
    )
    wrong = reverse("surveys:languages-draft", args=[other.pk, own.pk])
    assert client_of(bob).get(wrong).status_code == 404
    path = draft_path(own.organisation_id, own.pk)
    assert path.exists()
    with django_capture_on_commit_callbacks(execute=True):
        questionnaire_delete(user=bob, questionnaire=french, typed=TITLE)
    assert not Draft.objects.exists()
    assert not path.exists()
