"""Files of people to invite: the e-mail, the number and the name, and nothing else of a row."""

import codecs
from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.surveys.models import Questionnaire

ANNA = ("a@x.example", "N00101", "Anna Berg")
PLAIN = "Name,E-mail,Student number\nAnna Berg,a@x.example,N00101\n"


@pytest.fixture
def add(bob: User, opened: Questionnaire, client_of: Callable) -> Callable[[bytes], Page]:
    """A function that uploads a file of people and returns the page."""
    url = reverse("surveys:people-add", args=[opened.pk])

    def send(data: bytes) -> Page:
        fields = {"people": "", "file": SimpleUploadedFile("people.csv", data)}
        answer = client_of(bob).post(url, fields, follow=True)
        return Page(answer, status=answer.status_code)

    return send


def people_of(found: Questionnaire) -> list[tuple[str, str, str]]:
    return list(found.participants.values_list("email", "identifier", "name"))


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode(),
        codecs.BOM_UTF8 + PLAIN.encode(),
        PLAIN.encode("utf-16"),
        PLAIN.replace(",", ";").encode(),
        ("sep=;\n" + PLAIN.replace(",", ";")).replace("\n", "\r\n").encode(),
        b"Student number,Name,E-mail\r\nN00101,Anna Berg,a@x.example\r\n",
        b"Last name,First name,Email,Phone,Room\nBerg,Anna,a@x.example,+49 30 1234,R12\n",
        b"ResponseId,RecipientFirstName,RecipientLastName,RecipientEmail,ExternalReference,Sleep\n"
        b"R_1,Anna,Berg,a@x.example,N00101,10 pm\n",
        b"Record ID,Email,Bedtime,Age\n7,a@x.example,11 pm,19\n",
        b"E-mail,Parent e-mail,Name,Student ID\na@x.example,p@y.example,Anna Berg,N00101\n",
    ],
)
def test_only_the_columns_of_a_person_are_read(
    data: bytes, opened: Questionnaire, add: Callable[[bytes], Page]
) -> None:
    """A telephone number, an answer and the e-mail of a parent became part of an invitation."""
    assert add(data).one("status").says("1 added")
    ((mail, number, name),) = people_of(opened)
    assert mail == ANNA[0]
    assert number in ("", ANNA[1])
    assert (number == ANNA[1]) == (b"N00101" in data or b"\x00" in data)
    assert set(name.split()) in (set(), {"Anna", "Berg"})


def test_two_columns_of_e_mails_are_a_question(
    opened: Questionnaire, add: Callable[[bytes], Page]
) -> None:
    page = add(b"Name,E-mail 1,E-mail 2\nAnna Berg,a@x.example,b@y.example\n")
    assert page.says("Several columns of the file hold e-mails.")
    assert not people_of(opened)


@pytest.mark.parametrize(
    "data",
    [
        b"E-mail,Name\n",
        b"room,beds\nR1,2\n",
        b"en,es\nYes,Si\n",
        b"a,b\nu1,u2\n",
        b"\x89PNG\r\n\x1a\n" + bytes(99),
    ],
)
def test_another_file_adds_nobody(
    data: bytes, opened: Questionnaire, add: Callable[[bytes], Page]
) -> None:
    page = add(data)
    assert any(
        page.says(one) for one in ("Nobody was added.", "Give one e-mail a line.", "PNG image")
    )
    assert not people_of(opened)
