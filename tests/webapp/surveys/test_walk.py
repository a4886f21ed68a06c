"""The way of a student: introduction, branches, required answers, review, receipt, files."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.earlier_versions import MigrateTo
from tests.webapp.encryption.test_encryption import database
from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.surveys.answer_files import path_of
from webapp.surveys.content import (
    Condition,
    Content,
    Kind,
    SectionContent,
    make_question,
)
from webapp.surveys.links import token_of
from webapp.surveys.models import AnswerFile, Participant, Questionnaire
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.invitations import mails_send
from webapp.surveys.services.questionnaires import questionnaire_open

PDF = b"%PDF-1.7 a letter of a doctor"


@pytest.fixture
def branching(bob: User) -> Questionnaire:
    """Pets (yes or no); which, shown after a yes; a required scale; a file; a text."""
    pets = make_question(Kind.YES_NO, name="Pets", text="Do you have a pet?")
    which = make_question(
        Kind.ONE, name="Which", text="Which pet?", answers=["Cat", "Dog"],
        shown_if=Condition(question=pets.key, answers=(1,)),
    )  # fmt: skip
    scale = make_question(
        Kind.SCALE, name="Quiet", text="I like it quiet.", low="Not at all", high="Completely",
        required=True,
    )  # fmt: skip
    letter = make_question(Kind.FILE, name="Letter", text="A letter of your doctor?")
    text = make_question(Kind.TEXT, name="More", text="Anything else?")
    content = Content(
        sections=(SectionContent(title="All", questions=(pets, which, scale, letter, text)),)
    )
    made = Questionnaire.objects.create(
        organisation=bob.organisation, title="Branches", content=content, introduction="Welcome."
    )
    questionnaire_open(user=bob, questionnaire=made, closes_at=timezone.now() + timedelta(days=3))
    return made


@pytest.fixture
def anna(branching: Questionnaire) -> Student:
    row = Participant.objects.create(questionnaire=branching, email="anna@x.example")
    return Student(branching, token=token_of(row))


def page(student: Student, step: object = "") -> Page:
    return Page(student.client.get(f"{student.url}?n={step}"))


def test_title_and_introduction_come_before_question_1(anna: Student) -> None:
    first = Page(anna.client.get(anna.url))
    assert first.has("heading", "Branches")
    assert first.says("Welcome.")
    assert "Do you have a pet?" not in first.source
    (step,) = first.element.xpath("//input[@name='n']")
    assert step.get("value") == "1"


def test_a_question_hangs_on_the_answer_before_it(anna: Student) -> None:
    assert page(anna, 1).says("question 1 of 4")
    assert anna.say(1, 0).url.endswith("?n=3")
    assert page(anna, 2).has("heading", "I like it quiet."), (
        "a question that is not asked is passed over"
    )
    assert anna.say(1, 1).url.endswith("?n=2")
    assert page(anna, 2).says("question 2 of 5")
    anna.say(2, 1)
    assert anna.say(3, 2, action="back").url.endswith("?n=2")


def test_an_answer_of_another_way_does_not_count(
    bob: User, branching: Questionnaire, client_of: Callable
) -> None:
    for k in range(2):
        one = Student(branching, f"N{k}")
        for number, answer in ((1, 1), (2, k), (3, 1), (1, 0) if k else (1, 1)):
            one.say(number, answer)
        one.client.post(one.url, {"action": "finish"})
    cohort = cohort_from_answers(user=bob, questionnaire=branching, name="C")
    names = [question["name"] for question in cohort.questions]
    which = names.index("Which")
    assert [s.answers[which] for s in cohort.students.all()] == [0, -1]
    file = client_of(bob).get(reverse("surveys:answers-file", args=[branching.pk, "csv"]))
    assert "Dog" not in file.content.decode()


def test_a_required_answer_is_asked_for_at_its_question_and_at_the_end(anna: Student) -> None:
    assert not page(anna, 3).has("button", "Rather not say")
    assert not page(anna, 3).says("Rather not say")
    for act in ("next", "skip"):
        refused = anna.say(3, action=act)
        assert refused.status_code == 422
        assert Page(refused, status=422).one("alert").says("This question needs an answer.")
    refused = anna.client.post(anna.url, {"action": "finish"})
    assert refused.status_code == 422
    text = Page(refused, status=422)
    assert text.one("alert").says("Some questions still need an answer.")
    assert text.text.count("Needs an answer") == 1
    assert text.one("link", "Change: I like it quiet.").address == "?n=3"
    anna.say(3, 4)
    assert anna.client.post(anna.url, {"action": "finish"}).url.endswith("?n=receipt")


def test_the_ends_of_a_scale_have_words(anna: Student) -> None:
    text = page(anna, 3)
    assert text.has("radio", "1 Not at all", exactly=True)
    assert text.has("radio", "5 Completely", exactly=True)


def test_rather_not_say_is_remembered_and_told_from_no_answer(anna: Student) -> None:
    anna.say(1, action="skip")
    assert list(anna.row.answers.values()) == [None]
    button = page(anna, 1).one("button", "✓ Rather not say")
    assert button.element.get("aria-pressed") == "true"
    anna.say(5)  # Next, with nothing typed
    button = page(anna, 5).one("button", "Rather not say", exactly=True)
    assert button.element.get("aria-pressed") == "false"
    review = page(anna, "review")
    assert len(review.every("definition", "Rather not say")) == 1
    assert len(review.every("definition", "Not answered")) == 2
    anna.say(1, 1)
    button = page(anna, 1).one("button", "Rather not say", exactly=True)
    assert button.element.get("aria-pressed") == "false"


def test_answers_are_reviewed_and_there_is_a_receipt_with_the_link(anna: Student) -> None:
    anna.say(1, 1)
    anna.say(2, 0)
    anna.say(3, 2)
    anna.say(5, "I am\nallergic to <cats>.")
    review = page(anna, "review")
    for words in ("Cat", "3 of 5 (5: Completely)", "allergic to <cats>."):
        assert review.says(words)
    done = Page(anna.client.post(anna.url, {"action": "finish"}, follow=True))
    assert done.has("heading", "Thank you. Your answers are in.")
    assert done.has("link", f"http://testserver/q/{token_of(anna.row).partition('~')[0]}")
    assert Page(anna.client.get(anna.url)).has("heading", "Thank you"), "it opens there from now on"
    assert page(anna, "review").has("button", "Keep these answers")


def test_the_link_is_mailed_to_whoever_asks_for_it(anna: Student, branching: Questionnaire) -> None:
    anna.client.get(f"{anna.url}?lang=es")
    said = anna.client.post(anna.url, {"action": "mail-link", "email": "evil@x.example"})
    assert Page(said).one("status").says("anna@x.example"), "to the address that is known"
    assert mails_send() == 1
    assert mail.outbox[0].to == ["anna@x.example"]
    assert "este es tu enlace personal" in mail.outbox[0].body
    by_code = Student(branching, "N7")
    wrong = by_code.client.post(by_code.url, {"action": "mail-link", "email": "nobody"})
    assert wrong.status_code == 422
    by_code.client.post(by_code.url, {"action": "mail-link", "email": "Ben@X.example"})
    assert mails_send() == 1
    assert mail.outbox[1].to == ["ben@x.example"]
    assert by_code.row.email == "", "an address that anybody may type proves nothing"
    for _ in range(4):
        last = by_code.client.post(by_code.url, {"action": "mail-link", "email": "b@x.example"})
        mails_send()
    assert Page(last, status=422).one("alert").says("Try again tomorrow.")


def test_who_was_invited_gets_the_link_by_the_code_page(
    anna: Student, branching: Questionnaire
) -> None:
    url = f"/q/code/{branching.code}/"
    known, unknown = (
        Client().post(url, {"action": "mail-link", "email": f"{name}@x.example"})
        for name in ("anna", "nobody")
    )
    assert mails_send() == 1
    texts = [answer.content.decode() for answer in (known, unknown)]
    assert texts[0].replace("anna@", "@") == texts[1].replace("nobody@", "@"), "nobody learns who"
    wrong = Client().post(url, {"action": "mail-link", "email": "anna"})
    assert wrong.status_code == 422
    assert Page(wrong, status=422).field("Your e-mail").value == "anna"


def send(student: Student, data: bytes, name: str = "letter.pdf") -> object:
    file = SimpleUploadedFile(name, data)
    return student.client.post(student.url, {"n": 4, "action": "next", "file": file})


def test_a_file_is_kept_encrypted_and_read_by_staff_only(
    anna: Student, branching: Questionnaire, bob: User, alice: User, mallory: User,
    client_of: Callable, settings: LazySettings, tmp_path: Path,
) -> None:  # fmt: skip
    assert send(anna, PDF, "../../etc/<b>.exe").url.endswith("?n=5")
    kept = AnswerFile.objects.get()
    assert (kept.name, kept.media_type) == ("<b>.pdf", "application/pdf")
    assert PDF not in path_of(kept).read_bytes()
    url = reverse("surveys:answers-sent-file", args=[branching.pk, anna.row.pk, kept.key])
    for person, status in ((alice, 403), (mallory, 404)):
        assert client_of(person).get(url).status_code == status
    answer = client_of(bob).get(url)
    assert answer.content == PDF
    assert answer["Content-Disposition"].startswith("attachment")
    assert Page(client_of(bob).get(
        reverse("surveys:texts", args=[branching.pk])
    )).has("link", "<b>.pdf")  # fmt: skip
    anna.say(4)  # Next without another file keeps it
    assert AnswerFile.objects.get() == kept
    send(anna, b"\x89PNG\r\n\x1a\nother")
    assert AnswerFile.objects.get().name == "letter.png"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "The file is empty."),
        (b"<html>", "Send a PDF or a picture"),
        (b"MZ\x90", "Send a PDF or a picture"),
        (b"%PDF-" + b"x" * 10_000_001, "Choose a file of 10 MB or less"),
    ],
)
def test_another_file_is_refused(anna: Student, data: bytes, sentence: str) -> None:
    answer = send(anna, data)
    assert answer.status_code == 422
    assert Page(answer, status=422).one("alert").says(sentence)
    assert not AnswerFile.objects.exists()


def test_a_file_goes_with_its_answer(
    anna: Student, django_capture_on_commit_callbacks: Callable
) -> None:
    send(anna, PDF)
    path = path_of(AnswerFile.objects.get())
    assert path.exists()
    with django_capture_on_commit_callbacks(execute=True):
        anna.client.post(anna.url, {"action": "withdraw", "sure": "yes"})
    assert not path.exists()


def test_a_preview_is_walked_and_keeps_nothing(
    bob: User, branching: Questionnaire, client_of: Callable
) -> None:
    client, url = client_of(bob), reverse("surveys:preview", args=[branching.pk])
    assert Page(client.get(url)).says("Welcome.")
    assert client.post(url, {"n": 1, "answer": "1", "action": "next"}).url.endswith("?n=2")
    assert Page(client.get(f"{url}?n=2")).says("question 2 of 5")
    assert client.post(url, {"n": 3, "action": "next"}).status_code == 422
    client.post(url, {"n": 3, "answer": "2", "action": "next"})
    review = client.post(url, {"n": 5, "answer": "Words", "action": "next"}, follow=True)
    assert "Words" in Page(review).said_of("Anything else?")
    done = Page(client.post(url, {"action": "finish"}, follow=True))
    assert done.has("heading", "Thank you. Your answers are in.")
    assert not Participant.objects.exists()
    client.get(f"{url}?again=1")
    assert Page(client.get(url)).says("Welcome.")
    for act in ("accept", "decline", "withdraw", "mail-link"):
        assert client.post(url, {"action": act, "sure": "yes"}).status_code < 400


def test_the_name_of_a_file_is_encrypted_and_in_no_audit_line(
    anna: Student, branching: Questionnaire, bob: User, client_of: Callable, settings: LazySettings
) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    send(anna, PDF, "wheelchair.pdf")
    assert b"wheelchair" not in database()
    kept = AnswerFile.objects.get()
    assert kept.name == "wheelchair.pdf"
    url = reverse("surveys:answers-sent-file", args=[branching.pk, anna.row.pk, kept.key])
    assert 'filename="wheelchair.pdf"' in client_of(bob).get(url)["Content-Disposition"]
    line = AuditLine.objects.get(verb="downloaded a student's file")
    assert line.details == {"person": anna.row.pk, "question": kept.key}


@pytest.mark.every_database
@pytest.mark.parametrize("is_keyed", [True, False], ids=["a key", "no key"])
def test_an_update_encrypts_the_names_of_files_that_were_sent_before(
    migrate_to: MigrateTo, settings: LazySettings, is_keyed: bool
) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()] if is_keyed else []
    before, after = ("surveys", "0007_no_links_in_mails"), ("surveys", "0008_seal_file_names")
    old = migrate_to(before, ("audit", "0002_of_installation"))
    organisation = old.get_model("accounts", "Organisation").objects.create(name="Northfield")
    asked = old.get_model("surveys", "Questionnaire").objects.create(
        organisation=organisation, title="Branches", content=Content()
    )
    person = old.get_model("surveys", "Participant").objects.create(questionnaire=asked)
    old.get_model("surveys", "AnswerFile").objects.create(
        participant=person, key="letter", name="wheelchair.pdf", size=len(PDF), file_key=""
    )
    write, verb = old.get_model("audit", "AuditLine").objects.create, "downloaded a student's file"
    write(organisation=organisation, verb=verb, details={"file": "wheelchair.pdf"})
    write(organisation=organisation, verb="uploaded to", details={"file": "leaves.zip"})
    for _ in range(2):  # once more after going back
        assert column() == "wheelchair.pdf"
        new = migrate_to(after)
        assert column().startswith("fernet:") == is_keyed
        assert new.get_model("surveys", "AnswerFile").objects.get().name == "wheelchair.pdf"
        lines = new.get_model("audit", "AuditLine").objects
        assert lines.get(verb=verb).details == {}
        assert lines.get(verb="uploaded to").details == {"file": "leaves.zip"}
        migrate_to(before)


def column() -> str:
    """Return the name of the only file as the database holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM surveys_answerfile")
        return str(cursor.fetchone()[0])
