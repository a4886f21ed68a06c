"""Names and e-mails on the pages of questionnaires follow the organisation and "Hide names"."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.programs import Program
from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import NamesFor, User
from webapp.api.services import token_create
from webapp.audit.models import AuditLine
from webapp.surveys.content import Kind
from webapp.surveys.models import Mail, Participant, Questionnaire, RequestedPerson
from webapp.surveys.questions import questions_of
from webapp.surveys.services.clashes import answers_choose, answers_restore
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.invitations import invitations_add
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open

SECRETS = ("Zelda Quint", "Omar Pell", "zq@n.example", "op@n.example", "N-77001", "N-77002")
TEXT = "I use a wheelchair."


@pytest.fixture
def asked(bob: User, opened: Questionnaire) -> Questionnaire:
    """A questionnaire with two invited people, a clash, a request, a bounce and a failed mail."""
    made = questionnaire_create(user=bob, title="Own 2027", form="own")
    questionnaire_open(user=bob, questionnaire=made, closes_at=opened.closes_at)
    text = "Zelda Quint <zq@n.example>, N-77001\nOmar Pell <op@n.example>, N-77002"
    invitations_add(user=bob, questionnaire=made, text=text)
    zelda, omar = made.participants.order_by("pk")
    for k in range(2):
        double = Student(made, "N-77003")
        double.say_all(k)
    wrote = Student(made, "N-77001")
    wrote.say_all(1)
    number = next(q.number for q in questions_of(made.content) if q.kind == Kind.TEXT)
    wrote.say(number, TEXT)
    Participant.objects.filter(pk=omar.pk).update(bounced_at=omar.created_at, bounce="550 unknown")
    Mail.objects.create(participant=zelda, subject="s", text="t", state=Mail.FAILED, error="late")
    RequestedPerson.objects.create(questionnaire=made, asker=zelda, target=omar, key="x")
    return made


def at(name: str, questionnaire: Questionnaire, *more: object) -> str:
    return reverse(f"surveys:{name}", args=[questionnaire.pk, *more])


def texts_of(client: Client, asked: Questionnaire) -> dict[str, str]:
    """Return everything that the pages about people say."""
    names = ("people", "clashes", "texts", "answers-people", "answers-requests")
    addresses = [at(name, asked) for name in names]
    addresses += [f"{at('texts', asked)}?show=all", f"{at('people', asked)}?state=blank"]
    addresses += [at("answers-person", asked, one.pk) for one in asked.participants.all()]
    addresses += [at("text-need", asked, row.pk) for row in asked.written_answers.all()]
    found = {}
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 200, address
        found[address] = response.content.decode()
    return found


def forbid(user: User) -> None:
    """Let administrators alone see names."""
    user.own_organisation.names_for = NamesFor.ADMINISTRATORS
    user.own_organisation.save()


@pytest.mark.parametrize("is_allowed", [True, False])
def test_pages_show_numbers_of_people_where_names_are_hidden(
    bob: User, carol: User, client_of: Callable, asked: Questionnaire, is_allowed: bool
) -> None:
    client = client_of(bob)
    shown = " ".join(texts_of(client, asked).values())
    assert not [one for one in (*SECRETS, "N-77003") if one not in shown]
    if is_allowed:
        client.post(reverse("students:hide-names"), {"hide": "1"})
    else:
        forbid(bob)
    for address, source in texts_of(client, asked).items():
        assert not [one for one in (*SECRETS, "N-77003") if one in source], address
        assert re.search(r"Person \d+", Page(source).text), address
    omar = asked.participants.get(email="op@n.example")
    gone = Page(client.post(at("person-remove", asked, omar.pk), follow=True))
    assert gone.one("status").says(f"Person {omar.pk} was removed.")
    assert "op@n.example" not in gone.source
    carols = " ".join(texts_of(client_of(carol), asked).values())
    assert "Zelda Quint" in carols


def test_viewers_get_no_page_of_people(
    alice: User, client_of: Callable, asked: Questionnaire
) -> None:
    client = client_of(alice)
    for name in ("people", "clashes", "texts", "answers-people", "answers-requests"):
        assert client.get(at(name, asked)).status_code == 403
    page = Page(client.get(at("questionnaire", asked)))
    assert not [one for one in SECRETS if one in page.source]


def test_a_search_without_the_right_takes_whole_emails_alone(
    bob: User, client_of: Callable, asked: Questionnaire
) -> None:
    client = client_of(bob)
    zelda = asked.participants.get(email="zq@n.example")
    label = f"Person {zelda.pk}"

    def found(words: str, name: str = "people") -> bool:
        page = Page(client.get(at(name, asked), {"q": words}))
        return page.has("link", label, exactly=True)

    client.post(reverse("students:hide-names"), {"hide": "1"})
    for words in ("ZQ@n.example", "Zelda", "77001", label):
        assert found(words)
        assert found(words, "answers-people")
    assert not found("nobody")
    line = AuditLine.objects.filter(verb="searched for students", user=bob).latest("pk")
    assert line.details["found"] == [label]
    client.post(reverse("students:hide-names"), {"hide": "0"})
    forbid(bob)
    for name in ("people", "answers-people"):
        for words in ("ZQ@n.example", zelda.code.lower(), label.lower()):
            assert found(words, name)
        for words in ("Zelda", "quint", "zq", "n.example", "77001", "N-77001"):
            assert not found(words, name), words
    author = asked.written_answers.get().participant
    texts = at("texts", asked)
    assert Page(client.get(texts, {"q": "wheelchair"})).has("listitem", TEXT)
    assert TEXT not in Page(client.get(texts, {"q": author.identifier})).source
    assert Page(client.get(texts, {"q": author.code})).has("listitem", TEXT)


@pytest.mark.parametrize("name", ["answers-file", "texts-file"])
def test_files_follow_the_right_and_are_refused_while_names_are_hidden(
    bob: User, client_of: Callable, asked: Questionnaire, name: str
) -> None:
    client = client_of(bob)
    whole = client.get(at(name, asked, "csv")).content.decode()
    assert "student number,name,e-mail" in whole
    assert "N-77001" in whole
    client.post(reverse("students:hide-names"), {"hide": "1"})
    before = AuditLine.objects.filter(verb="exported").count()
    refused = Page(client.get(at(name, asked, "xlsx"), follow=True))
    assert refused.one("alert").says("You hide names now")
    assert AuditLine.objects.filter(verb="exported").count() == before
    client.post(reverse("students:hide-names"), {"hide": "0"})
    forbid(bob)
    plain = client.get(at(name, asked, "csv")).content.decode()
    assert "person," in plain.splitlines()[0]
    assert TEXT in plain
    assert not [one for one in SECRETS if one in plain]
    searched = client.get(at(name, asked, "csv"), {"q": "Zelda"}).content.decode()
    assert len(searched.splitlines()) == 1


def test_inviting_works_without_the_right(
    bob: User, client_of: Callable, asked: Questionnaire
) -> None:
    forbid(bob)
    client = client_of(bob)
    sent = {"people": "new@n.example\nzq@n.example"}
    page = Page(client.post(at("people-add", asked), sent, follow=True))
    assert page.one("status").says("1 added, 1 were there already")
    assert "new@n.example" not in page.source
    assert asked.participants.filter(email="new@n.example").exists()


def test_a_refused_choice_names_nobody(
    bob: User, client_of: Callable, asked: Questionnaire
) -> None:
    first, second = asked.participants.filter(identifier="N-77003").order_by("pk")
    answers_choose(user=bob, questionnaire=asked, person=first.pk)
    cohort_from_answers(user=bob, questionnaire=asked, name="Made")
    answers_restore(user=bob, questionnaire=asked, people=[second.pk])
    client = client_of(bob)
    client.post(reverse("students:hide-names"), {"hide": "1"})
    page = client.post(at("clash-choose", asked), {"person": second.pk}, follow=True)
    assert Page(page).one("alert").says("Other answers of this number are in a cohort already")
    assert "N-77003" not in Page(page).source


def test_looks_at_names_leave_a_line(bob: User, client_of: Callable, asked: Questionnaire) -> None:
    client = client_of(bob)
    looks = AuditLine.objects.filter(verb="looked at names", target_id=str(asked.pk))
    for name in ("people", "clashes", "answers-requests"):
        before = looks.count()
        client.get(at(name, asked))
        assert looks.count() == before + 1
    client.post(reverse("students:hide-names"), {"hide": "1"})
    before = looks.count()
    client.get(at("people", asked))
    assert looks.count() == before


def test_programs_without_the_right_read_no_names(bob: User, asked: Questionnaire) -> None:
    _, secret = token_create(user=bob, name="look", may_change=False, days=1)
    program = Program(secret)
    parts = ("answers", "clashes?show=all", "texts?show=all")

    def said() -> str:
        return " ".join(
            str(program.get(f"/questionnaires/{asked.pk}/{part}").data) for part in parts
        )

    assert not [one for one in (*SECRETS[:5], "N-77003") if one not in said()]
    forbid(bob)
    assert not [one for one in (*SECRETS, "N-77003") if one in said()]
    assert TEXT in said()
    found = program.get(f"/questionnaires/{asked.pk}/answers?q=zelda").data
    assert found["total"] == 0
