"""The pages of jobs: rights, polling that stops, the plot."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tests.webapp.earlier_versions import MigrateTo
from webapp.accounts.models import Organisation, User
from webapp.cohorts.models import Cohort
from webapp.jobs import registry
from webapp.jobs.models import Job, JobListVisit, JobState, JobTracePoint
from webapp.jobs.notifications import notifications_of

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
    assert "Expected from now on" in page


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
    Job.objects.filter(pk=job.pk).update(seconds_left=60.0)
    page = client_of(bob).get(f"/jobs/{job.pk}/card/").content.decode()
    assert "Time left" in page
    assert "not known yet" not in page


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


def test_a_job_leads_to_what_it_works_on_while_that_is_there(
    client_of: ClientOf, bob: User, job: Job, southgate: Organisation
) -> None:
    """A finished job used to be a dead end."""

    def cohort_of(organisation: Organisation) -> Cohort:
        return Cohort.objects.create(
            organisation=organisation, name="Returning 2024", questions=[], n_students=2
        )

    client, ours = client_of(bob), cohort_of(bob.organisation)
    address = reverse("cohorts:cohort", args=[ours.pk])
    pages = (f"/jobs/{job.pk}/", "/jobs/")
    for cohort, is_linked in ((ours, True), (cohort_of(southgate), False)):
        parameters = {"cohort": str(cohort.pk)}
        Job.objects.filter(pk=job.pk).update(kind="roommates.simulate", parameters=parameters)
        for page in pages:
            assert ("cohorts/" in main_of(client.get(page))) == is_linked, page
    Job.objects.filter(pk=job.pk).update(parameters={"cohort": str(ours.pk)})
    assert all(address in main_of(client.get(page)) for page in pages)
    ours.delete()
    assert not any("cohorts/" in main_of(client.get(page)) for page in pages)


def main_of(response: HttpResponse) -> str:
    return response.content.decode().partition("<main")[2]


@pytest.mark.parametrize("n_jobs", [1, 5])
def test_the_list_asks_for_subjects_together(client_of: ClientOf, bob: User, n_jobs: int) -> None:
    for k in range(n_jobs):
        cohort = Cohort.objects.create(
            organisation=bob.organisation, name=f"Year {k}", questions=[], n_students=2
        )
        Job.objects.create(
            organisation=bob.organisation, created_by=bob, kind="roommates.simulate", seed=1,
            title="Simulate", state="succeeded", parameters={"cohort": str(cohort.pk)},
        )  # fmt: skip
    with CaptureQueriesContext(connection) as queries:
        client_of(bob).get("/jobs/", headers={"HX-Request": "true", "HX-Target": "job-list"})
    about_cohorts = [query for query in queries if 'FROM "cohorts_cohort"' in query["sql"]]
    assert len(about_cohorts) == 1


def test_the_rail_says_what_runs(client_of: ClientOf, alice: User, job: Job) -> None:
    assert "1 running" in client_of(alice).get("/help/").content.decode()


def test_a_page_that_stays_open_asks_for_the_counts_of_the_rail(
    client_of: ClientOf, alice: User, job: Job
) -> None:
    """They once changed only where a page was loaded again."""
    client = client_of(alice)
    assert client.get("/rail/").json()["/jobs/"] == "1 running"
    end(job)
    assert client.get("/rail/").json()["/jobs/"] == ""
    client.logout()
    assert client.get("/rail/").status_code == 302


NEWS = "since you last opened this list"


def end(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(state="succeeded", finished_at=timezone.now())


def test_the_bell_counts_ones_own_jobs_that_ended_until_one_looks(
    client_of: ClientOf, alice: User, bob: User, job: Job
) -> None:
    client = client_of(bob)
    page = client.get("/help/").content.decode()
    poll = "/jobs/bell/?ended=0"
    assert f'hx-get="{poll}"' in page  # it polls while a job of bob's runs
    assert NEWS not in page
    assert client.get(poll).status_code == 204  # nothing new, so nothing is read aloud
    end(job)
    bell = client.get(poll).content.decode()
    assert f"Jobs: 1 ended {NEWS}" in bell
    assert "hx-get" not in bell
    assert NEWS not in client_of(alice).get("/help/").content.decode()
    assert NEWS not in client.get("/jobs/").content.decode()
    assert NEWS not in client.get("/help/").content.decode()


def test_what_the_bell_counts_outlives_the_session(
    client_of: ClientOf, bob: User, job: Job
) -> None:
    """It used to count from sign-in: what had ended meanwhile was never told."""
    first = client_of(bob)
    first.get("/jobs/")
    first.post("/accounts/sign-out/")
    end(job)
    second = client_of(bob)
    assert f"Jobs: 1 ended {NEWS}" in second.get("/help/").content.decode()
    second.get("/jobs/")
    second.post("/accounts/sign-out/")
    assert NEWS not in client_of(bob).get("/help/").content.decode()
    assert JobListVisit.objects.filter(user=bob).count() == 1


def test_a_list_that_polls_itself_is_not_opened_again(
    client_of: ClientOf, bob: User, job: Job
) -> None:
    client = client_of(bob)
    client.get("/jobs/")
    end(job)
    client.get("/jobs/", headers={"HX-Request": "true", "HX-Target": "job-list"})
    assert NEWS in client.get("/help/").content.decode()


def test_the_bell_counts_for_each_organisation_by_itself(
    client_of: ClientOf, bob: User, job: Job, southgate: Organisation
) -> None:
    northfield = bob.organisation
    client_of(bob).get("/jobs/")
    end(job)
    User.objects.filter(pk=bob.pk).update(organisation=southgate)
    client = client_of(bob)
    assert NEWS not in client.get("/jobs/").content.decode()
    assert NEWS not in client.get("/help/").content.decode()
    User.objects.filter(pk=bob.pk).update(organisation=northfield)
    assert f"1 ended {NEWS}" in client_of(bob).get("/help/").content.decode()


def test_the_bell_of_somebody_without_organisation_is_silent(
    client_of: ClientOf, job: Job, db: None
) -> None:
    root = User.objects.create_superuser(username="root", password="quiet-lamp-orbit-43")
    assert client_of(root).get("/jobs/").status_code == 200
    assert notifications_of(root).n_ended == 0
    assert not JobListVisit.objects.exists()


@pytest.mark.every_database
def test_an_update_goes_on_from_the_last_sign_in(migrate_to: MigrateTo) -> None:
    """Whoever worked here before is not told of every job that ever ended."""
    old = migrate_to(("jobs", "0001_initial"))
    organisation = old.get_model("accounts", "Organisation").objects.create(name="Northfield")
    make = old.get_model("accounts", "User").objects.create
    bob, carol = (make(username=name, organisation=organisation) for name in ("bob", "carol"))
    bob.last_login = timezone.now()
    bob.save()
    visits = migrate_to(("jobs", "0002_job_list_visits")).get_model("jobs", "JobListVisit").objects
    assert visits.get(user_id=bob.pk).seen_at == bob.last_login
    assert visits.get(user_id=carol.pk).seen_at == carol.date_joined


def test_every_kind_of_the_product_names_the_page_of_its_subject() -> None:
    kinds = [name for name in registry._kinds if name.startswith(("roommates.", "segmentation."))]
    assert kinds
    for name in kinds:
        assert reverse(registry.subject_of(name).url_name, args=[uuid4()]), name


def test_the_badge_of_a_page_changes_with_the_state(
    client_of: ClientOf, bob: User, job: Job
) -> None:
    """It said "Queued" until all was done: only the card was read again."""
    Job.objects.filter(pk=job.pk).update(state=JobState.QUEUED)
    client = client_of(bob)
    page = client.get(reverse("jobs:job", args=[job.pk])).content.decode()
    assert page.count(f'id="job-state-{job.pk}"') == 1
    assert "hx-swap-oob" not in page.partition(f'id="job-state-{job.pk}"')[2][:40]
    assert "Queued" in page
    Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
    address = reverse("jobs:card", args=[job.pk])
    assert f"{address}?reload=1&amp;badge=1" in page
    card = client.get(f"{address}?badge=1", headers={"HX-Request": "true"}).content.decode()
    badge = card.partition(f'<span id="job-state-{job.pk}" hx-swap-oob="true">')[2]
    assert "Running" in badge
    # A page that shows no badge is sent none: htmx calls a piece without a place an error.
    assert "job-state" not in client.get(address, headers={"HX-Request": "true"}).content.decode()
