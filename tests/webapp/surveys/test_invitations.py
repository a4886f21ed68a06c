"""Invitations, in whatever way staff paste them; mails, reminders, links, unsubscribing."""

from collections.abc import Callable
from datetime import timedelta
from email.header import decode_header, make_header
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.invited import read_people
from webapp.surveys.links import token_of
from webapp.surveys.mails import texts_in
from webapp.surveys.models import Mail, Participant, Questionnaire, ScheduledReminder
from webapp.surveys.services.invitations import (
    TooOftenError,
    invitations_add,
    mails_queue,
    mails_send,
    reminder_schedule,
)
from webapp.tabular.tables_out import as_xlsx

HELLO = {"en": "Hello [name],\n\n[link]\n\n[office]", "es": "Hola [name],\n\n[link]\n\n[office]"}


def at(name: str, found: Questionnaire, *more: object) -> str:
    return reverse(f"surveys:{name}", args=[found.pk, *more])


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("Anna Berg <anna@x.example>, N00101", [("anna@x.example", "N00101", "Anna Berg")]),
        ("a@x.example;b@x.example", [("a@x.example", "", ""), ("b@x.example", "", "")]),
        ("a@x.example, b@x.example", [("a@x.example", "", ""), ("b@x.example", "", "")]),
        ("a@x.example b@x.example", [("a@x.example", "", ""), ("b@x.example", "", "")]),
        ("N7 a@x.example", [("a@x.example", "N7", "")]),
        ("a@x.example N1, b@x.example N2", [("a@x.example", "N1", ""), ("b@x.example", "N2", "")]),
        (
            "a@x.example, N1, b@x.example, N2",
            [("a@x.example", "N1", ""), ("b@x.example", "N2", "")],
        ),
        (
            "N1, a@x.example, N2, b@x.example",
            [("a@x.example", "N1", ""), ("b@x.example", "N2", "")],
        ),
        (
            "Anna Berg <a@x.example>, Bo Li <b@x.example>",
            [("a@x.example", "", "Anna Berg"), ("b@x.example", "", "Bo Li")],
        ),
        (
            '"Berg, Anna" <a@x.example>; "Li, Bo" <b@x.example>',
            [("a@x.example", "", "Berg Anna"), ("b@x.example", "", "Li Bo")],
        ),
        ("Number\tE-mail\tName\n7\tA@X.example\tÁna Öz", [("a@x.example", "7", "Ána Öz")]),
        ("mailto:a@x.example", [("a@x.example", "", "")]),
        ("\ufeffAnna\u00a0Berg<a@x.example>N1", [("a@x.example", "N1", "Anna Berg")]),
        ("a@x.example\na@x.example, N1", [("a@x.example", "N1", "")]),
    ],
)
def test_a_line_is_read_as_people_write_it(text: str, people: list[tuple[str, str, str]]) -> None:
    assert [(one.email, one.number, one.name) for one in read_people(text)] == people


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a@x.example\nAnna", "Line 2 holds no e-mail. Nobody was added."),
        ("Anna\n\na@\n@x\nb@x.example", "Lines 1, 3 and 4 hold no e-mail."),
        ("a@x.example, N1\na@x.example, N2", "Lines 1 and 2 give a@x.example two student numbers"),
        ("a@x.example, N1\nb@x.example, n1", "Lines 1 and 2 give the number n1 to two e-mails"),
        ("", "Give one e-mail a line."),
        ("email,number", "Give one e-mail a line."),
    ],
)
def test_what_is_unclear_adds_nobody(
    bob: User, opened: Questionnaire, text: str, sentence: str
) -> None:
    with pytest.raises(QuestionnaireError) as refused:
        invitations_add(user=bob, questionnaire=opened, text=text)
    assert sentence in str(refused.value)
    assert not Participant.objects.exists()


def test_a_second_list_completes_who_is_there(bob: User, opened: Questionnaire) -> None:
    invitations_add(user=bob, questionnaire=opened, text="a@x.example\nb@x.example, N2")
    more = "Anna <a@x.example> N1\nb@x.example, N9\nc@x.example"
    done = invitations_add(user=bob, questionnaire=opened, text=more)
    assert done.sentence == "1 added, 2 were there already, 1 of them got a number or a name."
    people = Participant.objects.values_list("email", "identifier", "name")
    assert list(people) == [
        ("a@x.example", "N1", "Anna"), ("b@x.example", "N2", ""), ("c@x.example", "", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["people.csv", "people.xlsx"])
def test_a_file_of_people_is_read(
    bob: User, opened: Questionnaire, client_of: Callable, name: str
) -> None:
    rows = [["Number", "E-mail"], ["7", "a@x.example"], ["8", "b@x.example"]]
    data = "\n".join(";".join(row) for row in rows).encode()
    file = SimpleUploadedFile(name, as_xlsx({"P": rows}) if name.endswith("x") else data)
    page = client_of(bob).post(at("people-add", opened), {"file": file}, follow=True)
    assert Page(page).one("status").says("2 added, 0 were")
    assert set(Participant.objects.values_list("email", "identifier")) == {
        ("a@x.example", "7"), ("b@x.example", "8"),
    }  # fmt: skip


@pytest.fixture
def anna(opened: Questionnaire) -> Participant:
    return Participant.objects.create(
        questionnaire=opened, email="anna@x.example", name="Anna Berg", identifier="N1"
    )


def send(bob: User, opened: Questionnaire, *, is_reminder: bool = False, **more: object) -> int:
    queued = mails_queue(
        user=bob, questionnaire=opened, texts=HELLO, is_reminder=is_reminder,
        base="https://hall.example", **more,
    )  # fmt: skip
    mails_send()
    return queued


def test_a_mail_is_text_and_html_from_the_office_in_the_students_language(
    bob: User, opened: Questionnaire, anna: Participant, settings: LazySettings
) -> None:
    settings.DEFAULT_FROM_EMAIL = "housing@hall.example"
    Questionnaire.objects.update(contact="office@northfield.example")
    bob.organisation.department = "Wohnbüro, Østre"
    bob.organisation.save()
    for language, word in (("es", "Hola"), ("en", "Hello")):
        Mail.objects.all().delete()
        Participant.objects.update(language=language)
        send(bob, opened)
        message = mail.outbox[-1]
        link = f"https://hall.example/q/{token_of(anna).split('~')[0]}"
        assert f"{word} Anna Berg," in message.body
        assert link in message.body
        ((text, kind),) = message.alternatives
        assert kind == "text/html"
        page = Page(text)
        assert page.element.get("lang") == language
        assert any(one.address.startswith(link) for one in page.every("link"))
        assert page.says(f"{word} Anna Berg,")
        sender = str(make_header(decode_header(message.message()["From"])))
        assert sender.endswith("<housing@hall.example>")
        assert "Wohnbüro, Østre, Northfield" in sender
        assert message.reply_to == ["office@northfield.example"]
        assert message.extra_headers["List-Unsubscribe"].startswith("<https://hall.example/q/stop/")
        assert message.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "hall.example/q/" not in Mail.objects.get().text, "no personal link lies in a row"


def test_who_chose_no_language_reads_the_text_in_all(
    bob: User, opened: Questionnaire, anna: Participant
) -> None:
    send(bob, opened)
    body = mail.outbox[0].body
    assert body.index("Hello Anna Berg,") < body.index("Hola Anna Berg,")
    assert body.count("https://hall.example/q/") == 3, "the link twice, and no more mails"


def test_names_are_no_markup(bob: User, opened: Questionnaire, anna: Participant) -> None:
    Participant.objects.update(name="<b onclick=x>Anna", language="en")
    Questionnaire.objects.update(title='<img src=x>"\n')
    send(bob, opened)
    page = Page(mail.outbox[0].alternatives[0][0])
    assert page.says("<b onclick=x>Anna")
    assert not page.element.xpath("//*[@onclick]")
    assert not page.element.xpath("//img")
    assert "\n" not in mail.outbox[0].subject


def test_links_have_the_address_of_the_installation(
    bob: User, opened: Questionnaire, anna: Participant, client_of: Callable,
    settings: LazySettings,
) -> None:  # fmt: skip
    client = client_of(bob)
    client.post(at("mails-send", opened), {"text_en": "[link]"})
    assert Mail.objects.get().base == "http://testserver"
    Mail.objects.all().delete()
    settings.PUBLIC_URL = "https://housing.northfield.example"
    client.post(at("mails-send", opened), {"text_en": "[link]"})
    mails_send()
    assert "https://housing.northfield.example/q/" in mail.outbox[-1].body


def test_the_texts_to_start_from_are_in_every_language(opened: Questionnaire) -> None:
    for is_reminder in (False, True):
        texts = texts_in(opened, is_reminder=is_reminder)
        assert list(texts) == ["en", "es"]
        assert texts["es"].startswith("Hola [name],")
        assert all("[link]" in text for text in texts.values())


def test_one_person_gets_the_link_again_and_a_new_one_after_finishing(
    bob: User, mallory: User, opened: Questionnaire, anna: Participant, client_of: Callable
) -> None:
    student = Student(opened, token=token_of(anna))
    student.say_all()
    client = client_of(bob)
    assert client_of(mallory).post(at("link-send", opened, anna.pk)).status_code == 404
    page = Page(client.post(at("link-send", opened, anna.pk), follow=True))
    assert page.one("status").says("The link is on its way.")
    again = Page(client.post(at("link-send", opened, anna.pk), follow=True))
    assert again.one("status").says("A mail is on its way already.")
    assert mails_send() == 1
    assert token_of(anna).split("~")[0] in mail.outbox[0].body
    old = student.link
    done = Page(client.post(at("link-renew", opened, anna.pk), follow=True))
    assert done.one("status").says(
        "The old link opens nothing any more. The new one is on its way by mail."
    )
    mails_send()
    assert Client().get(old).status_code == 404
    anna.refresh_from_db()
    assert token_of(anna).split("~")[0] in mail.outbox[-1].body
    fresh = Student(opened, token=token_of(anna))
    assert fresh.client.get(fresh.url).status_code == 200
    assert fresh.row.finished_at is not None, "the answers stay"


def test_who_answered_nothing_can_be_removed(
    bob: User, opened: Questionnaire, anna: Participant, client_of: Callable
) -> None:
    Student(opened, token=token_of(anna)).say(1, 1)
    page = client_of(bob).post(at("person-remove", opened, anna.pk), follow=True)
    assert Page(page).one("alert").says("Only the student can delete their answers.")
    other = Participant.objects.create(questionnaire=opened, email="b@x.example")
    page = client_of(bob).post(at("person-remove", opened, other.pk), follow=True)
    assert Page(page).one("status").says("b@x.example was removed.")
    assert list(Participant.objects.all()) == [anna]


def test_a_third_reminder_in_a_day_is_asked_for_twice(
    bob: User, opened: Questionnaire, anna: Participant, client_of: Callable
) -> None:
    send(bob, opened)
    assert [send(bob, opened, is_reminder=True) for _ in range(2)] == [1, 1]
    with pytest.raises(TooOftenError, match="1 person has had 2 reminders in the last 24 hours"):
        send(bob, opened, is_reminder=True)
    client, fields = client_of(bob), {"text_en": "Third [link]"}
    answer = client.post(at("mails-remind", opened), fields)
    page = Page(answer, status=422)
    assert answer.status_code == 422
    assert page.field("Text (English)").value == "Third [link]"
    assert page.section("Remind").says("Send one more reminder all the same")
    assert Mail.objects.filter(is_reminder=True).count() == 2
    client.post(at("mails-remind", opened), fields | {"is_confirmed": "on"})
    assert Mail.objects.filter(is_reminder=True).count() == 3
    Mail.objects.filter(state=Mail.WAITING).delete()
    Mail.objects.update(sent_at=timezone.now() - timedelta(hours=25))
    assert send(bob, opened, is_reminder=True) == 1, "another day"


def test_a_reminder_goes_out_by_itself(
    bob: User, opened: Questionnaire, anna: Participant, client_of: Callable
) -> None:
    send(bob, opened)
    due = timezone.now() + timedelta(hours=1)
    fields = {"due_at": due.strftime("%Y-%m-%dT%H:%M"), "text_en": "By itself [link]"}
    page = client_of(bob).post(at("reminder-schedule", opened), fields, follow=True)
    assert Page(page).one("status").says("The reminder is scheduled.")
    assert mails_send() == 0
    ScheduledReminder.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    assert mails_send() == 1
    assert "By itself http://testserver/q/" in mail.outbox[-1].body
    assert mails_send() == 0
    shown = Page(client_of(bob).get(at("people", opened)))
    assert shown.has("listitem", "1 mail sent")


@pytest.mark.parametrize(
    ("late", "closed", "note"),
    [
        (timedelta(days=2), False, "The server was off at that time."),
        (timedelta(seconds=1), True, "Open the questionnaire before you send links"),
        (timedelta(seconds=1), False, "There is nobody to remind"),
    ],
)
def test_a_reminder_that_cannot_go_says_why(
    bob: User, opened: Questionnaire, late: timedelta, closed: bool, note: str
) -> None:
    made = reminder_schedule(
        user=bob, questionnaire=opened, due_at=timezone.now() + timedelta(hours=1),
        texts={"en": "[link]"}, base="",
    )  # fmt: skip
    ScheduledReminder.objects.update(due_at=timezone.now() - late)
    if closed:
        Questionnaire.objects.update(closes_at=timezone.now())
    assert mails_send() == 0
    made.refresh_from_db()
    assert note in made.note
    assert made.sent_at is not None


def test_a_scheduled_reminder_is_cancelled_once(
    bob: User, mallory: User, opened: Questionnaire, client_of: Callable
) -> None:
    made = reminder_schedule(
        user=bob, questionnaire=opened, due_at=timezone.now() + timedelta(hours=1),
        texts={"en": "[link]"}, base="",
    )  # fmt: skip
    url = at("reminder-cancel", opened, made.pk)
    assert client_of(mallory).post(url).status_code == 404
    assert Page(client_of(bob).post(url, follow=True)).one("status").says("is cancelled")
    assert Page(client_of(bob).post(url, follow=True)).one("alert").says("went out already")


def test_one_click_stops_the_mails_and_looking_does_not(
    bob: User, opened: Questionnaire, anna: Participant
) -> None:
    Participant.objects.update(language="es")
    send(bob, opened)
    stop = mail.outbox[0].extra_headers["List-Unsubscribe"].strip("<>")
    path = stop.removeprefix("https://hall.example")
    client = Client(enforce_csrf_checks=True)  # a mail program has no cookie
    assert Page(client.get(path + "?lang=es")).has("heading", "¿Quieres")
    anna.refresh_from_db()
    assert anna.unsubscribed_at is None
    assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    anna.refresh_from_db()
    assert anna.unsubscribed_at is not None
    with pytest.raises(QuestionnaireError, match="nobody to remind"):
        send(bob, opened, is_reminder=True)
    client.post(path, {"action": "again"})
    assert send(bob, opened, is_reminder=True) == 1
    forged = f"/q/stop/{anna.pk}~{'x' * 43}/"
    assert client.post(forged).status_code == 404


def test_links_of_mails_of_an_earlier_version_leave_the_database(
    bob: User, opened: Questionnaire, anna: Participant
) -> None:
    token = token_of(anna)
    said = f"Hello,\n\nhttps://old.example/q/{token}/\n\nOffice"
    for state in (Mail.SENT, Mail.WAITING):
        anna.mails.create(subject="S", text=said, state=state)
    editor = SimpleNamespace(connection=connection)
    import_module("webapp.surveys.migrations.0007_no_links_in_mails").take_out(apps, editor)
    assert not Mail.objects.filter(text__contains=anna.nonce).exists()
    assert {row.text for row in Mail.objects.all()} == {"Hello,\n\n[link]\n\nOffice"}
    mails_send()
    (message,) = mail.outbox
    assert f"https://old.example/q/{token.split('~')[0]}" in message.body
