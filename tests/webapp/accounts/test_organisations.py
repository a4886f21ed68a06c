"""Organisations of one's own: made by a command, renamed on the page of people."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, Role, User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.demonstration.management.commands.load_demonstration import ORGANISATION

ClientOf = Callable[[User], Client]
RENAME = "/accounts/organisation/rename/"


def test_it_makes_an_organisation_whose_administrator_invites(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("make_organisation", "Lakeside  College", "--administrator=erin")
    password = re.search(r"erin signs in with ([a-z0-9-]{19})", capsys.readouterr().out)[1]
    erin = User.objects.get(username="erin")
    assert (erin.organisation.name, erin.role) == ("Lakeside College", Role.ADMINISTRATOR)
    line = AuditLine.objects.get(verb="made")
    assert (line.username, line.organisation) == ("system", erin.organisation)
    client = Client()
    assert client.post("/accounts/sign-in/", {"username": "erin", "password": password}).url == "/"
    assert client.get("/").url == "/accounts/password/"
    own = {"new_password1": "x-lamp-77-orbit", "new_password2": "x-lamp-77-orbit"}
    assert client.post("/accounts/password/", {"old_password": password, **own}).url == "/"
    assert AuditLine.objects.get(verb="changed password").user == erin
    client.post("/accounts/people/", {"username": "frank", "role": "staff"})
    assert User.objects.get(username="frank").organisation == erin.organisation


@pytest.mark.parametrize(
    ("name", "person", "sentence"),
    [("Northfield", "erin", "The name Northfield is taken"), ("Lakeside", "Bob", "Bob is taken"),
     (" ", "erin", "needs a name"), ("Lakeside", "a b", "valid username")],
)  # fmt: skip
def test_what_cannot_be_made_changes_nothing(
    bob: User, name: str, person: str, sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("make_organisation", name, "--administrator", person)
    assert (Organisation.objects.count(), User.objects.count()) == (1, 1)


def test_administrators_rename_their_own_organisation(
    client_of: ClientOf, carol: User, bob: User, southgate: Organisation
) -> None:
    sent = {"name": "Lakeside College", "department": "Halls"}
    assert client_of(bob).post(RENAME, sent).status_code == 403
    page = Page(client_of(carol).post(RENAME, sent, follow=True))
    assert page.one("status").says("The organisation was changed.")
    names = Organisation.objects.values_list("name", "department").order_by("name")
    assert list(names) == [("Lakeside College", "Halls"), ("Southgate", "Housing")]
    line = AuditLine.objects.get(verb="renamed")
    assert (line.username, line.target_name) == ("carol", "Lakeside College")
    assert line.details == {"before": "Northfield", "department": "Halls"}
    assert Page(client_of(bob).get("/")).has("heading", "Lakeside College")


def test_a_rename_writes_nothing_but_the_names(client_of: ClientOf, carol: User) -> None:
    """It used to write back how much was stored when the row was read, and uploads went on."""
    client = client_of(carol)
    with CaptureQueriesContext(connection) as queries:
        client.post(RENAME, {"name": "Lakeside College"})
    start = 'UPDATE "accounts_organisation"'
    (written,) = [query["sql"] for query in queries if query["sql"].startswith(start)]
    assert "Lakeside College" in written
    assert "stored" not in written


@pytest.mark.parametrize(("name", "words"), [("Southgate", "is taken"), ("  ", "needs a name")])
def test_a_name_that_cannot_be_is_refused(
    client_of: ClientOf, carol: User, southgate: Organisation, name: str, words: str
) -> None:
    page = Page(client_of(carol).post(RENAME, {"name": name}, follow=True), status=422)
    assert page.one("main").says(words)
    assert AuditLine.objects.filter(verb="renamed").count() == 0
    assert Organisation.objects.filter(name="Northfield", department="Residential Life").exists()


@pytest.fixture
def instance(settings: object, tmp_path: Path) -> Path:
    settings.INSTANCE_DIR = tmp_path
    return tmp_path


def test_the_demonstration_is_loaded_at_the_first_start_only(db: None, instance: Path) -> None:
    """Each update of the code used to bring back what had been purged."""
    call_command("load_demonstration", "--only-first")
    Cohort.objects.first().delete()
    call_command("load_demonstration", "--only-first")
    assert Cohort.objects.count() == 2
    call_command("load_demonstration")
    assert Cohort.objects.count() == 3


def test_a_renamed_demonstration_stays_one_organisation(db: None, instance: Path) -> None:
    """It used to be made twice, and then the names of its cohorts were taken."""
    call_command("load_demonstration")
    Organisation.objects.update(name="Lakeside College")
    call_command("load_demonstration")
    assert Organisation.objects.get().name == "Lakeside College"
    assert Cohort.objects.count() == 3


def test_the_demonstrations_name_is_not_suggested_for_ones_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its name is taken wherever it is loaded."""
    with pytest.raises(SystemExit):
        call_command("make_organisation", "--help")
    words = capsys.readouterr().out
    assert "Lakeside College" in words
    assert ORGANISATION not in words


def test_whoever_was_added_to_a_closed_demonstration_is_named(
    db: None, instance: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """README said that nobody signs in to it any more, and they still did."""
    call_command("load_demonstration")
    organisation = Organisation.objects.get()
    frank = User.objects.create_user(username="frank", organisation=organisation)
    call_command("close_demonstration")
    said = capsys.readouterr().out
    assert "demo-admin cannot sign in any more." in said
    assert "Others of their organisation still can: frank." in said
    assert User.objects.get(is_active=True) == frank


def test_nobody_signs_in_as_the_people_of_a_closed_demonstration(db: None, instance: Path) -> None:
    call_command("load_demonstration")
    words = (instance / "demonstration_password").read_text()
    client = Client()
    sent = {"username": "demo-admin", "password": words}
    assert client.post(reverse("accounts:sign-in"), sent).status_code == 302
    call_command("close_demonstration")
    assert client.get("/").status_code == 302
    assert Client().post(reverse("accounts:sign-in"), sent).status_code == 200
    assert AuditLine.objects.filter(verb="switched off", username="system").count() == 3
    call_command("load_demonstration")  # its people are there, so no password is made
    assert not (instance / "demonstration_password").exists()
