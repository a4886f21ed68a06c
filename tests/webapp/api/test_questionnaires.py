"""Questionnaires through the interface for programs: people, mails, bounces, cohorts."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from tests.webapp.factories.images import upload
from tests.webapp.factories.questionnaires import Student
from tests.webapp.surveys.test_builder import RETURNED
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
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


def test_programs_of_staff_read_and_handle_texts(program_of, alice, bob) -> None:
    asked = questionnaire_create(user=bob, title="Own", form="own")
    questionnaire_open(user=bob, questionnaire=asked, closes_at=timezone.now() + timedelta(days=1))
    number = next(q.number for q in questions_of(asked.content) if q.is_written)
    for k, text in enumerate(("I need a ramp.", "=1+1")):
        one = Student(asked, f"N{k}")
        one.say_all(k)
        one.say(number, text)
    program, url = program_of(bob), f"/questionnaires/{asked.pk}"
    found = program.get(f"{url}/texts").data
    assert (found["total"], [text["text"] for text in found["items"]]) == (
        2,
        ["=1+1", "I need a ramp."],
    )
    people = program.get(f"{url}/answers?q=RAMP").data
    assert people["total"] == 1
    said = {answer["question"]: answer["answer"] for answer in people["items"][0]["answers"]}
    assert said["Anything else"] == "I need a ramp."
    at = f"{url}/texts/{found['items'][1]['id']}"
    assert program.post(f"{at}/need", {"need": "ramp"}).status_code == 200
    assert program.get(f"{url}/texts").data["total"] == 1
    assert program.get(f"{url}/texts?show=handled").data["items"][0]["need"] == "ramp"
    assert program.post(f"{at}/handled", {"is_handled": False}).status_code == 200
    assert program.post(f"{at}/need", {"need": "a, b"}).status_code == 422
    for path in ("texts", "answers"):
        assert program_of(alice).get(f"{url}/{path}").status_code == 403


def test_programs_of_staff_compare_answers_under_one_number_and_decide(
    program_of, bob, opened
) -> None:
    first, second = Student(opened, "N00777"), Student(opened, "n00777")
    for k, one in enumerate((first, second, Student(opened, "N1"), Student(opened, "N2"))):
        one.say_all(k)
    program, url = program_of(bob), f"/questionnaires/{opened.pk}"
    found = program.get(f"{url}/clashes").data
    (clash,) = found["items"]
    keys = [first.row.pk, second.row.pk]
    assert (clash["number"], clash["is_open"], clash["is_in_cohort"]) == ("N00777", True, False)
    assert [one["id"] for one in clash["sets"]] == keys, "both are kept, the first one first"
    assert [(one["counts"], one["came_by"]) for one in clash["sets"]] == [(None, "code")] * 2
    said = [[answer["answer"] for answer in one["answers"]] for one in clash["sets"]]
    assert sum(a != b for a, b in zip(*said, strict=True)) == clash["different"] > 0
    listed = program.get(f"{url}/answers?q=00777").data["items"]
    assert [one["id"] for one in listed] == keys
    assert program.post(f"{url}/cohorts", {"name": "All"}).data["students"] == 2

    for wrong in ({}, {"id": keys[0], "which": "first"}, {"which": "best"}):
        assert program.post(f"{url}/clashes", wrong).status_code == 422
    assert program.post(f"{url}/clashes", {"id": 10**6}).status_code == 422
    assert program.post(f"{url}/clashes", {"id": keys[0]}).data == {"set_aside": [keys[1]]}
    assert program.get(f"{url}/clashes").data["total"] == 0
    (clash,) = program.get(f"{url}/clashes?show=all").data["items"]
    assert [one["counts"] for one in clash["sets"]] == [True, False]
    assert [one["set_aside_by"] for one in clash["sets"]] == ["", "bob"]
    assert program.post(f"{url}/clashes/restored", {"ids": [keys[1]]}).status_code == 200
    assert program.post(f"{url}/clashes/restored", {"ids": [keys[1]]}).status_code == 422
    assert program.get(f"{url}/clashes").data["total"] == 1
    assert program.post(f"{url}/clashes", {"which": "latest"}).data == {"set_aside": [keys[0]]}
    program.post(f"{url}/clashes/restored", {"ids": [keys[0]]})
    at = f"{url}/answers/{keys[1]}/number"
    assert program.post(at, {"number": "N00777"}).status_code == 422
    assert program.post(at, {"number": "N00778"}).status_code == 200
    assert program.get(f"{url}/clashes?show=all").data["total"] == 0
    assert {one.row.identifier for one in (first, second)} == {"N00777", "N00778"}
    verbs = set(AuditLine.objects.filter(target_id=str(opened.pk)).values_list("verb", flat=True))
    assert verbs >= {"compared answers", "set answers aside", "corrected a student number"}


def test_who_sees_and_decides_between_answers_under_one_number(
    program_of, alice, bob, mallory, opened
) -> None:
    """Neither viewers, nor another organisation, nor a token that only reads may decide."""
    first, second = Student(opened, "N1"), Student(opened, "N1")
    for k, one in enumerate((first, second)):
        one.say_all(k)
    url = f"/questionnaires/{opened.pk}"
    aside = {"ids": [second.row.pk]}
    acts = {
        f"{url}/clashes": {"id": first.row.pk},
        f"{url}/clashes/restored": aside,
        f"{url}/answers/{second.row.pk}/number": {"number": "N2"},
    }
    reader = program_of(bob, may_change=False)
    assert reader.get(f"{url}/clashes").data["total"] == 1
    for program, status in ((program_of(alice), 403), (program_of(mallory), 404), (reader, 403)):
        if program is not reader:
            assert program.get(f"{url}/clashes").status_code == status
        for path, body in acts.items():
            assert program.post(path, body).status_code == status
    theirs = questionnaire_create(user=mallory, title="Theirs", form="own")
    for path, body in acts.items():  # their questionnaire, our people
        answer = program_of(mallory).post(path.replace(str(opened.pk), str(theirs.pk)), body)
        assert answer.status_code in (404, 422)
    assert {one.row.identifier for one in (first, second)} == {"N1"}
    assert program_of(bob).get(f"{url}/clashes").data["items"][0]["is_open"]
