"""Addresses that came back: returned mails and delivery states count, other lists are questions."""

import re
import time
from collections.abc import Callable
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from openpyxl import Workbook

from tests.webapp.roles import Page, Part
from tests.webapp.surveys.test_builder import RETURNED, queue
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.surveys.bounces import returned_in
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.invitations import mails_queue
from webapp.surveys.services.questionnaires import questionnaire_create

SURVEY = "ResponseId,RecipientEmail,Status,Sleep\nR_1,a@x.example,IP Address,10 pm\n"
STATES = "Recipient;Status;Diagnostic\na@x.example;5.1.1;User unknown\nb@x.example;4.2.2;Full\n"


def of_file(data: str | bytes) -> dict[str, str]:
    return returned_in(data if isinstance(data, bytes) else data.encode(), is_file=True).addresses


def of_text(text: str) -> dict[str, str]:
    return returned_in(text.encode(), is_file=False).addresses


def test_mails_that_came_back_are_read() -> None:
    found = of_file(RETURNED + b"\n" + RETURNED.replace(b"gone@", b"left@"))
    assert set(found) == {"gone@x.example"}
    plain = RETURNED.replace(b"Original-Recipient: rfc822;Gone@X.example\n", b"")
    returned = returned_in(plain + b"\n" + plain.replace(b"gone@", b"left@"), is_file=True)
    assert set(returned.addresses) == {"gone@x.example", "left@x.example"}
    assert returned.addresses["gone@x.example"].startswith("550 5.1.1")
    assert returned.is_reported
    assert of_text("<A@x.example>, b@x.example;\r\nnothing") == dict.fromkeys(
        ("a@x.example", "b@x.example"), "Marked by staff"
    )
    assert of_file(b"\x00\xff") == {}


def test_a_mail_that_reports_no_failure_stops_nobody() -> None:
    """The sender of an out-of-office reply got no more mails."""
    reply = (
        b"From: Ann <ann@x.example>\r\nTo: housing@x.example\r\nSubject: Out of office\r\n"
        b"Date: Fri, 1 May 2026 08:00:00 +0000\r\n\r\nI am away.\r\n"
    )
    assert of_file(reply) == {}


def test_what_keeps_a_parser_busy_is_no_returned_mail() -> None:
    nested = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (k, k) for k in range(3_000)
    )
    for hostile in (nested, b"Content-Type: message/rfc822\n\n" * 3_000):
        assert of_file(hostile + b"message/delivery-status") == {}
    assert set(of_file(hostile + b"\nFrom x\n" + RETURNED)) == {"gone@x.example"}
    began = time.process_time()
    assert of_text("x" * 5_000_000 + " a@x.example " + "@" * 1_000_000) == {
        "a@x.example": "Marked by staff"
    }
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        STATES,
        "\ufeff" + STATES,
        STATES.replace("\n", "\r\n"),
        "sep=;\n" + STATES,
        STATES.replace(";", ","),
        "email\tevent\na@x.example\tbounced\nb@x.example\tdelivered\n",
        "email,bounce type\nA@x.example,Hard bounce\nb@x.example,Soft bounce\n",
        "sender,recipient,error\nhall@x.example,a@x.example,550 no such user\n"
        "hall@x.example,b@x.example,452 mailbox full\n",
        "email,reason\na@x.example,smtp; 550 5.1.1 unknown\n",
    ],
)
def test_a_table_of_delivery_states_is_read(text: str) -> None:
    for data in (text.encode(), text.encode("utf-16")):
        returned = returned_in(data, is_file=True)
        assert set(returned.addresses) == {"a@x.example"}
        assert returned.is_reported


@pytest.mark.parametrize(
    "text",
    [
        SURVEY,
        SURVEY.replace(",", ";"),
        "Name,E-mail\nAnna Berg,a@x.example\nBen Birch,b@x.example\n",
        "email,Status\na@x.example,in progress\nb@x.example,finished\n",
        "email,Which mattress type?\na@x.example,hard\nb@x.example,soft\n",
        "id,email,Area code\n1,a@x.example,512\n2,b@x.example,530\n",
    ],
)
def test_a_table_of_people_is_refused(text: str) -> None:
    for data in (text.encode(), text.encode("utf-16"), text.replace("\n", "\r\n").encode()):
        with pytest.raises(QuestionnaireError, match="no column says whether a mail came back"):
            of_file(data)


def test_a_workbook_of_people_is_refused() -> None:
    book = Workbook()
    for row in (["Name", "E-mail"], ["Anna", "a@x.example"]):
        book.active.append(row)
    book.save(data := BytesIO())
    with pytest.raises(QuestionnaireError, match="no column says"):
        of_file(data.getvalue())


def test_two_columns_of_addresses_are_refused() -> None:
    with pytest.raises(QuestionnaireError, match="Several columns of the file hold addresses"):
        of_file("one,two,status\na@x.example,b@x.example,5.1.1\n")


@pytest.mark.parametrize("data", [b"", b"email,status\n", "email,status\n".encode("utf-16")])
def test_a_file_without_addresses_marks_nobody(
    data: bytes, bob: User, opened: Questionnaire, client_of: Callable
) -> None:
    file = SimpleUploadedFile("back.csv", data)
    page = client_of(bob).post(reverse("surveys:bounces", args=[opened.pk]), {"file": file})
    assert page.status_code == 422
    assert not Participant.objects.exclude(bounced_at=None).exists()


def a_list(client: Client, url: str, **fields: object) -> Page:
    answer = client.post(url, fields, follow=True)
    return Page(answer, status=answer.status_code)


def test_a_list_of_addresses_is_a_question(
    bob: User, mallory: User, opened: Questionnaire, client_of: Callable
) -> None:
    for name in ("gone", "left", "here"):
        queue(bob, opened, f"{name}@x.example")
    url = reverse("surveys:bounces", args=[opened.pk])
    client, marked = client_of(bob), Participant.objects.exclude(bounced_at=None)
    assert client_of(mallory).post(url, {"people": "gone@x.example"}).status_code == 404
    file = SimpleUploadedFile("list.csv", b"e-mail\ngone@x.example\nleft@x.example\nz@x.example\n")
    page = a_list(client, url, file=file)
    question = page.field("Yes, all 2 addresses came back").description
    assert "These 2 addresses get no mail any more. Are they all returned?" in question
    assert not marked.exists()
    shown = "\n".join(("gone@x.example", "left@x.example", "z@x.example"))
    assert shown in [Part(one).value for one in page.element.iter("textarea")]
    assert page.element.xpath("//input[@name='asked']/@value") == ["2"]
    more = f"{shown}\nhere@x.example"
    page = a_list(client, url, people=more, asked=2, is_confirmed="on")
    question = page.field("Yes, all 3 addresses came back").description
    assert "These 3 addresses get no mail any more." in question, "a changed list is a new question"
    assert not marked.exists()
    page = a_list(client, url, people=shown, asked=2, is_confirmed="on")
    assert page.one("status").says("2 of 3 addresses take part here. They get no more mails.")
    assert set(marked.values_list("email", flat=True)) == {"gone@x.example", "left@x.example"}
    undo = page.one("status").one("form").address
    assert client_of(mallory).post(undo).status_code == 404
    assert marked.count() == 2
    page = Page(client.post(undo, follow=True))
    assert page.one("status").says("2 addresses get mails again.")
    assert not marked.exists()
    assert AuditLine.objects.filter(verb="writes again to addresses").count() == 1
    assert Page(client.post(undo, follow=True)).one("alert").says("get mails again already")
    far = reverse("surveys:bounces-undo", args=[opened.pk, 10**30])
    assert client.post(far).status_code == 404


def test_undo_leaves_people_of_other_organisations_alone(
    bob: User, mallory: User, opened: Questionnaire, client_of: Callable
) -> None:
    queue(bob, opened, "gone@x.example")
    answer = client_of(bob).post(
        reverse("surveys:bounces", args=[opened.pk]),
        {"file": SimpleUploadedFile("back.mbox", RETURNED)},
        follow=True,
    )
    undo = re.search(r"/questionnaires/[^\"]+/bounces/(\d+)/undo/", answer.content.decode())
    theirs = questionnaire_create(user=mallory, title="Other", form="housing")
    address = reverse("surveys:bounces-undo", args=[theirs.pk, int(undo[1])])
    page = Page(client_of(mallory).post(address, follow=True))
    assert page.one("alert").says("get mails again already")
    assert Participant.objects.get(email="gone@x.example").bounced_at is not None


def test_returned_mails_are_marked_at_once(
    bob: User, opened: Questionnaire, client_of: Callable
) -> None:
    queue(bob, opened, "gone@x.example")
    url = reverse("surveys:bounces", args=[opened.pk])
    file = SimpleUploadedFile("back.mbox", RETURNED)
    assert (
        a_list(client_of(bob), url, file=file).one("status").says("1 of 1 addresses take part here")
    )
    with pytest.raises(QuestionnaireError, match="nobody"):
        mails_queue(
            user=bob, questionnaire=opened, base="", is_reminder=True, texts={"en": "[link]"}
        )
