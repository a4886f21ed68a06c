"""Refused forms keep the text of staff, with errors beside fields, also after a session."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.conftest import PASSWORD
from webapp.accounts.models import User
from webapp.surveys.content import Kind
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of

TEXT = "When do you wake up on a day without lectures?"


def at(name: str, found: Questionnaire, *more: object) -> str:
    return reverse(f"surveys:{name}", args=[found.pk, *more])


def refused(answer: object, *typed: str, error: str) -> str:
    page = answer.content.decode()
    assert answer.status_code == 422, page[:500]
    for text in typed:
        assert text in page, text
    assert error in page
    return page


def test_a_title_that_is_taken_keeps_what_was_chosen(
    bob: User, draft: Questionnaire, client_of: Callable
) -> None:
    answer = client_of(bob).post(reverse("surveys:new"), {"title": draft.title, "form": "blank"})
    page = refused(answer, draft.title, error="There is already a questionnaire called")
    assert 'value="blank" class="" id="id_form_2" checked' in page or "checked" in page
    taken = Questionnaire.objects.create(
        organisation=bob.organisation, title="Taken", content=draft.content
    )
    fields = {"title": taken.title, "introduction": "Long words.", "contact": "me"}
    refused(
        client_of(bob).post(at("settings", draft), fields),
        "Long words.",
        'value="me"',
        error="There is already a questionnaire called",
    )


def test_a_blank_start_and_a_copy_of_last_year(
    bob: User, mallory: User, opened: Questionnaire, client_of: Callable
) -> None:
    client = client_of(bob)
    client.post(reverse("surveys:new"), {"title": "Empty", "form": "blank"})
    empty = Questionnaire.objects.get(title="Empty")
    assert (empty.content.questions, len(empty.content.sections)) == ([], 1)
    Questionnaire.objects.filter(pk=opened.pk).update(contact="office@x.example", takes_code=False)
    page = client.get(reverse("surveys:new") + f"?from=copy:{opened.pk}").content.decode()
    assert f"A copy of “{opened.title}”" in page
    form = f"copy:{opened.pk}"
    client.post(reverse("surveys:new"), {"title": "Next year", "form": form})
    copied = Questionnaire.objects.get(title="Next year")
    assert copied.content == opened.content
    assert (copied.contact, copied.takes_code) == ("office@x.example", False)
    assert (copied.opens_at, copied.participants.count()) == (None, 0)
    assert copied.code != opened.code
    answer = client_of(mallory).post(reverse("surveys:new"), {"title": "Stolen", "form": form})
    assert answer.status_code == 422
    assert not Questionnaire.objects.filter(title="Stolen").exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"answers": "One"}, "Give 2 to 15 answers"),
        ({"answers": "One\none"}, "Two answers are the same."),
        ({"name": "Tidiness"}, "Another question is called"),
        ({"name": ""}, "This field is required."),
        ({"version": "0"}, "Somebody else changed this questionnaire meanwhile."),
    ],
)
def test_a_question_that_is_refused_keeps_everything(
    bob: User, draft: Questionnaire, client_of: Callable, change: dict, error: str
) -> None:
    fields = {
        "version": draft.version, "section": "1", "kind": "one", "name": "Waking", "text": TEXT,
        "hint": "A hint.", "reason": "A reason.", "answers": "Early\nLate", "required": "on",
    }  # fmt: skip
    client = client_of(bob)
    page = refused(
        client.post(at("question-add", draft), fields | change),
        TEXT, "A hint.", "A reason.", error=error,
    )  # fmt: skip
    draft.refresh_from_db()
    assert len(draft.content.questions) == 14
    assert f'name="version" value="{draft.version}"' in page, "it can be sent again"
    fields["version"] = draft.version
    client.post(at("question-add", draft), fields)
    draft.refresh_from_db()
    made = next(q for q in draft.content.questions if q.name == "Waking")
    assert (made.required, made.answers, made.kind) == (True, ("Early", "Late"), Kind.ONE)


def test_a_question_hangs_on_an_answer(
    bob: User, draft: Questionnaire, client_of: Callable
) -> None:
    client = client_of(bob)
    smoking = next(q for q in draft.content.questions if q.name == "Smoking")
    drinking = next(q for q in draft.content.questions if q.name == "Drinking")
    fields = {
        "version": draft.version, "name": "Where", "text": "Where do you smoke?", "section": "3",
        "kind": "text", "shown_if": [f"{smoking.key}:2", f"{smoking.key}:3"],
    }  # fmt: skip
    both = fields | {"shown_if": [f"{smoking.key}:2", f"{drinking.key}:1"]}
    refused(
        client.post(at("question-add", draft), both),
        "Where do you smoke?", error="Choose answers to one question only.",
    )  # fmt: skip
    client.post(at("question-add", draft), fields)
    draft.refresh_from_db()
    made = draft.content.questions[13]
    assert (made.name, made.shown_if.question, made.shown_if.answers) == (
        "Where", smoking.key, (2, 3),
    )  # fmt: skip
    page = client.get(at("question", draft, made.key)).content.decode()
    assert page.count(f'value="{smoking.key}:2" selected') == 1
    gone = client.post(
        at("question-remove", draft, smoking.key), {"version": draft.version}, follow=True
    )
    assert "is shown only after a certain answer" in gone.content.decode()


def test_wording_changes_and_answers_do_not_once_it_was_open(
    bob: User, opened: Questionnaire, client_of: Callable
) -> None:
    first = questions_of(opened.content)[0]
    page = client_of(bob).get(at("question", opened, first.key)).content.decode()
    assert "Fixed: people answered the question." in page
    fields = {"version": opened.version, "text": TEXT, "name": "Other", "answers": "A\nB"}
    client_of(bob).post(at("question", opened, first.key), fields)
    opened.refresh_from_db()
    changed = questions_of(opened.content)[0]
    assert (changed.text, changed.name, changed.answers) == (TEXT, first.name, first.answers)


@pytest.mark.parametrize(
    ("name", "fields", "typed", "error"),
    [
        ("people-add", {"people": "Anna Berg\nb@x.example"}, "Anna Berg", "Line 1 holds no e-mail"),
        ("people-add", {"people": ""}, "", "Give one e-mail a line, or choose a file."),
        ("bounces", {"people": "nobody here"}, "nobody here", "no address in it that came back"),
        ("mails-send", {"text_en": "Hello, no field"}, "Hello, no field", "The text needs [link]"),
        ("reminder-schedule", {"text_en": "X [link]", "due_at": "2020-01-01T10:00"}, "X [link]",
         "Choose a time that is still to come."),
        ("open", {"closes_on": "yesterday"}, "yesterday", "Choose the last day."),
        ("make-cohort", {"name": "First"}, "First", "At least 2 people have to finish"),
        ("section-add", {"title": "Your days", "version": "1"}, "Your days", "Questions are fixed"),
        ("section-rename", {"title": "y" * 61, "version": "1"}, "y" * 61, "at most 60"),
    ],
)  # fmt: skip
def test_every_form_comes_back_as_it_was_typed(
    bob: User,
    opened: Questionnaire,
    client_of: Callable,
    name: str,
    fields: dict[str, str],
    typed: str,
    error: str,
) -> None:
    more = [0] if name == "section-rename" else []
    refused(client_of(bob).post(at(name, opened, *more), fields), typed, error=error)


def test_typed_words_outlive_a_session(
    bob: User, draft: Questionnaire, client_of: Callable
) -> None:
    client = client_of(bob)
    client.logout()
    fields = {"version": draft.version, "section": "0", "kind": "text", "name": "New", "text": TEXT}
    lost = client.post(at("question-add", draft), fields)
    assert lost.status_code == 302
    assert "kept=1" in lost.url
    sign_in = client.get(lost.url)
    assert "what you typed is kept" in sign_in.content.decode()
    back = client.post(
        reverse("accounts:sign-in"),
        {"username": "bob", "password": PASSWORD, "next": at("question-add", draft)},
        follow=True,
    )
    page = refused(back, TEXT, error="Your session had ended, so nothing was saved yet.")
    assert 'value="New"' in page
    again = client.get(at("question-add", draft)).content.decode()
    assert TEXT not in again, "it is shown once"


def test_typed_words_outlive_an_old_token(bob: User, draft: Questionnaire) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post(at("settings", draft), {"title": "Another title", "introduction": TEXT})
    assert answer.status_code == 302
    assert answer.url == at("settings", draft)
    refused(client.get(answer.url), TEXT, "Another title", error="Your session had ended")
    draft.refresh_from_db()
    assert draft.title == "Housing 2027"


def test_people_are_searched_paged_and_shown_with_their_numbers(
    bob: User, opened: Questionnaire, client_of: Callable
) -> None:
    Participant.objects.bulk_create(
        Participant(
            questionnaire=opened, email=f"p{k:03d}@x.example", identifier=f"N{k:05d}",
            name=f"Person {k}", finished_at=timezone.now() if k % 2 else None,
        )
        for k in range(120)
    )  # fmt: skip
    client, url = client_of(bob), at("people", opened)
    first = client.get(url).content.decode()
    assert first.count("data-lead") == 50
    assert "N00000" in first
    assert "1–50 of 120" in first
    assert client.get(url + "?page=3").content.decode().count("data-lead") == 20
    found = client.get(url + "?q=n00077").content.decode()
    assert found.count("data-lead") == 1
    assert "p077@x.example" in found
    assert "1–50 of 60" in client.get(url + "?state=finished").content.decode()
    assert "Nobody fits." in client.get(url + "?q=zzz").content.decode()
