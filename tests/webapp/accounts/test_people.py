"""Managing the people of an organisation."""

import re
from collections.abc import Callable

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse

from tests.webapp.conftest import PASSWORD
from tests.webapp.roles import Page
from webapp.accounts.forms import SignInForm
from webapp.accounts.models import Role, User
from webapp.api.services import token_create, token_revoke
from webapp.audit.models import AuditLine

ClientOf = Callable[[User], Client]
PEOPLE = "/accounts/people/"


def actions_on(user: User) -> list[tuple[str, dict[str, str]]]:
    return [
        (reverse("accounts:change-role", args=[user.pk]), {"role": "administrator"}),
        (reverse("accounts:change-active", args=[user.pk]), {"active": "0"}),
        (reverse("accounts:reset-password", args=[user.pk]), {}),
    ]


def test_only_administrators_see_it(
    client_of: ClientOf, alice: User, bob: User, carol: User
) -> None:
    assert client_of(alice).get("/accounts/people/").status_code == 403
    assert client_of(bob).get("/accounts/people/").status_code == 403
    assert client_of(carol).get("/accounts/people/").status_code == 200


def test_it_lists_nobody_of_another_organisation(
    client_of: ClientOf, carol: User, bob: User, mallory: User
) -> None:
    page = Page(client_of(carol).get("/accounts/people/"))
    assert page.every("table")[0].has("row", "bob")
    assert "mallory" not in page.source


def test_it_validates_ownership(client_of: ClientOf, carol: User, mallory: User) -> None:
    before = User.objects.get(pk=mallory.pk)
    for url, values in actions_on(mallory):
        assert client_of(carol).post(url, values).status_code == 404
    after = User.objects.get(pk=mallory.pk)
    assert (after.role, after.is_active, after.password) == (
        before.role,
        before.is_active,
        before.password,
    )


def test_staff_cannot_change_roles(client_of: ClientOf, bob: User, alice: User) -> None:
    for url, values in [*actions_on(alice), *actions_on(bob)]:
        assert client_of(bob).post(url, values).status_code == 403
    bob.refresh_from_db()
    assert bob.role == Role.STAFF


def test_it_adds_a_person_who_must_change_the_password(
    client_of: ClientOf, carol: User, northfield: object
) -> None:
    response = client_of(carol).post("/accounts/people/", {"username": "dave", "role": "viewer"})
    password = re.search(r'class="id">([a-z0-9-]{19})<', response.content.decode())[1]
    dave = User.objects.get(username="dave")
    assert dave.organisation == carol.organisation
    assert dave.check_password(password)
    assert client_of(dave).get("/jobs/").url == reverse("accounts:password")
    assert AuditLine.objects.filter(verb="added user", target_name="dave").count() == 1


def test_a_taken_name_is_refused_even_from_another_organisation(
    client_of: ClientOf, carol: User, mallory: User
) -> None:
    response = client_of(carol).post("/accounts/people/", {"username": "Mallory", "role": "viewer"})
    assert response.status_code == 422
    name = Page(response, status=422).field("Sign-in name")
    assert "The name Mallory is taken" in name.description


def test_a_name_is_kept_as_signing_in_spells_it(client_of: ClientOf, carol: User) -> None:
    """“ﬁona”, with one letter for fi, could never sign in."""
    sent = {"username": "ﬁona", "role": "viewer"}
    page = Page(client_of(carol).post("/accounts/people/", sent))
    password = re.search(r'class="id">([a-z0-9-]{19})<', page.source)[1]
    form = SignInForm(RequestFactory().post("/"), {"username": "ﬁona", "password": password})
    assert form.is_valid(), form.errors
    assert form.get_user().username == "fiona"


@pytest.mark.parametrize("name", ["ﬃ" * 51, "ﷺ"], ids=["too long", "spaces"])
def test_a_name_that_grows_past_the_rules_is_refused(
    client_of: ClientOf, carol: User, name: str
) -> None:
    count = User.objects.count()
    response = client_of(carol).post("/accounts/people/", {"username": name, "role": "viewer"})
    assert response.status_code == 422
    assert User.objects.count() == count


def test_it_changes_a_role_and_records_both(client_of: ClientOf, carol: User, alice: User) -> None:
    url = reverse("accounts:change-role", args=[alice.pk])
    client_of(carol).post(url, {"role": "staff"})
    alice.refresh_from_db()
    assert alice.role == Role.STAFF
    line = AuditLine.objects.get(verb="changed role")
    assert line.details == {"before": "viewer", "after": "staff"}
    assert line.user == carol
    assert line.target_id == str(alice.pk)


@pytest.mark.parametrize(("name", "values"), [("change-role", {"role": "viewer"}),
                                              ("change-active", {"active": "0"})])  # fmt: skip
def test_the_last_administrator_stays(
    client_of: ClientOf, carol: User, name: str, values: dict[str, str]
) -> None:
    response = client_of(carol).post(
        reverse(f"accounts:{name}", args=[carol.pk]), values, follow=True
    )
    assert Page(response).one("alert").says("needs an administrator")
    carol.refresh_from_db()
    assert carol.role == Role.ADMINISTRATOR
    assert carol.is_active


def test_a_reset_ends_open_sessions(client_of: ClientOf, carol: User, bob: User) -> None:
    bobs = client_of(bob)
    assert bobs.get("/").status_code == 200
    client_of(carol).post(reverse("accounts:reset-password", args=[bob.pk]))
    assert bobs.get("/").status_code == 302


def test_a_reset_names_the_tokens_that_it_does_not_end(
    client_of: ClientOf, carol: User, bob: User
) -> None:
    """Sessions end, and whoever reset a password because it was stolen thought that all had."""
    address = reverse("accounts:reset-password", args=[bob.pk])
    assert not Page(client_of(carol).post(address)).says("API token")
    for name in ("sync", "old"):
        token, _ = token_create(user=bob, name=name, days=30, may_change=False)
    page = Page(client_of(carol).post(address))
    assert page.has("status", "2 API tokens of this person still work:")
    token_revoke(user=bob, token=token)
    page = Page(client_of(carol).post(address))
    assert page.has("status", "1 API token of this person still works:")
    assert page.one("link", "revoke what others may have read").address == reverse("api:tokens")


def test_a_new_password_of_ones_own_names_them_too(client_of: ClientOf, bob: User) -> None:
    token_create(user=bob, name="sync", days=30, may_change=False)
    fields = {"old_password": PASSWORD, "new_password1": "x-lamp-77-orbit"}
    page = client_of(bob).post(
        "/accounts/password/", {**fields, "new_password2": "x-lamp-77-orbit"}, follow=True
    )
    assert Page(page).one("status").says("Password changed. Your 1 API token still works.")


def test_the_rail_leads_nobody_to_a_page_that_is_refused(
    client_of: ClientOf, alice: User, bob: User, carol: User
) -> None:
    """Viewers used to see the audit log there, and got 403 for it."""
    for user, links in ((alice, set()), (bob, {"/audit/"}), (carol, {"/audit/", PEOPLE})):
        rail = Page(client_of(user).get("/help/")).one("navigation", "Main")
        assert {link.address for link in rail.every("link")} & {"/audit/", PEOPLE} == links


def test_who_is_alone_is_asked_to_add_the_others(client_of: ClientOf, carol: User) -> None:
    client = client_of(carol)
    assert [s.url for s in client.get("/").context["steps"]][:1] == [PEOPLE]
    client.post(PEOPLE, {"username": "dave", "role": "staff"})
    assert PEOPLE not in [s.url for s in client.get("/").context["steps"]]
