"""Limits: calls of a token, calls without one, jobs that wait."""

from collections.abc import Callable, Iterator

import pytest
from django.conf import LazySettings
from django.core.cache import caches
from django.test import Client

from tests.webapp.factories.programs import DOCUMENT, Program
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.api.dispatch import _as_problem
from webapp.api.problems import problem_response
from webapp.api.services import token_create
from webapp.common import limits
from webapp.common.limits import TooManyError
from webapp.jobs.models import Job
from webapp.jobs.services import job_cancel, job_enqueue


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin every test with no counts, in one minute that does not end."""
    monkeypatch.setattr(limits.time, "time", lambda: 1_000_015.0)
    for cache in ("limits", "default"):
        caches[cache].clear()
    yield
    caches["limits"].clear()


def program(user: User) -> Program:
    return Program(token_create(user=user, name="sync", days=1, may_change=False)[1])


def test_a_token_may_call_so_often_and_no_other_pays_for_it(
    bob: User, mallory: User, settings: LazySettings
) -> None:
    settings.API_CALLS_A_MINUTE = 3
    first, other = program(bob), program(mallory)
    assert [first.get("/cohorts").status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = first.get("/cohorts")
    assert refused["Retry-After"] == "5"
    assert refused.data["detail"] == "This token may call 3 times a minute. Try again later."
    assert other.get("/cohorts").status_code == 200


def test_the_next_minute_begins_anew(
    bob: User, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_CALLS_A_MINUTE = 1
    caller = program(bob)
    assert [caller.get("/cohorts").status_code for _ in range(2)] == [200, 429]
    monkeypatch.setattr(limits.time, "time", lambda: 1_000_060.0)
    assert caller.get("/cohorts").status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer bh_guess", "Basic Ym9iOmJvYg=="])
def test_guesses_are_counted_by_address(bob: User, settings: LazySettings, header: str) -> None:
    settings.API_WRONG_TOKENS_A_MINUTE = 2
    client = Client()

    def guess(address: str) -> int:
        headers = {"authorization": header} if header else {}
        answer = client.get("/api/v1/cohorts", headers=headers, REMOTE_ADDR=address)
        assert (answer.status_code == 429) == ("Retry-After" in answer)
        return answer.status_code

    assert [guess("203.0.113.7") for _ in range(4)] == [401, 401, 429, 429]
    assert guess("203.0.113.8") == 401
    assert program(bob).get("/cohorts").status_code == 200


def test_limits_hold_while_the_broker_is_away(
    bob: User, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_CALLS_A_MINUTE = 2

    def away(*_: object, **__: object) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(caches["limits"], "add", away)
    caller = program(bob)
    assert [caller.get("/cohorts").status_code for _ in range(3)] == [200, 200, 429]


def test_so_many_jobs_of_an_organisation_may_wait(
    bob: User, mallory: User, settings: LazySettings
) -> None:
    settings.ORGANISATION_MAX_WAITING_JOBS = 2

    def start(user: User) -> Job:
        return job_enqueue(user=user, kind="roommates.simulate", parameters={})

    first, _ = start(bob), start(bob)
    with pytest.raises(TooManyError, match="This one was not started"):
        start(bob)
    assert Job.objects.filter(organisation=bob.organisation).count() == 2
    assert start(mallory).state == "queued"
    job_cancel(user=bob, job=first)
    assert start(bob).state == "queued"


def test_a_refused_job_is_a_sentence_on_the_page_and_429_for_programs(
    bob: User,
    settings: LazySettings,
    make_cohort: Callable,
    client_of: Callable[[User], Client],
) -> None:
    settings.ORGANISATION_MAX_WAITING_JOBS = 0
    cohort = make_cohort(bob)
    page = Page(client_of(bob).post(f"/cohorts/{cohort.pk}/simulate/", follow=True), status=422)
    assert page.has("alert", "as many as may")
    assert not Job.objects.exists()
    answer = problem_response(_as_problem(TooManyError("Too many.", 60)))
    assert (answer.status_code, answer["Retry-After"]) == (429, "60")


def test_every_operation_documents_the_limit() -> None:
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            assert "429" in operation["responses"]
