"""A request that arrives twice starts one job, and whoever sent it is led there."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.jobs import registry
from webapp.jobs.models import Job, JobState

ClientOf = Callable[[User], Client]


@pytest.fixture(autouse=True)
def counting(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ROOT_URLCONF = "tests.webapp.counting.urls"
    kind = registry.JobKind(name="counting.sum", run=lambda context: {}, verb="Count")
    monkeypatch.setitem(registry._kinds, kind.name, kind)


@pytest.fixture
def browser(bob: User) -> Client:
    """A client that sends tokens, as browsers do."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    return client


def form(client: Client, **fields: Any) -> dict[str, Any]:
    """Load the page anew and fill in its form."""
    found = re.search(r'value="(\w+)"', client.get("/counting/").content.decode())
    assert found
    return {"csrfmiddlewaretoken": found[1], "steps": "1", **fields}


def test_a_form_sent_twice_starts_one_job(browser: Client) -> None:
    sent = form(browser)
    first, second = browser.post("/counting/", sent), browser.post("/counting/", sent)
    (job,) = Job.objects.all()
    assert first["Location"] == second["Location"] == f"/jobs/{job.pk}/"
    assert Page(browser.get(second["Location"])).one("status").says("was not started twice")


def test_a_page_loaded_again_and_other_fields_are_new_requests(browser: Client) -> None:
    sent = form(browser)
    for fields in (sent, sent | {"steps": "2"}, form(browser)):
        browser.post("/counting/", fields)
    assert Job.objects.count() == 3


def test_the_same_form_of_another_person_is_another_request(
    browser: Client, carol: User, bob: User
) -> None:
    sent = form(browser)
    browser.post("/counting/", sent)
    browser.force_login(carol, backend="django.contrib.auth.backends.ModelBackend")
    browser.post("/counting/", form(browser))
    assert set(Job.objects.values_list("created_by", flat=True)) == {bob.pk, carol.pk}


def test_one_request_may_start_several_jobs_once(browser: Client) -> None:
    sent = form(browser, count="3")
    for _ in range(2):
        browser.post("/counting/", sent)
    assert Job.objects.count() == 3


def test_a_form_that_was_refused_may_be_sent_again(browser: Client, settings: LazySettings) -> None:
    sent = form(browser)
    settings.ORGANISATION_MAX_WAITING_JOBS = 0
    browser.raise_request_exception = False
    browser.post("/counting/", sent)
    assert not Job.objects.exists()
    settings.ORGANISATION_MAX_WAITING_JOBS = 10
    browser.post("/counting/", sent)
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("headers", "minutes", "n_jobs"),
    [
        ({}, 1, 1),  # a reload
        ({}, 30, 2),  # the same form, much later
        ({"HX-Request": "true"}, 0, 2),  # a page that stays open asks for another one
        ({"Sec-Fetch-Mode": "cors"}, 0, 2),
    ],
)
def test_a_job_that_is_over_is_a_double_for_a_while(
    browser: Client, headers: dict[str, str], minutes: int, n_jobs: int
) -> None:
    sent = form(browser)
    browser.post("/counting/", sent, headers=headers)
    before = timezone.now() - timedelta(minutes=minutes)
    Job.objects.update(state=JobState.SUCCEEDED, created_at=before)
    browser.post("/counting/", sent, headers=headers)
    assert Job.objects.count() == n_jobs


def test_an_active_job_leads_a_fragment_to_it(browser: Client) -> None:
    sent = form(browser)
    browser.post("/counting/", sent)
    answer = browser.post("/counting/", sent, headers={"HX-Request": "true"})
    assert answer["HX-Redirect"] == f"/jobs/{Job.objects.get().pk}/"
