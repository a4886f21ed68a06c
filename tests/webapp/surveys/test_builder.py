"""Sections, places and Undo of the builder; zones, bounces, links that expire, the forecast."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from smtplib import SMTPRecipientsRefused

import pytest
from django.core import signing
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, User
from webapp.accounts.services import AccountError, organisation_rename
from webapp.surveys.content import Content, QuestionnaireError
from webapp.surveys.links import VALID_FOR, token_of
from webapp.surveys.models import Mail, Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.selectors.progress import progress_of
from webapp.surveys.services.invitations import invitations_add, mails_queue, mails_send
from webapp.surveys.services.questionnaires import (
    change_undo,
    question_edit,
    question_place,
    question_remove,
    section_add,
    section_remove,
    section_rename,
)


def titles(questionnaire: Questionnaire) -> list[str]:
    return [section.title for section in questionnaire.content.sections]


def names(questionnaire: Questionnaire, section: int) -> list[str]:
    return [q.name for q in questionnaire.content.sections[section].questions]


def test_sections_are_added_renamed_and_removed(bob: User, draft: Questionnaire) -> None:
    common = {"user": bob, "questionnaire": draft}
    section_add(**common, version=draft.version, title="  Sleep  ")
    assert titles(draft)[-1] == "Sleep"
    section_rename(**common, version=draft.version, section=0, title="Days")
    assert titles(draft)[0] == "Days"
    for title in ("", "days", "x" * 61):
        with pytest.raises(QuestionnaireError):
            section_add(**common, version=draft.version, title=title)
    with pytest.raises(QuestionnaireError, match="Move its questions"):
        section_remove(**common, version=draft.version, section=0)
    section_remove(**common, version=draft.version, section=5)
    assert "Sleep" not in titles(draft)


def test_a_question_goes_to_any_place(bob: User, draft: Questionnaire) -> None:
    key = questions_of(draft.content)[0].key
    common = {"user": bob, "questionnaire": draft, "key": key}
    question_place(**common, version=draft.version, section=1, place=2)
    assert names(draft, 1)[2] == "Wake-up time"
    question_place(**common, version=draft.version, section=0, place=999)
    assert names(draft, 0)[-1] == "Wake-up time"
    with pytest.raises(QuestionnaireError, match="section was removed"):
        question_place(**common, version=draft.version, section=9, place=0)
    assert len(questions_of(draft.content)) == 14


def test_the_last_change_is_taken_back_once(
    bob: User, draft: Questionnaire, client_of: Callable
) -> None:
    key = questions_of(draft.content)[3].key
    question_remove(user=bob, questionnaire=draft, version=draft.version, key=key)
    assert len(questions_of(draft.content)) == 13
    with pytest.raises(QuestionnaireError, match="Somebody else"):
        change_undo(user=bob, questionnaire=draft, version=draft.version - 1)
    client = client_of(bob)
    removed = questions_of(draft.content)[0].key
    remove = reverse("surveys:question-remove", args=[draft.pk, removed])
    page = Page(client.post(remove, {"version": draft.version}, follow=True))
    assert page.one("status").says("The questions were changed.")
    draft.refresh_from_db()
    undo = reverse("surveys:undo", args=[draft.pk]) + f"?version={draft.version}"
    assert page.one("status").one("form").address == undo
    client.post(undo)
    draft.refresh_from_db()
    assert questions_of(draft.content)[0].key == removed
    with pytest.raises(QuestionnaireError, match="nothing to undo"):
        change_undo(user=bob, questionnaire=draft, version=draft.version)


def test_undo_never_changes_what_people_answered(bob: User, opened: Questionnaire) -> None:
    first = questions_of(opened.content)[0]
    question_edit(
        user=bob, questionnaire=opened, version=opened.version, key=first.key, name=first.name,
        text="Reworded?", hint="", reason="", answers=[],
    )  # fmt: skip
    change_undo(user=bob, questionnaire=opened, version=opened.version)
    assert questions_of(opened.content)[0].text == first.text
    fewer = Content(sections=opened.content.sections[:1])
    Questionnaire.objects.update(before=fewer)
    opened.refresh_from_db()
    with pytest.raises(QuestionnaireError, match="fixed once it was open"):
        change_undo(user=bob, questionnaire=opened, version=opened.version)


def test_it_closes_at_the_midnight_of_the_organisation(
    bob: User, carol: User, client_of: Callable, draft: Questionnaire, student: Callable
) -> None:
    organisation_rename(by=carol, name="Northfield", department="", time_zone="Pacific/Auckland")
    day = timezone.now().date() + timedelta(days=30)
    url = reverse("surveys:open", args=[draft.pk])
    client_of(bob).post(url, {"closes_on": day.isoformat()})
    draft.refresh_from_db()
    zone = Organisation.objects.get(pk=bob.organisation_id).zone
    local = draft.closes_at.astimezone(zone)
    assert (local.date(), local.hour, local.minute) == (day, 23, 59)
    assert draft.closes_at.astimezone(UTC).hour in (10, 11)
    page = Page(client_of(bob).get(reverse("surveys:questionnaire", args=[draft.pk])))
    assert page.says("23:59")
    assert "Pacific/Auckland" in page.field("Last day").description
    last = Student(draft, "N1")
    said = Page(last.client.get(f"{last.url}?n=15"))
    assert said.one("group", "Stop here and come back later").says(f"until {day.day} ")
    assert timezone.get_current_timezone_name() == "UTC", "nothing stays behind a request"


@pytest.mark.parametrize("zone", ["Nowhere/Town", "../etc/passwd", "UTC\x00", "x" * 500])
def test_a_zone_that_is_none_is_refused(carol: User, zone: str) -> None:
    with pytest.raises(AccountError, match="time zone"):
        organisation_rename(by=carol, name="N", department="", time_zone=zone)


def queue(bob: User, opened: Questionnaire, *addresses: str) -> None:
    invitations_add(user=bob, questionnaire=opened, text="\n".join(addresses))
    mails_queue(user=bob, questionnaire=opened, base="", is_reminder=False, texts={"en": "[link]"})


def test_an_address_that_the_server_refuses_is_listed_and_the_rest_goes_out(
    bob: User, opened: Questionnaire, monkeypatch: pytest.MonkeyPatch, client_of: Callable
) -> None:
    queue(bob, opened, "a@x.example", "gone@x.example", "slow@x.example", "z@x.example")
    sent = []

    def send(message: object, *args: object, **kwargs: object) -> int:
        (address,) = message.to
        if address.startswith("gone"):
            raise SMTPRecipientsRefused({address: (550, b"5.1.1 User unknown")})
        if address.startswith("slow"):
            raise SMTPRecipientsRefused({address: (451, b"4.7.1 Greylisted")})
        sent.append(address)
        return 1

    monkeypatch.setattr("django.core.mail.EmailMessage.send", send)
    for _ in range(3):
        mails_send()
    assert sent == ["a@x.example", "z@x.example"]
    gone = Participant.objects.get(email="gone@x.example")
    assert gone.bounce == "550 5.1.1 User unknown"
    assert gone.mails.get().state == Mail.FAILED
    assert Participant.objects.get(email="slow@x.example").bounced_at is None
    url = reverse("surveys:people-add", args=[opened.pk])
    page = client_of(bob).post(url, {"people": "b@x.example"}, follow=True)
    assert Page(page).has("listitem", "gone@x.example: 550 5.1.1 User unknown")
    client_of(bob).post(reverse("surveys:write-again", args=[opened.pk, gone.pk]))
    gone.refresh_from_db()
    assert gone.bounced_at is None


RETURNED = b"""From MAILER-DAEMON Sun Nov 22 09:00:00 2026
From: MAILER-DAEMON@mx.example
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

I'm sorry. Write to postmaster@mx.example.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Original-Recipient: rfc822;Gone@X.example
Final-Recipient: rfc822;gone@x.example
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 <gone@x.example>: no such
    user here

Final-Recipient: rfc822; later@x.example
Action: delayed
Status: 4.4.1

--b--
"""


def test_links_expire(invited: Student, monkeypatch: pytest.MonkeyPatch) -> None:
    now = signing.time.time()
    assert invited.client.get(invited.url).status_code == 200
    monkeypatch.setattr(
        "django.core.signing.time.time", lambda: now + VALID_FOR.total_seconds() + 1
    )
    assert invited.client.get(invited.url).status_code == 404
    fresh = Student(invited.questionnaire, token=token_of(invited.row))
    assert fresh.client.get(fresh.url).status_code == 200


def test_the_forecast_goes_on_as_the_last_three_days(opened: Questionnaire) -> None:
    today = timezone.localtime().replace(hour=12)
    done = [today - timedelta(days=d) for d in (6, 5, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1)]
    for k in range(60):
        Participant.objects.create(
            questionnaire=opened, identifier=str(k), finished_at=done[k] if k < 12 else None
        )
    days_left = (timezone.localtime(opened.closes_at).date() - today.date()).days
    assert progress_of(opened).forecast == 12 + 3 * days_left
    Questionnaire.objects.update(closes_at=datetime(2020, 1, 1, tzinfo=UTC))
    opened.refresh_from_db()
    assert progress_of(opened).forecast is None
