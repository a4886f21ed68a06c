"""The student's page: no account, saved as they go, and nothing for who has no link."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from tests.webapp.surveys.conftest import weight_of
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.surveys import limits
from webapp.surveys.models import Participant, Questionnaire, new_nonce
from webapp.surveys.services.invitations import link_renew


def text_of(answer: object) -> Page:
    return Page(answer, status=answer.status_code)


def test_answers_are_kept_one_by_one(student: Callable) -> None:
    anna = student("N001")
    start = text_of(anna.client.get(anna.url))
    assert start.has("heading", "Housing 2027")
    assert start.says("Your answers help us")
    assert start.says("14 questions")
    first = text_of(anna.client.get(f"{anna.url}?n=1"))
    assert first.says("Your days, question 1 of 14")
    assert first.has("button", "Who sees this")
    assert anna.say(1, 2).url.endswith("?n=2")
    anna.say(2, action="skip")
    keys = list(anna.row.answers)
    assert list(anna.row.answers.values()) == [2, None]
    again = Client()  # another phone, the same link: it goes on where they stopped
    assert text_of(again.get(anna.link, follow=True)).says("question 3 of 14")
    chosen = [one for one in text_of(again.get(f"{anna.url}?n=1")).every("radio") if one.is_checked]
    assert [one.value for one in chosen] == ["2"]
    anna.say(1, 0)
    assert anna.row.answers[keys[0]] == 0


def test_finishing_names_what_is_blank(student: Callable) -> None:
    anna = student()
    anna.say(1, 1)
    last = text_of(anna.client.get(f"{anna.url}?n=15"))
    assert len([one for one in last.every("link") if one.address.startswith("?n=")]) >= 13
    anna.client.post(anna.url, {"action": "finish"})
    assert anna.row.finished_at is not None
    assert text_of(anna.client.get(f"{anna.url}?n=15")).has("heading", "Your answers are in")


@pytest.mark.parametrize(
    "answer", ["9", "-1", "x", "²", "9" * 5000, "0" * 5000, "00019999", "٣", "\x00"]
)
def test_what_is_no_answer_is_not_kept(student: Callable, answer: str) -> None:
    anna = student()
    assert anna.say(1, answer).status_code in (400, 422)
    assert anna.row.answers == {}


def test_own_answers_can_be_deleted(student: Callable) -> None:
    anna = student()
    anna.say(1, 1)
    assert anna.client.post(anna.url, {"action": "withdraw"}).status_code == 302
    assert Participant.objects.count() == 1  # not without being sure
    done = anna.client.post(anna.url, {"action": "withdraw", "sure": "yes"})
    assert text_of(done).has("heading", "Your answers were deleted.")
    assert not Participant.objects.exists()
    line = AuditLine.objects.get(verb="withdrew")
    assert (line.username, line.details) == ("system", {"was_in_a_cohort": False})
    assert anna.client.get(anna.url).status_code == 404


def test_what_is_wrong_is_said_in_their_language(student: Callable) -> None:
    anna = student()
    anna.client.get(f"{anna.url}?lang=es")
    assert text_of(anna.say(1, 9)).one("alert").says("Elige una de las respuestas.")


def test_forged_and_revoked_links_show_nothing(
    bob: User, opened: Questionnaire, invited: Student
) -> None:
    good = invited.link
    assert invited.client.get(good).url == invited.url
    key = invited.row.pk
    for bad in (
        f"/q/{key}.{invited.row.nonce}/",
        f"/q/{key}.{invited.row.nonce}~forged/",
        good.replace(f"/{key}.", f"/{key + 1}."),
        good[:-3] + "xx/",
    ):
        answer = invited.client.get(bad)
        assert answer.status_code == 404
        assert text_of(answer).has("heading", "not valid")
        assert opened.title not in text_of(answer).source
    link_renew(user=bob, questionnaire=opened, person=key)
    assert invited.client.get(good).status_code == 404
    assert invited.client.get(invited.url).status_code == 404
    assert invited.client.post(good, {"n": 1, "answer": "1"}).status_code == 404


def test_after_closing_nothing_is_shown_or_kept(opened: Questionnaire, student: Callable) -> None:
    anna = student()
    anna.say(1, 1)
    Questionnaire.objects.update(closes_at=timezone.now() - timedelta(seconds=1))
    for answer in (anna.client.get(anna.url), anna.say(2, 1)):
        assert answer.status_code == 410
        assert text_of(answer).has("heading", "This questionnaire is closed.")
    assert len(anna.row.answers) == 1
    assert anna.client.get(f"/q/code/{opened.code}/").status_code == 410


def test_before_opening_the_code_tells_nothing(draft: Questionnaire) -> None:
    answer = Client().get(f"/q/code/{draft.code}/")
    assert answer.status_code == 404
    assert draft.title not in text_of(answer).source


def test_wrong_codes_end_and_never_stop_a_right_one(
    opened: Questionnaire, invited: Student
) -> None:
    """A whole campus has one address, and somebody there may want to shut it out."""
    client = Client()
    for _ in range(limits.WRONG_CODES):
        assert client.get("/q/code/WRONG234/").status_code == 404
    assert client.get("/q/code/WRONG234/").status_code == 429
    assert client.get("/q/1.wrong~wrong/").status_code == 429
    assert client.get(f"/q/code/{opened.code}/").status_code == 200
    begun = client.post(f"/q/code/{opened.code}/", {"identifier": "N1"}, follow=True)
    assert begun.status_code == 200
    assert Client().get(invited.link, follow=True).status_code == 200


def test_one_link_cannot_flood_and_a_campus_behind_one_address_can_answer(
    student: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SAVES_OF_ONE", 3)
    anna, ben = student("N1"), student("N2")
    assert [anna.say(1, 1).status_code for _ in range(4)] == [302, 302, 302, 429]
    assert ben.say(1, 1).status_code == 302, "the same address, another person"
    students = 2_500  # who answer 14 questions, on phones saved as chosen and by Next
    assert students * 14 * 2 > limits.SAVES > students * 14
    assert students <= limits.STARTS


def test_nobody_learns_who_is_on_the_list(opened: Questionnaire, invited: Student) -> None:
    """A student number that was invited begins like one that was not."""
    Participant.objects.filter(pk=invited.row.pk).update(identifier="N001")
    known, unknown = (
        Client().post(f"/q/code/{opened.code}/", {"identifier": number})
        for number in ("N001", "N999")
    )
    assert (known.status_code, unknown.status_code) == (302, 302)
    assert invited.url not in (known.url, unknown.url)


def test_the_page_is_in_the_language_that_they_choose(student: Callable) -> None:
    anna = student()
    page = anna.client.get(anna.url, headers={"Accept-Language": "es-MX,es;q=0.9"})
    assert text_of(page).has("button", "Empezar")
    assert page["Content-Language"] == "es"
    anna.client.get(f"{anna.url}?lang=es")
    assert text_of(anna.client.get(f"{anna.url}?n=1")).says("pregunta 1 de 14")
    assert text_of(anna.client.get(f"{anna.url}?n=1&lang=en")).says("question 1 of 14")


def test_the_page_is_light_and_needs_no_script(student: Callable) -> None:
    anna = student()
    assert weight_of(text_of(anna.client.get(anna.url)).source) < 60_000
    page = text_of(anna.client.get(f"{anna.url}?n=1"))
    assert len(page.element.xpath("//script")) == 1  # saves as they choose; Next saves without it
    assert page.one("button", "Next").element.get("type") == "submit"
    assert weight_of(page.source) < 60_000
    buttons = page.element.xpath("//button[@type='submit']/@value")
    assert buttons[:2] == ["next", "skip"], "Enter presses the first"


def test_scripts_save_without_leaving_the_page(student: Callable) -> None:
    anna = student()
    fields = {"n": 1, "answer": "3", "action": "next"}
    saved = anna.client.post(anna.url, fields, headers={"X-Requested-With": "fetch"})
    assert (saved.status_code, saved.json()) == (200, {"next": f"{anna.url}?n=2", "note": ""})
    assert list(anna.row.answers.values()) == [3]


def test_another_nonce_is_another_link() -> None:
    assert len({new_nonce() for _ in range(50)}) == 50
