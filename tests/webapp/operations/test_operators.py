"""Only operators see the installation, whatever the role and organisation of others."""

from collections.abc import Callable
from importlib import import_module
from io import StringIO
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.conftest import PASSWORD, make_user
from tests.webapp.factories.programs import Program
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, Role, User
from webapp.accounts.services import AccountError, user_reset_password
from webapp.api.services import token_create
from webapp.audit.models import AuditLine
from webapp.identity.models import IdentityProvider, ProviderAccount
from webapp.identity.second_factor import second_factor_remove
from webapp.jobs.endings import job_fail
from webapp.jobs.failures import INTERRUPTED
from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.services import job_cancel
from webapp.monitoring import readiness
from webapp.operations.jobs import BACKUP
from webapp.operations.models import AlertReader
from webapp.operations.services import backup_start, worker_forget
from webapp.webhooks.models import Webhook

ClientOf = Callable[[User], Client]
HOST = "rack-7.north.internal"
OF_HOSTS = (HOST, "Hosts and workers", "Back up now", "Database", "Memory", "Alert me", "Broker")


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "checks", {})
    monkeypatch.setattr(readiness, "_last", None)


@pytest.fixture
def worker(db: None) -> Worker:
    return Worker.objects.create(name=f"short-a1@{HOST}", processes=2, seen_at=timezone.now())


@pytest.fixture
def sam(southgate: Organisation) -> User:
    """An administrator of another organisation."""
    return make_user("sam", southgate, Role.ADMINISTRATOR)


@pytest.fixture
def olga(southgate: Organisation) -> User:
    """An operator who belongs to another organisation, where she only looks."""
    user = make_user("olga", southgate, Role.VIEWER)
    User.objects.filter(pk=user.pk).update(is_operator=True)
    return User.objects.get(pk=user.pk)


def acts(worker: Worker) -> list[tuple[str, dict[str, str]]]:
    return [
        (reverse("operations:back-up"), {}),
        (reverse("operations:forget", args=[worker.pk]), {}),
        (reverse("operations:alert-me"), {"address": "a@north.edu"}),
        (reverse("operations:alert-me-no-more"), {}),
    ]


@pytest.mark.parametrize("who", ["alice", "bob", "carol", "mallory", "sam"])
def test_nobody_else_may_act(
    who: str, request: pytest.FixtureRequest, client_of: ClientOf, worker: Worker
) -> None:
    client = client_of(request.getfixturevalue(who))
    for address, data in acts(worker):
        assert client.post(address, data).status_code == 403, address
        assert client.get(address).status_code in (403, 405), address
    assert Worker.objects.exists()
    assert not Job.objects.exists()
    assert not AlertReader.objects.exists()


def test_visitors_and_students_are_sent_to_sign_in(client: Client, worker: Worker) -> None:
    assert client.get(reverse("operations:page")).status_code == 302
    for address, data in acts(worker):
        assert client.post(address, data).url.startswith("/accounts/sign-in/")
    assert not Job.objects.exists()


@pytest.mark.parametrize("who", ["otto", "olga"])
def test_operators_of_every_organisation_may(
    who: str, request: pytest.FixtureRequest, client_of: ClientOf, worker: Worker
) -> None:
    client = client_of(request.getfixturevalue(who))
    text = Page(client.get(reverse("operations:page")))
    assert all(text.says(words) for words in OF_HOSTS)
    assert Page(client.get("/")).one("link", "Operations").address == "/operations/"
    for address, data in acts(worker):
        assert client.post(address, data).status_code == 302, address
    assert not Worker.objects.exists()
    assert Job.objects.filter(kind=BACKUP).count() == 1


@pytest.mark.parametrize("who", ["carol", "sam"])
def test_administrators_see_their_organisation_and_how_to_become_one(
    who: str,
    request: pytest.FixtureRequest,
    client_of: ClientOf,
    otto: User,
    worker: Worker,
) -> None:
    backup_start(user=otto)
    text = Page(client_of(request.getfixturevalue(who)).get(reverse("operations:page")))
    assert text.section("Servers, workers and backups").says("manage.py make_operator NAME")
    assert text.has("heading", "Your jobs")
    assert text.one("row", "Files of an organisation").says("ORGANISATION_QUOTA_GB")
    assert not [words for words in (*OF_HOSTS, "MIN_FREE_GB", "hall-") if words in text.source]
    assert "has no operator yet" not in text.source


def test_the_page_says_that_there_is_no_operator(carol: User, client_of: ClientOf) -> None:
    text = Page(client_of(carol).get(reverse("operations:page")))
    section = text.section("Servers, workers and backups")
    assert section.says("This installation has no operator yet.")


@pytest.mark.parametrize("who", ["alice", "bob", "mallory"])
def test_staff_and_viewers_see_no_page(
    who: str, request: pytest.FixtureRequest, client_of: ClientOf
) -> None:
    client = client_of(request.getfixturevalue(who))
    assert client.get(reverse("operations:page")).status_code == 403
    assert "/operations/" not in Page(client.get("/")).source


def test_a_backup_is_a_job_of_operators_alone(
    otto: User, carol: User, bob: User, sam: User, client_of: ClientOf
) -> None:
    job = backup_start(user=otto)
    own = [reverse(f"jobs:{name}", args=[job.pk]) for name in ("job", "card", "convergence")]
    for person in (carol, bob, sam):
        client = client_of(person)
        assert "hall-" not in Page(client.get(reverse("jobs:list"))).source
        assert "hall-" not in Page(client.get("/")).source
        assert [client.get(address).status_code for address in own] == [404] * 3
        assert client.post(reverse("jobs:cancel", args=[job.pk])).status_code == 404
    client = client_of(otto)
    assert Page(client.get(reverse("jobs:list"))).has("link", "hall-")
    assert [client.get(address).status_code for address in own] == [200] * 3
    client.post(reverse("jobs:cancel", args=[job.pk]))
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_programs_see_no_backup_of_others(otto: User, carol: User) -> None:
    job = backup_start(user=otto)
    for person, status, number in ((carol, 404, 0), (otto, 200, 1)):
        program = Program(token_create(user=person, name="p", days=30, may_change=True)[1])
        assert len(program.call("GET", "/jobs").data["items"]) == number
        for path in (f"/jobs/{job.pk}", f"/jobs/{job.pk}/trace"):
            assert program.call("GET", path).status_code == status
        assert program.call("POST", f"/jobs/{job.pk}/cancel").status_code == status


@pytest.mark.parametrize(("kind", "told"), [(BACKUP, 0), ("roommates.of_before", 1)])
def test_webhooks_of_the_organisation_hear_of_no_backup(otto: User, kind: str, told: int) -> None:
    where = {"organisation": otto.organisation}
    hook = Webhook.objects.create(
        url="https://127.0.0.1/", events=["job.failed"], nonce="n", **where
    )
    job = Job.objects.create(
        kind=kind, title="hall-1.tar", seed=1, state=JobState.RUNNING, claim=uuid4(), **where
    )
    assert job_fail(job=job, failure=INTERRUPTED)
    assert hook.deliveries.count() == told


def test_the_audit_log_names_hosts_and_backups_to_operators_alone(
    otto: User, carol: User, client_of: ClientOf, worker: Worker
) -> None:
    worker_forget(user=otto, worker=worker)
    job_cancel(user=otto, job=backup_start(user=otto))
    assert AuditLine.objects.filter(is_of_installation=True).count() == 3
    pages = [reverse("audit:log"), reverse("audit:export"), reverse("accounts:people")]
    for address in pages:
        text = client_of(carol).get(address).getvalue().decode()
        assert HOST not in text, address
        assert "hall-" not in text, address
    log = Page(client_of(otto).get(pages[0]))
    assert log.has("row", HOST) or log.has("listitem", HOST)
    assert log.says("hall-")


def test_lines_and_accounts_of_before_are_sorted_by_the_migration(
    otto: User, carol: User, worker: Worker
) -> None:
    worker_forget(user=otto, worker=worker)
    job_cancel(user=otto, job=backup_start(user=otto))
    AuditLine.objects.update(is_of_installation=False)
    User.objects.filter(pk=carol.pk).update(is_superuser=True)
    editor = SimpleNamespace(connection=connection)
    import_module("webapp.audit.migrations.0002_of_installation").mark(apps, editor)
    assert AuditLine.objects.filter(is_of_installation=True).count() == 3
    import_module("webapp.accounts.migrations.0004_operators").from_superusers(apps, editor)
    names = User.objects.filter(is_operator=True).values_list("username", flat=True)
    assert set(names) == {"carol", "otto"}


def test_an_administrator_cannot_become_an_operator_by_the_account_of_one(
    otto: User, carol: User, client_of: ClientOf
) -> None:
    before = otto.password
    with pytest.raises(AccountError, match="otto is an operator of the installation"):
        user_reset_password(by=carol, user=otto)
    with pytest.raises(AccountError, match="otto is an operator of the installation"):
        second_factor_remove(by=carol, user=otto)
    client = client_of(carol)
    for name in ("accounts:reset-password", "identity:remove-second-factor"):
        answer = client.post(reverse(name, args=[otto.pk]), follow=True)
        assert Page(answer).one("alert").says("is an operator of the installation")
    otto.refresh_from_db()
    assert otto.password == before


def test_no_form_gives_the_right(carol: User, bob: User, client_of: ClientOf) -> None:
    client = client_of(carol)
    client.post(reverse("accounts:settings"), {"theme": "light", "is_operator": "1"})
    client.post(
        reverse("accounts:people"), {"username": "dave", "role": "staff", "is_operator": "1"}
    )
    for value in ("operator", "administrator"):
        address = reverse("accounts:change-role", args=[bob.pk])
        client.post(address, {"role": value, "is_operator": "1"})
    assert User.objects.filter(username="dave").exists()
    assert not User.objects.filter(is_operator=True).exists()


def say(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_the_command_gives_and_takes_the_right(bob: User) -> None:
    assert "bob is an operator of this installation." in say("make_operator", "bob")
    bob.refresh_from_db()
    assert bob.is_operator
    assert "bob is no longer an operator." in say("make_operator", "bob", "--remove")
    bob.refresh_from_db()
    assert not bob.is_operator
    verbs = AuditLine.objects.filter(target_name="bob").values_list("verb", flat=True)
    assert set(verbs) == {"made operator", "made no operator"}
    with pytest.raises(CommandError, match="No account is called nobody"):
        say("make_operator", "nobody")


def test_who_comes_by_a_provider_or_belongs_nowhere_is_no_operator(bob: User, carol: User) -> None:
    provider = IdentityProvider.objects.create(
        organisation=bob.organisation, created_by=carol, name="P", protocol="openid_connect"
    )
    ProviderAccount.objects.create(user=bob, provider=provider, checked_at=timezone.now())
    with pytest.raises(CommandError, match="signs in by P"):
        say("make_operator", "bob")
    User.objects.create_superuser("root", password=PASSWORD)
    with pytest.raises(CommandError, match="belongs to no organisation"):
        say("make_operator", "root")


def test_the_first_administrator_may_be_an_operator(db: None) -> None:
    say("make_organisation", "Lakeside", "--administrator", "lena")
    say("make_organisation", "Hillside", "--administrator", "hugo", "--operator")
    assert list(User.objects.filter(is_operator=True).values_list("username", flat=True)) == [
        "hugo"
    ]
