"""The pages of jobs: rights, polling that stops, the plot."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tests.webapp.earlier_versions import MigrateTo
from tests.webapp.roles import Page
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
    assert "Returning 2024" not in Page(client_of(mallory).get("/jobs/")).source
    assert "Returning 2024" not in Page(client_of(mallory).get("/")).source


def test_viewers_watch_but_do_not_cancel(client_of: ClientOf, alice: User, job: Job) -> None:
    client = client_of(alice)
    for url in pages_of(job):
        assert client.get(url).status_code == 200
    assert "Cancel" not in Page(client.get(f"/jobs/{job.pk}/card/")).source
    assert client.post(f"/jobs/{job.pk}/cancel/").status_code == 403


def test_a_running_job_polls_and_says_how_long(client_of: ClientOf, bob: User, job: Job) -> None:
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/"))
    assert page.source.count('hx-trigger="every 1s"') == 2
    card = page.one("region", "Learn: Returning 2024")
    assert card.says("about 20 s")
    assert card.says("66 %")
    assert card.one("progressbar").value == "66"
    assert page.section("Convergence").says("Expected from now on")


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_polling_stops_by_itself(client_of: ClientOf, bob: User, job: Job, state: str) -> None:
    Job.objects.filter(pk=job.pk).update(state=state, finished_at=timezone.now())
    client = client_of(bob)
    for url in pages_of(job):
        assert "every 1s" not in Page(client.get(url)).source
    ended = client.get(f"/jobs/{job.pk}/card/?reload=1")
    assert ended.headers["HX-Refresh"] == "true"
    assert "every 2s" not in Page(client.get("/jobs/")).source


def test_an_unknown_amount_of_work_has_no_fake_bar(
    client_of: ClientOf, bob: User, job: Job
) -> None:
    Job.objects.filter(pk=job.pk).update(progress=None, seconds_left=None)
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/card/"))
    assert not page.has("progressbar")
    assert page.says("not known yet")
    Job.objects.filter(pk=job.pk).update(seconds_left=60.0)
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/card/"))
    assert page.says("Time left")
    assert not page.says("not known yet")


def test_an_interrupted_job_says_where_it_went_on(client_of: ClientOf, bob: User, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(attempt=2, resumed_from=214)
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/card/"))
    assert page.says("interrupted and went on from step 214")


def test_a_failed_job_says_why(client_of: ClientOf, bob: User, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(state="failed", error="Row 3: no <id>.")
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/"))
    assert page.one("region", "Learn: Returning 2024").says("Row 3: no <id>.")


def test_cancel_asks_the_job_to_stop(client_of: ClientOf, bob: User, job: Job) -> None:
    response = client_of(bob).post(f"/jobs/{job.pk}/cancel/", headers={"HX-Request": "true"})
    assert Page(response).one("region", "Learn: Returning 2024").says("Cancelling")
    job.refresh_from_db()
    assert job.cancelled_by == bob
    assert client_of(bob).post(f"/jobs/{job.pk}/cancel/").status_code == 302


@pytest.mark.parametrize("by", ["time", "step", "nonsense"])
def test_the_plot_and_its_table(client_of: ClientOf, bob: User, job: Job, by: str) -> None:
    page = Page(client_of(bob).get(f"/jobs/{job.pk}/convergence/?by={by}"))
    assert page.one("region", "Convergence", exactly=True).has("img", "Convergence")
    assert page.says("Steps") == (by == "step")
    table = page.one("table", "Convergence")
    assert table.has("row", "−99.80")  # the upper bound of the last step
    assert table.has("row", "3.16e−03")


def test_the_list_filters_by_state(client_of: ClientOf, bob: User, job: Job) -> None:
    client = client_of(bob)
    assert Page(client.get("/jobs/?state=running")).has("link", "Returning 2024")
    assert not Page(client.get("/jobs/?state=failed")).has("link", "Returning 2024")
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
            assert any("cohorts/" in one for one in links_of(client, page)) == is_linked, page
    Job.objects.filter(pk=job.pk).update(parameters={"cohort": str(ours.pk)})
    assert all(address in links_of(client, page) for page in pages)
    ours.delete()
    assert not any("cohorts/" in one for page in pages for one in links_of(client, page))


def links_of(client: Client, page: str) -> list[str]:
    return [link.address for link in Page(client.get(page)).one("main").every("link")]


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
    assert Page(client_of(alice).get("/help/")).has("link", "1 running")


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
    page = Page(client.get("/help/"))
    poll = "/jobs/bell/?ended=0"
    (bell,) = page.element.xpath("//a[@id='bell']")
    assert bell.get("hx-get") == poll  # it polls while a job of bob's runs
    assert not page.has("link", NEWS)
    assert client.get(poll).status_code == 204  # nothing new, so nothing is read aloud
    end(job)
    bell = Page(client.get(poll))
    assert bell.has("link", f"Jobs: 1 ended {NEWS}")
    assert "hx-get" not in bell.source
    assert not Page(client_of(alice).get("/help/")).has("link", NEWS)
    assert not Page(client.get("/jobs/")).has("link", NEWS)
    assert not Page(client.get("/help/")).has("link", NEWS)


def test_what_the_bell_counts_outlives_the_session(
    client_of: ClientOf, bob: User, job: Job
) -> None:
    """It used to count from sign-in: what had ended meanwhile was never told."""
    first = client_of(bob)
    first.get("/jobs/")
    first.post("/accounts/sign-out/")
    end(job)
    second = client_of(bob)
    assert Page(second.get("/help/")).has("link", f"Jobs: 1 ended {NEWS}")
    second.get("/jobs/")
    second.post("/accounts/sign-out/")
    assert not Page(client_of(bob).get("/help/")).has("link", NEWS)
    assert JobListVisit.objects.filter(user=bob).count() == 1


def test_a_list_that_polls_itself_is_not_opened_again(
    client_of: ClientOf, bob: User, job: Job
) -> None:
    client = client_of(bob)
    client.get("/jobs/")
    end(job)
    client.get("/jobs/", headers={"HX-Request": "true", "HX-Target": "job-list"})
    assert Page(client.get("/help/")).has("link", NEWS)


def test_the_bell_counts_for_each_organisation_by_itself(
    client_of: ClientOf, bob: User, job: Job, southgate: Organisation
) -> None:
    northfield = bob.organisation
    client_of(bob).get("/jobs/")
    end(job)
    User.objects.filter(pk=bob.pk).update(organisation=southgate)
    client = client_of(bob)
    assert not Page(client.get("/jobs/")).has("link", NEWS)
    assert not Page(client.get("/help/")).has("link", NEWS)
    User.objects.filter(pk=bob.pk).update(organisation=northfield)
    assert Page(client_of(bob).get("/help/")).has("link", f"1 ended {NEWS}")


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
    page = Page(client.get(reverse("jobs:job", args=[job.pk])))
    (badge,) = page.element.xpath(f"//*[@id='job-state-{job.pk}']")
    assert badge.get("hx-swap-oob") is None
    assert page.said_of("State") == "Queued"
    Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
    address = reverse("jobs:card", args=[job.pk])
    (card,) = page.element.xpath(f"//*[@id='job-{job.pk}']")
    assert card.get("hx-get") == f"{address}?reload=1&badge=1"
    answer = Page(client.get(f"{address}?badge=1", headers={"HX-Request": "true"}))
    (badge,) = answer.element.xpath(f"//*[@id='job-state-{job.pk}']")
    assert badge.get("hx-swap-oob") == "true"
    assert "Running" in badge.text_content()
    # A page that shows no badge is sent none: htmx calls a piece without a place an error.
    assert "job-state" not in Page(client.get(address, headers={"HX-Request": "true"})).source
