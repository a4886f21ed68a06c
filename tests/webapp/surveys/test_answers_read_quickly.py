"""Pages about answers decrypt only the answers that they need, and find the same people."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.common.listing import PAGE_SIZE
from webapp.encryption import fields as encryption
from webapp.surveys.models import Participant, Questionnaire, WrittenAnswer
from webapp.surveys.questions import questions_of
from webapp.surveys.selectors.answers import (
    PeopleFilter,
    TextFilter,
    people_found,
    texts_found,
)
from webapp.surveys.selectors.progress import question_states
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open

WRITTEN = 120  # of the people
PEOPLE = 200
WORDS = ("stairs", "STAIRS", "Straße", "née", "ramp", "quiet", '"', "\\", "N00", "x.example")


@pytest.fixture
def asked(bob: User, settings: LazySettings) -> Questionnaire:
    """Answers of 200 people, encrypted; 120 of them wrote a text, a few half of it in capitals."""
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    made = questionnaire_create(user=bob, title="Own", form="own")
    now = timezone.now()
    questionnaire_open(user=bob, questionnaire=made, closes_at=now + timedelta(days=9))
    rng, questions = random.Random(4), questions_of(made.content)
    text = next(question.key for question in questions if question.is_written)

    def answers(k: int) -> dict[str, Any]:
        scored = {
            q.key: rng.randrange(len(q.options)) if rng.random() < 0.9 else None
            for q in questions
            if q.options and q.kind != "several" and rng.random() < 0.9
        }
        if k < WRITTEN:
            scored[text] = " ".join(rng.sample(WORDS[:8], 3))
        return scored

    Participant.objects.bulk_create(
        Participant(
            questionnaire=made,
            identifier=f"N{k:05d}" if k % 3 else "",
            email=f"a{k}@x.example" if k % 2 else "",
            name="Quiet Ramp" if k % 50 == 0 else "",
            answers=answers(k),
            updated_at=now,
            finished_at=now if k % 4 else None,
        )
        for k in range(PEOPLE)
    )
    WrittenAnswer.objects.bulk_create(
        WrittenAnswer(
            questionnaire=made, participant=one, key=text, handled_at=now if k % 5 == 0 else None
        )
        for k, one in enumerate(made.participants.all()[:WRITTEN])
    )
    return made


@pytest.fixture
def n_decrypted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A function that returns how many values were decrypted since it was last asked."""
    seen: list[str] = []
    unseal = encryption.unseal
    monkeypatch.setattr(encryption, "unseal", lambda kept: seen.append(kept) or unseal(kept))

    def count() -> int:
        n_seen = len(seen)
        seen.clear()
        return n_seen

    return count


def text_of(one: Participant, questionnaire: Questionnaire) -> str:
    written = (q for q in questions_of(questionnaire.content) if q.is_written)
    return next((q.in_words(one.answers.get(q.key)) for q in written), "")


def fits(one: Participant, questionnaire: Questionnaire, words: str) -> bool:
    """The plain meaning of a search, over everything."""
    texts = (one.identifier, one.name, one.email, one.code, text_of(one, questionnaire))
    return any(words.casefold() in text.casefold() for text in texts)


@pytest.mark.parametrize("words", [*WORDS, "STRASSE", "nobody"])
def test_a_search_finds_the_same_as_reading_everything(asked: Questionnaire, words: str) -> None:
    everybody = list(asked.participants.all())
    expected = [one.pk for one in everybody if fits(one, asked, words)]
    found = people_found(asked, PeopleFilter(query=words, by_name=True))
    assert list(found.values_list("pk", flat=True)) == expected
    texts = texts_found(asked, TextFilter(query=words, show="all", by_name=True))
    authors = [one.pk for one in everybody[:WRITTEN] if fits(one, asked, words)]
    assert sorted(text.person.pk for text in texts) == authors
    assert [text.words for text in texts] == [text_of(text.person, asked) for text in texts]
    is_open = set(asked.written_answers.filter(handled_at=None).values_list("pk", flat=True))
    waiting = texts_found(asked, TextFilter(query=words, by_name=True))
    assert [t.row.pk for t in waiting] == [t.row.pk for t in texts if t.row.pk in is_open]
    assert len(waiting) == len(list(waiting))


def test_questions_count_the_same_as_reading_everybody(asked: Questionnaire) -> None:
    everybody = list(asked.participants.all())
    order = [question.key for question in questions_of(asked.content)]
    for state in question_states(asked):
        key = state.question.key
        values = [one.answers[key] for one in everybody if key in one.answers]
        given = [value for value in values if value is not None]
        assert (state.n_answered, state.n_blank) == (len(given), len(values) - len(given))
        counts = [given.count(k) for k in range(len(state.question.options))]
        assert [count for _, count in state.counts] == counts
        stopped = [
            one
            for one in everybody
            if not one.finished_at and [k for k in order if k in one.answers][-1:] == [key]
        ]
        assert state.n_stopped == len(stopped)


def test_a_page_decrypts_its_own_people_only(
    bob: User,
    asked: Questionnaire,
    client_of: Callable[[User], Client],
    n_decrypted: Callable[[], int],
) -> None:
    client = client_of(bob)

    def page(name: str, query: str = "") -> int:
        address = reverse(f"surveys:{name}", args=[asked.pk])
        n_decrypted()
        assert client.get(address + query).status_code == 200
        return n_decrypted()

    assert page("texts") == PAGE_SIZE
    assert page("answers-people") == PAGE_SIZE
    assert page("people") == 0
    assert page("settings") == 0
    assert page("clashes") == 0
    assert page("texts", "?q=nobody&show=all") == WRITTEN, "every text, once"
    assert page("answers-people", "?q=nobody") == WRITTEN, "of people who wrote something"
    assert page("answers-questions") == PEOPLE
    assert page("questionnaire") == PEOPLE


@pytest.mark.parametrize(
    ("name", "query", "most"),
    [
        ("questionnaire", "", 24),
        ("people", "", 32),
        ("people", "?q=ramp", 32),
        ("texts", "", 14),
        ("texts", "?q=ramp&show=all", 14),
        ("answers-people", "?q=ramp", 15),
        ("answers-questions", "", 12),
    ],
)
def test_a_page_asks_the_database_a_few_times(
    bob: User,
    asked: Questionnaire,
    client_of: Callable[[User], Client],
    django_assert_max_num_queries: Callable,
    name: str,
    query: str,
    most: int,
) -> None:
    address = reverse(f"surveys:{name}", args=[asked.pk]) + query
    client = client_of(bob)
    client.get(address)
    with django_assert_max_num_queries(most):
        client.get(address)


def test_a_search_keeps_to_its_questionnaire(
    bob: User, asked: Questionnaire, mallory: User, client_of: Callable[[User], Client]
) -> None:
    theirs = questionnaire_create(user=mallory, title="Theirs", form="own")
    closes_at = timezone.now() + timedelta(days=1)
    questionnaire_open(user=mallory, questionnaire=theirs, closes_at=closes_at)
    number = next(q.number for q in questions_of(theirs.content) if q.is_written)
    Student(theirs, "Keeper of the light").say(number, "Lighthouse")
    for name in ("texts", "answers-people"):
        for user, questionnaire in ((bob, asked), (mallory, theirs)):
            address = reverse(f"surveys:{name}", args=[questionnaire.pk])
            page = Page(client_of(user).get(f"{address}?q=lighthouse"))
            assert page.has("link", "Keeper of the light") == (user == mallory)
        address = reverse(f"surveys:{name}", args=[theirs.pk])
        assert client_of(bob).get(f"{address}?q=lighthouse").status_code == 404
