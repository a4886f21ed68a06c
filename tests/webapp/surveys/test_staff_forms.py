"""Refused forms keep the text of staff, with errors beside fields, also after a session."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.conftest import PASSWORD
from tests.webapp.roles import Page, Part
from webapp.accounts.models import User
from webapp.surveys.content import Kind
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of

TEXT = "When do you wake up on a day without lectures?"


def at(name: str, found: Questionnaire, *more: object) -> str:
    return reverse(f"surveys:{name}", args=[found.pk, *more])


def refused(answer: object, *typed: str, error: str) -> Page:
    page = Page(answer, status=422)
    values = [Part(one).value for one in page.element.iter("input", "textarea", "select")]
    for text in typed:
        assert any(text in value for value in values), text
    assert page.says(error)
    return page


def people_in(page: Page) -> list[Part]:
    """The rows of people, without those of headers."""
    return [row for row in page.every("row") if row.has("cell")]


def test_a_title_that_is_taken_keeps_what_was_chosen(
    bob: User, draft: Questionnaire, client_of: Callable
) -> None:
    answer = client_of(bob).post(reverse("surveys:new"), {"title": draft.title, "form": "blank"})
    page = refused(answer, draft.title, error="There is already a questionnaire called")
    chosen = [one for one in page.one("group", "Start from").every("radio") if one.is_checked]
    assert [one.value for one in chosen] == ["blank"]
    taken = Questionnaire.objects.create(
        organisation=bob.organisation, title="Taken", content=draft.content
    )
    fields = {"title": taken.title, "introduction": "Long words.", "contact": "me"}
    refused(
        client_of(bob).post(at("settings", draft), fields),
        "Long words.",
        "me",
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
    page = Page(client.get(reverse("surveys:new") + f"?from=copy:{opened.pk}"))
    assert page.one("group", "Start from").says(f"A copy of “{opened.title}”")
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
    (version,) = set(page.element.xpath("//input[@name='version']/@value"))
    assert version == str(draft.version), "it can be sent again"
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
    page = Page(client.get(at("question", draft, made.key)))
    chosen = page.element.xpath("//option[@selected]/@value")
    for value in (f"{smoking.key}:2", f"{smoking.key}:3"):
        assert chosen.count(value) == 1
    gone = client.post(
        at("question-remove", draft, smoking.key), {"version": draft.version}, follow=True
    )
    assert Page(gone).one("alert").says("is shown only after a certain answer")


def test_wording_changes_and_answers_do_not_once_it_was_open(
    bob: User, opened: Questionnaire, client_of: Callable
) -> None:
    first = questions_of(opened.content)[0]
    page = Page(client_of(bob).get(at("question", opened, first.key)))
    fixed = page.field("An answer is required").description
    assert fixed == "Fixed: people answered the question."
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
    assert Page(sign_in).one("status").says("what you typed is kept")
    back = client.post(
        reverse("accounts:sign-in"),
        {"username": "bob", "password": PASSWORD, "next": at("question-add", draft)},
        follow=True,
    )
    page = refused(back, TEXT, error="Your session had ended, so nothing was saved yet.")
    assert page.field("Short name").value == "New"
    again = Page(client.get(at("question-add", draft)))
    assert TEXT not in again.source, "it is shown once"


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
    first = Page(client.get(url))
    assert len(people_in(first)) == 50
    assert first.one("row", "p000@x.example").says("N00000")
    assert first.one("navigation", "Pages").says("1–50 of 120")
    assert len(people_in(Page(client.get(url + "?page=3")))) == 20
    found = Page(client.get(url + "?q=n00077"))
    (row,) = people_in(found)
    assert row.says("p077@x.example")
    assert Page(client.get(url + "?state=finished")).one("navigation", "Pages").says("1–50 of 60")
    assert Page(client.get(url + "?q=zzz")).section("Mails").says("Nobody fits.")
