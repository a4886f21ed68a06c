"""Questionnaires through the interface for programs: people, mails, bounces, cohorts."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from tests.webapp.segmentation.conftest import upload
from tests.webapp.surveys.conftest import Student
from tests.webapp.surveys.test_builder import RETURNED
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.invitations import mails_send
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open

AWAY = b"""From: gone@x.example
To: housing@hall.example
Subject: Out of office

I am away. Write to here@x.example.
"""


@pytest.fixture
def opened(bob) -> Questionnaire:
    made = questionnaire_create(user=bob, title="Housing 2027", form="housing")
    closes_at = timezone.now() + timedelta(days=9)
    questionnaire_open(user=bob, questionnaire=made, closes_at=closes_at)
    return made


def test_from_a_list_of_people_to_a_cohort(program_of, bob, opened) -> None:
    program, at = program_of(bob), f"/questionnaires/{opened.pk}"
    people = [{"email": f"n{k}@x.example", "number": f"N{k}"} for k in range(3)]
    added = program.post(f"{at}/people", {"people": people})
    assert added.data["sentence"] == "3 added, 0 were there already."
    wrong = program.post(f"{at}/people", {"people": [{"email": "nobody"}]})
    assert (wrong.status_code, "no e-mail" in wrong.data["detail"]) == (422, True)
    sent = program.post(f"{at}/mails", {"text": "Hello [link]"})
    assert (sent.status_code, mails_send()) == (202, 3)
    assert "http://testserver/q/" in mail.outbox[0].body
    for row in Participant.objects.all()[:2]:
        Student(opened, token=token_of(row)).say_all()
    assert program.post(f"{at}/mails", {"text": "[link]", "is_reminder": True}).status_code == 202
    now = program.get(at).data
    assert (now["people"], now["finished"], now["not_opened"]) == (3, 2, 1)
    assert program.get("/questionnaires").data["items"] == [now]
    made = program.post(f"{at}/cohorts", {"name": "First"})
    assert (made.status_code, made.data["students"]) == (201, 2)
    assert program.post(f"{at}/cohorts", {"name": "Second"}).status_code == 422
    assert Cohort.objects.count() == 1


def test_what_comes_back_is_handed_in(program_of, bob, mallory, opened) -> None:
    """By a mail service's list or by the mails themselves; never what is merely mailed back."""
    for name in ("gone", "left", "here"):
        Participant.objects.create(questionnaire=opened, email=f"{name}@x.example")
    listed = {"addresses": [{"email": "LEFT@x.example", "reason": "550 no such user"}]}
    for person, count in ((mallory, 0), (bob, 1)):
        done = program_of(person).post("/bounces", listed)
        assert done.data["sentence"].startswith(f"{count} p")
    program = program_of(bob)
    assert program.post("/bounces/mails", file=upload("m.eml", AWAY)).data["sentence"][0] == "0"
    assert program.post("/bounces/mails", file=upload("m.eml", RETURNED)).data["sentence"][0] == "1"
    assert program.post("/bounces/mails").status_code == 400
    bounced = Participant.objects.exclude(bounced_at=None)
    assert dict(bounced.values_list("email", "bounce")) == {
        "left@x.example": "550 no such user",
        "gone@x.example": "550 5.1.1 <gone@x.example>: no such user here",
    }
    assert program.get(f"/questionnaires/{opened.pk}").data["bounced"] == 2
    assert AuditLine.objects.filter(verb="noted bounces", user=bob).count() == 2
