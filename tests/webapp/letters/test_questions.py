"""Asking whom a request means: one mail to who asked, never twice, nothing of anybody else."""

from collections.abc import Callable

import pytest
from django.core import mail
from django.test import Client

from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_refused
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement, RoommateRequest
from webapp.housing.services.requests import request_settle
from webapp.letters.errors import LetterError
from webapp.letters.models import RequestQuestion
from webapp.letters.services.questions import Wording, questions_ask, questions_send

ClientOf = Callable[[User], Client]


@pytest.fixture
def cohort(placement: Placement) -> Cohort:
    return placement.cohort


def ask_for(cohort: Cohort, number: int, written: str) -> RoommateRequest:
    student = cohort.students.get(number=number)
    return RoommateRequest.objects.create(
        cohort=cohort, student=student, written=written, source="list.csv"
    )


def test_who_asked_gets_one_mail_that_names_nobody_else(bob: User, cohort: Cohort) -> None:
    request = ask_for(cohort, 1001, "Ben B\nBcc: x@y.example [name]")
    wording = Wording(subject="Who is [written]?", reply_to="housing@uni.example")
    assert questions_ask(user=bob, cohort=cohort, wording=wording, requests=[request.pk]) == 1
    question = RequestQuestion.objects.get()
    assert "Ben B" not in question.subject + question.text  # kept with its field only
    assert questions_send() == 1
    (sent,) = mail.outbox
    assert (sent.to, sent.cc, sent.bcc) == (["anna@uni.example"], [], [])
    assert sent.reply_to == ["housing@uni.example"]
    assert sent.subject == "Who is Ben B Bcc: x@y.example [name]?"
    words = sent.subject + sent.body
    for other in cohort.students.exclude(number=1001):
        assert other.email not in words
        assert other.name not in words
        assert other.original_id not in words
        assert other.label not in words
    assert questions_send() == 0


def test_nobody_is_asked_twice_but_on_purpose(bob: User, cohort: Cohort) -> None:
    requests = [ask_for(cohort, 1001, "Ben B").pk, ask_for(cohort, 1002, "Cleo").pk]
    options = {"user": bob, "cohort": cohort, "wording": Wording()}
    assert questions_ask(requests=requests[:1], **options) == 1
    assert questions_ask(requests=requests, **options) == 1  # the second alone
    with pytest.raises(LetterError, match="Nobody was asked twice"):
        questions_ask(requests=requests, **options)
    with pytest.raises(LetterError, match="Nobody was asked twice"):  # still on its way
        questions_ask(requests=requests, seen=1, **options)
    assert questions_send() == 2
    assert questions_ask(requests=requests[:1], seen=1, **options) == 1
    with pytest.raises(LetterError, match="Nobody was asked twice"):  # another page saw one
        questions_ask(requests=requests[:1], seen=1, **options)
    assert questions_send() == 1
    assert RequestQuestion.objects.get(request=requests[0]).times == 2
    assert AuditLine.objects.filter(verb="asked whom requests mean").count() == 3


def test_what_was_settled_meanwhile_is_not_sent(bob: User, cohort: Cohort) -> None:
    request = ask_for(cohort, 1001, "Ben B")
    options = {"user": bob, "cohort": cohort, "wording": Wording()}
    questions_ask(requests=[request.pk], **options)
    request_settle(user=bob, cohort=cohort, request_id=request.pk, answer="S-1002")
    assert questions_send() == 0
    assert not mail.outbox
    assert "settled before" in RequestQuestion.objects.get().error
    with pytest.raises(LetterError, match="settled meanwhile"):
        questions_ask(requests=[request.pk], seen=9, **options)


@pytest.mark.parametrize(
    ("wording", "words"),
    [
        (Wording(subject=" "), "needs a subject"),
        (Wording(text="Hi [nme]"), r"\[nme\] is no field. Did you mean \[name\]"),
        (Wording(text="Your room is [room]"), "is no field"),
        (Wording(reply_to="nobody"), "answers go to"),
        (Wording(text="x" * 5_001), "at most"),
    ],
)
def test_a_mail_that_cannot_be_sent_so_is_refused(
    bob: User, cohort: Cohort, wording: Wording, words: str
) -> None:
    request = ask_for(cohort, 1001, "Ben B")
    with pytest.raises(LetterError, match=words):
        questions_ask(user=bob, cohort=cohort, wording=wording, requests=[request.pk])
    assert not RequestQuestion.objects.exists()


def test_staff_preview_and_ask_from_the_page(
    bob: User, cohort: Cohort, client_of: ClientOf
) -> None:
    request, other = ask_for(cohort, 1001, "my cousin"), ask_for(cohort, 1003, "camp")
    cohort.students.filter(number=1003).update(email="")
    client, address = client_of(bob), f"/cohorts/{cohort.pk}/requests/ask/"
    page = Page(client.get(f"/cohorts/{cohort.pk}/requests/"))
    ask = page.one("row", "“my cousin”").one("link", "Ask Anna Ash")
    assert ask.address == f"{address}?request={request.pk}"
    page = Page(client.get(address))
    asked = page.one("article", "Mail to")
    assert asked.said_of("To") == "anna@uni.example"
    assert asked.says("you asked to live with “my cousin”")
    assert page.has("paragraph", "1 student has no e-mail: S-1003")
    sent = {"subject": "Who is [written]?", "text": "Tell us, [name].", "request": request.pk}
    page = Page(client.post(address, sent | {"act": "preview"}))
    assert page.one("article", "Mail to").said_of("Subject") == "Who is my cousin?"
    assert not RequestQuestion.objects.exists()
    wrong = sent | {"text": "[roommates]"}
    check_refused(client.post(f"{address}send/", wrong), wrong, field="text", error="is no field.")
    page = Page(client.post(address, sent | {"act": "send"}, follow=True))
    assert page.has("status", "1 student is asked by e-mail.")
    assert page.one("row", "“my cousin”").has("cell", "mail is on its way")
    page = Page(client.post(f"{address}send/", sent), status=422)
    assert page.has("alert", "Nobody was asked twice")
    page = Page(client.get(f"{address}?request={other.pk}"))
    assert page.has("paragraph", "None of these students has an e-mail")


def test_viewers_and_other_organisations_ask_nobody(
    alice: User, mallory: User, cohort: Cohort, client_of: ClientOf
) -> None:
    address = f"/cohorts/{cohort.pk}/requests/ask/"
    assert client_of(alice).get(address).status_code == 403
    assert client_of(alice).post(address, {"act": "send"}).status_code == 403
    assert client_of(mallory).get(address).status_code == 404
    assert client_of(mallory).post(address, {"act": "send"}).status_code == 404
