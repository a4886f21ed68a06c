"""The pages of jobs: rights, polling that stops, the plot."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from webapp.accounts.models import User
from webapp.jobs import registry
from webapp.jobs.models import Job, JobState, JobTracePoint

ClientOf = Callable[[User], Client]


@pytest.fixture
def job(bob: User, monkeypatch: pytest.MonkeyPatch) -> Job:
    kind = registry.JobKind(name="test.learn", run=lambda c: {}, verb="Learn", target_gap=1e-4)
    monkeypatch.setitem(registry._kinds, "test.learn", kind)
    made = Job.objects.create(
        organisation=bob.organisation, created_by=bob, kind="test.learn", seed=1, code_version="x",
        title="Learn: Returning 2024", state=JobState.RUNNING, sentence="Narrowing the gap",
        progress=0.66, seconds_left=21.0, started_at=timezone.now(),
    )  # fmt: skip
    for k in range(1, 6):
        JobTracePoint.objects.create(
            job=made, iteration=k, seconds=k, objective=-100 + 1 / k, lower_bound=-100 - 1 / k,
            relative_gap=10.0 ** (-k / 2),
        )  # fmt: skip
    return made


def pages_of(job: Job) -> list[str]:
    return [f"/jobs/{job.pk}/", f"/jobs/{job.pk}/card/", f"/jobs/{job.pk}/convergence/"]


def test_it_validates_ownership(client_of: ClientOf, mallory: User, job: Job) -> None:
    for url in pages_of(job):
        assert client_of(mallory).get(url).status_code == 404
    assert client_of(mallory).post(f"/jobs/{job.pk}/cancel/").status_code == 404
    job.refresh_from_db()
    assert job.cancel_requested_at is None
    assert "Returning 2024" not in client_of(mallory).get("/jobs/").content.decode()
    assert "Returning 2024" not in client_of(mallory).get("/").content.decode()


def test_viewers_watch_but_do_not_cancel(client_of: ClientOf, alice: User, job: Job) -> None:
    client = client_of(alice)
    for url in pages_of(job):
        assert client.get(url).status_code == 200
    assert "Cancel" not in client.get(f"/jobs/{job.pk}/card/").content.decode()
    assert client.post(f"/jobs/{job.pk}/cancel/").status_code == 403


def test_a_running_job_polls_and_says_how_long(client_of: ClientOf, bob: User, job: Job) -> None:
    page = client_of(bob).get(f"/jobs/{job.pk}/").content.decode()
    assert page.count('hx-trigger="every 1s"') == 2
    assert "about 20 s" in page
    assert "66 %" in page
    assert "expected" in page


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_polling_stops_by_itself(client_of: ClientOf, bob: User, job: Job, state: str) -> None:
    Job.objects.filter(pk=job.pk).update(state=state, finished_at=timezone.now())
    client = client_of(bob)
    for url in pages_of(job):
        assert "every 1s" not in client.get(url).content.decode()
    ended = client.get(f"/jobs/{job.pk}/card/?reload=1")
    assert ended.headers["HX-Refresh"] == "true"
    assert "every 2s" not in client.get("/jobs/").content.decode()


def test_an_unknown_amount_of_work_has_no_fake_bar(
    client_of: ClientOf, bob: User, job: Job
) -> None:
    Job.objects.filter(pk=job.pk).update(progress=None, seconds_left=None)
    page = client_of(bob).get(f"/jobs/{job.pk}/card/").content.decode()
    assert "<progress" not in page
    assert "not known yet" in page


def test_an_interrupted_job_says_where_it_went_on(client_of: ClientOf, bob: User, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(attempt=2, resumed_from=214)
    page = client_of(bob).get(f"/jobs/{job.pk}/card/").content.decode()
    assert "interrupted and went on from step 214" in page


def test_a_failed_job_says_why(client_of: ClientOf, bob: User, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(state="failed", error="Row 3: no <id>.")
    page = client_of(bob).get(f"/jobs/{job.pk}/").content.decode()
    assert "Row 3: no &lt;id&gt;." in page


def test_cancel_asks_the_job_to_stop(client_of: ClientOf, bob: User, job: Job) -> None:
    response = client_of(bob).post(f"/jobs/{job.pk}/cancel/", headers={"HX-Request": "true"})
    assert "Cancelling" in response.content.decode()
    job.refresh_from_db()
    assert job.cancelled_by == bob
    assert client_of(bob).post(f"/jobs/{job.pk}/cancel/").status_code == 302


@pytest.mark.parametrize("by", ["time", "step", "nonsense"])
def test_the_plot_and_its_table(client_of: ClientOf, bob: User, job: Job, by: str) -> None:
    page = client_of(bob).get(f"/jobs/{job.pk}/convergence/?by={by}").content.decode()
    assert "<svg" in page
    assert ("Steps" in page) == (by == "step")
    assert "−99.80" in page  # the table: upper bound of the last step
    assert "3.16e−03" in page


def test_the_list_filters_by_state(client_of: ClientOf, bob: User, job: Job) -> None:
    client = client_of(bob)
    assert "Returning 2024" in client.get("/jobs/?state=running").content.decode()
    assert "Returning 2024" not in client.get("/jobs/?state=failed").content.decode()
    assert client.get("/jobs/?state=nonsense").status_code == 200


def test_the_rail_says_what_runs(client_of: ClientOf, alice: User, job: Job) -> None:
    assert "1 running" in client_of(alice).get("/help/").content.decode()


def test_the_bell_counts_ones_own_jobs_that_ended_until_one_looks(
    client_of: ClientOf, alice: User, bob: User, job: Job
) -> None:
    client = client_of(bob)
    page = client.get("/help/").content.decode()
    poll = "/jobs/bell/?ended=0"
    assert f'hx-get="{poll}"' in page  # it polls while a job of bob's runs
    assert "since you last opened this list" not in page
    assert client.get(poll).status_code == 204  # nothing new, so nothing is read aloud
    Job.objects.filter(pk=job.pk).update(state="succeeded", finished_at=timezone.now())
    bell = client.get(poll).content.decode()
    assert "Jobs: 1 ended since you last opened this list" in bell
    assert "hx-get" not in bell
    assert "since you last opened this list" not in client_of(alice).get("/help/").content.decode()
    client.get("/jobs/")
    assert "since you last opened this list" not in client.get("/help/").content.decode()
