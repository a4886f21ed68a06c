"""“Saved” is true: whatever goes wrong is told in the student's language, with what was typed."""

from collections.abc import Callable

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from tests.webapp.roles import Page
from webapp.surveys import limits
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire

TYPED = "I need a ramp, please."
SCRIPT = {"X-Requested-With": "fetch"}


def close(monkeypatch: pytest.MonkeyPatch) -> None:
    Questionnaire.objects.update(closes_at=timezone.now())


def be_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: object) -> None:
        raise OperationalError("unable to open database file")

    monkeypatch.setattr("webapp.surveys.views.walk.answer_save", away)


def fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.surveys.views.walk.answer_save", lambda **_: 1 / 0)


def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SAVES_OF_ONE", 0)


def sign_out(monkeypatch: pytest.MonkeyPatch) -> None:
    Questionnaire.objects.update(asks_sign_in=True)


FAULTS = {
    close: (410, "Este cuestionario está cerrado. Tu última respuesta no se guardó.", False),
    be_away: (503, "El servidor está ocupado. Tu respuesta aún no está guardada", True),
    fail: (500, "Algo falló por nuestra parte. Tu respuesta aún no está guardada", True),
    limit: (429, "Demasiados intentos.", True),
    sign_out: (401, "Se cerró tu sesión y no se guardó nada.", False),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_no_fault_reads_as_saved_or_loses_what_was_typed(
    fault: Callable, student: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, sentence, can_retry = FAULTS[fault]
    anna = student()
    anna.client.raise_request_exception = False
    anna.client.get(f"{anna.url}?lang=es")
    fault(monkeypatch)
    fields = {"n": 1, "answer": TYPED, "action": "next"}
    answer = anna.client.post(anna.url, fields)
    page = Page(answer, status=status)
    assert page.has("heading", sentence)
    assert page.element.get("lang") == "es"
    assert page.says(TYPED)
    assert "Guardado" not in page.source
    sent_again = {one.get("name"): one.get("value") for one in page.element.iter("input")}
    assert (sent_again.get("answer") == TYPED) == can_retry
    if can_retry:
        assert sent_again["n"] == "1"
        assert page.one("link", "Atrás").address == anna.url, "it leads back to the form"
    by_script = anna.client.post(anna.url, fields, headers=SCRIPT)
    assert by_script.status_code == status
    assert sentence in by_script.json()["error"]
    if status in (429, 503):
        assert int(by_script["Retry-After"]) > 0
    assert anna.row.answers == {}


def test_a_refused_answer_stays_in_its_field(student: Callable, draft: Questionnaire) -> None:
    anna = student()
    answer = anna.client.post(anna.url, {"n": 1, "answer": "99", "action": "next"}, headers=SCRIPT)
    assert (answer.status_code, answer.json()) == (422, {"error": "Choose one of the answers."})


def test_an_old_token_of_a_form_loses_nothing(opened: Questionnaire) -> None:
    row = Participant.objects.create(questionnaire=opened)
    client = Client(enforce_csrf_checks=True, headers={"Accept-Language": "es"})
    client.get(f"/q/{token_of(row)}/", follow=True)
    here = client.get(f"/q/{token_of(row)}/").url
    answer = client.post(here, {"n": 1, "answer": TYPED, "csrfmiddlewaretoken": "x" * 64})
    page = Page(answer, status=403)
    assert answer.status_code == 403
    assert page.has("heading", "Esta página llevaba demasiado tiempo abierta y no se guardó nada.")
    assert page.one("form", "Enviar de nuevo").says(TYPED)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/q/a/b/c/", "/q/code/A/B/C/", "/q/code/../", "/q/%00/"])
def test_a_wrong_address_leads_to_the_field_for_a_code(path: str) -> None:
    client = Client(headers={"Accept-Language": "es"}, raise_request_exception=False)
    answer = client.get(path, follow=True)
    assert answer.status_code in (400, 404)
    page = Page(answer, status=404)
    assert page.element.get("lang") == "es"
    assert "/q/" in [one.address for one in page.every("link") + page.every("form")]


def test_a_zero_byte_is_told_in_words(student: Callable) -> None:
    anna = student()
    answer = anna.client.post(anna.url, {"n": 1, "answer": "a\x00b", "action": "next"})
    assert answer.status_code in (400, 422)
    assert "common/" not in Page(answer, status=400).source
    assert "Sign in" not in Page(answer, status=400).source


def link_of(row: Participant) -> str:
    return f"/q/{token_of(row)}/"


@pytest.mark.parametrize(
    "written",
    [
        "https://hall.example{}", "  https://hall.example{}?lang=es ", "<http://hall.example:8000{}>",
        "{}", "hall.example{}#x", "Hello, this is your link: https://hall.example{} . Bye",
    ],
)  # fmt: skip
def test_a_whole_pasted_link_opens_the_questionnaire(opened: Questionnaire, written: str) -> None:
    row = Participant.objects.create(questionnaire=opened)
    link = link_of(row)
    broken = link[:30] + "\r\n" + link[30:]  # as a mail program breaks lines
    for text in (link, broken):
        answer = Client().post("/q/", {"code": written.format(text)})
        assert answer.status_code == 302
        assert answer.url == link


@pytest.mark.parametrize(
    "written", ["{}", "{} ", "{:.4}-{:4.4}", "https://hall.example/q/code/{}/", "/q/code/{}"]
)
def test_a_code_is_read_as_it_is_typed(opened: Questionnaire, written: str) -> None:
    code = opened.code
    text = f"{code[:4]}-{code[4:]}".lower() if "4" in written else written.format(code)
    answer = Client().post("/q/", {"code": text}, follow=True)
    assert answer.status_code == 200
    assert Page(answer).has("heading", opened.title)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text", ["A/B", "../..", "ABCD/2345", "/q/", "http://", "%2F", "?", "é" * 400]
)
def test_nonsense_in_the_field_comes_back_with_a_sentence(text: str) -> None:
    client = Client(headers={"Accept-Language": "en"})
    answer = client.post("/q/", {"code": text}, follow=True)
    assert answer.status_code in (404, 422)
    page = Page(answer, status=answer.status_code)
    assert page.one("alert").text
    assert page.one("form", "questionnaire").address == "/q/", "it can be typed again at once"


def test_a_students_own_code_is_not_the_questionnaires(student: Callable) -> None:
    anna = student()
    answer = Client(headers={"Accept-Language": "en"}).get(f"/q/code/{anna.row.code}/")
    assert answer.status_code == 404
    assert Page(answer, status=404).says("This is a student's own code")


def test_without_cookies_the_chosen_language_stays(opened: Questionnaire) -> None:
    class Forgetful(Client):
        def request(self, **request: object) -> object:
            answer = super().request(**request)
            self.cookies.clear()
            return answer

    row = Participant.objects.create(questionnaire=opened)
    client = Forgetful(enforce_csrf_checks=True, headers={"Accept-Language": "en"})
    page = client.get(f"{link_of(row)}?lang=es&cookies=1")
    assert Page(page).has("button", "Empezar")
    saved = client.post(f"{link_of(row)}?cookies=1", {"n": 1, "answer": "2"})
    assert saved.url.partition("?")[2] == "n=2&cookies=1"  # the link itself has a new signature
    assert Page(client.get(saved.url)).says("pregunta 2 de 14")
