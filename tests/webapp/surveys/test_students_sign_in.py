"""Students who sign in at their university instead of opening a link, at a server that runs."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.providers import (
    OpenIDServer,
    allow_localhost,
)
from tests.webapp.factories.questionnaires import Student
from tests.webapp.factories.questionnaires import enter as open_link
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, User
from webapp.identity.models import IdentityProvider
from webapp.identity.selectors import login_address
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.questionnaires import questionnaire_settle

WORDS = {"title": "Housing 2027", "introduction": "", "who_sees": "", "contact": ""}


@pytest.fixture(autouse=True)
def may_ask_localhost(settings: LazySettings) -> None:
    allow_localhost(settings)


@pytest.fixture
def campus(openid: IdentityProvider) -> IdentityProvider:
    openid.takes_students = True
    openid.student_claim = "student_id"
    openid.save()
    return openid


@pytest.fixture
def asking(bob: User, campus: IdentityProvider, opened: Questionnaire) -> Questionnaire:
    questionnaire_settle(
        user=bob, questionnaire=opened, takes_code=False, asks_sign_in=True, **WORDS
    )
    return opened


@pytest.fixture
def enter(openid_server: OpenIDServer, campus: IdentityProvider) -> Callable[..., object]:
    def sign_in(client: Client, asking: Questionnaire, subject: str, **claims: object) -> object:
        openid_server.knows(subject, **claims)
        there = reverse("surveys:code", args=[asking.code])
        return openid_server.sign_in(client, login_address(campus, there), subject)

    return sign_in


def test_a_student_signs_in_and_answers_without_an_account(
    asking: Questionnaire, enter: Callable
) -> None:
    client = Client(headers={"Accept-Language": "en"})
    page = Page(client.get(reverse("surveys:code", args=[asking.code])))
    assert page.has("link", "Sign in with Northfield")
    assert not page.has("textbox")
    assert not page.element.xpath("//*[@name='identifier']")
    back = enter(client, asking, "s1", student_id="N00123", email="s1@northfield.example")
    begun = client.post(back.url)
    answer = client.get(begun.url)
    assert answer.status_code == 200
    row = Participant.objects.get()
    assert row.identifier == "N00123"
    assert not User.objects.filter(provider_account__isnull=False).exists()
    assert client.get("/").status_code == 302, "a student's session opens no page of staff"
    again = Client()
    enter(again, asking, "s1", student_id="N00123")
    again.post(reverse("surveys:code", args=[asking.code]))
    assert Participant.objects.count() == 1


def test_a_link_alone_and_another_students_session_open_nothing(
    asking: Questionnaire, enter: Callable
) -> None:
    anna, ben = Client(), Client()
    enter(anna, asking, "s1", student_id="N1")
    url = anna.post(reverse("surveys:code", args=[asking.code])).url
    link = f"/q/{token_of(Participant.objects.get(identifier='N1'))}/"
    enter(ben, asking, "s2", student_id="N2")
    for stranger in (Client(), ben):
        assert stranger.get(url).status_code == 404, "another browser keeps no link"
        seen = stranger.get(open_link(stranger, link))
        assert (seen.status_code, seen.url) == (302, f"/q/code/{asking.code}/")
        refused = stranger.post(link, {"n": 1, "answer": "1"})
        assert refused.status_code == 401
        back = Page(refused, status=401).one("link", "Back")
        assert back.address == f"/q/code/{asking.code}/"
    assert Participant.objects.get(identifier="N1").answers == {}
    anna.post(url, {"n": 1, "answer": "1"})
    assert len(Participant.objects.get(identifier="N1").answers) == 1


def test_who_was_invited_is_known_by_a_checked_address_only(
    asking: Questionnaire, enter: Callable
) -> None:
    invited = Participant.objects.create(questionnaire=asking, email="s1@northfield.example")
    old = Student(asking, token=token_of(invited))
    unchecked, checked = Client(), Client()
    code = reverse("surveys:code", args=[asking.code])
    enter(
        unchecked, asking, "x", student_id="N9", email="s1@northfield.example", email_verified=False
    )
    unchecked.post(code)
    assert Participant.objects.get(identifier="N9").pk != invited.pk
    enter(
        checked, asking, "s1", student_id="N1", email="S1@northfield.example", email_verified=True
    )
    checked.post(code)
    invited.refresh_from_db()
    assert invited.identifier == "N1"
    assert old.client.get(old.link).status_code == 404, "the mailed link is worth nothing now"


def test_without_the_claim_or_the_right_nobody_begins(
    asking: Questionnaire, enter: Callable, campus: IdentityProvider
) -> None:
    assert enter(Client(), asking, "s3").status_code == 403
    client = Client()
    enter(client, asking, "s1", student_id="N1")
    campus.takes_students = False
    campus.save()
    code = reverse("surveys:code", args=[asking.code])
    assert client.post(code).status_code == 503
    assert not Participant.objects.exists()


def test_another_organisations_student_is_nobody_here(
    asking: Questionnaire,
    southgate: Organisation,
    openid_server: OpenIDServer,
    campus: IdentityProvider,
) -> None:
    other = IdentityProvider.objects.create(
        organisation=southgate, name="Southgate", protocol="openid_connect", is_on=True,
        server_url=campus.server_url, client_id="o", secret="x", takes_students=True,
    )  # fmt: skip
    client = Client(headers={"Accept-Language": "en"})
    code = reverse("surveys:code", args=[asking.code])
    openid_server.sign_in(client, login_address(other, code), "s1")
    page = Page(client.post(code))
    assert page.has("link", "Sign in with Northfield")
    assert not Participant.objects.exists()


def test_it_needs_a_provider_that_takes_students(bob: User, opened: Questionnaire) -> None:
    with pytest.raises(QuestionnaireError, match="No provider"):
        questionnaire_settle(
            user=bob, questionnaire=opened, takes_code=False, asks_sign_in=True, **WORDS
        )
