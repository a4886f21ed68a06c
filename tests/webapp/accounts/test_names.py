"""Sign-in names: one person whatever the capitals, letters of one alphabet, no look-alikes."""

from collections.abc import Callable
from importlib import import_module
from io import StringIO
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client, RequestFactory

from tests.webapp.conftest import PASSWORD, make_user
from tests.webapp.roles import Page
from webapp.accounts import services
from webapp.accounts.models import Organisation, Role, User
from webapp.accounts.names import check_alphabet, sign_in_key
from webapp.accounts.services import AccountError, user_reset_password

ClientOf = Callable[[User], Client]
SIGN_IN = "/accounts/sign-in/"
LOOKALIKE = "\u0430lice"  # a Cyrillic a, then Latin letters


def enter(name: str, password: str = PASSWORD) -> Client | None:
    """A browser in which somebody signed in, None if the page refused it."""
    client = Client()
    answer = client.post(SIGN_IN, {"username": name, "password": password})
    return client if answer.status_code == 302 else None


@pytest.mark.parametrize(
    ("made", "typed"),
    [
        ("bob", "BOB"),
        ("Bob.Berg@North.edu", "bob.berg@north.EDU"),
        ("Ольга", "ОЛЬГА"),
        ("straße", "STRASSE"),
        ("ΣΟΦΟΣ", "σοφος"),
        ("bob", "ｂｏｂ"),
    ],
)
def test_a_name_signs_in_whatever_its_capitals(
    northfield: Organisation, made: str, typed: str
) -> None:
    make_user(made, northfield, Role.STAFF)
    client = enter(typed)
    assert client is not None
    assert client.get("/accounts/settings/").status_code == 200
    assert enter(made) is not None


def test_a_name_is_taken_whatever_its_capitals(
    client_of: ClientOf, carol: User, northfield: Organisation, southgate: Organisation
) -> None:
    make_user("Ольга", southgate, Role.STAFF)
    answer = client_of(carol).post("/accounts/people/", {"username": "ольга", "role": "staff"})
    assert answer.status_code == 422
    assert "taken" in Page(answer, status=422).field("Sign-in name").description
    with pytest.raises(AccountError, match="is taken"):
        services.user_create(by=carol, username="ОЛЬГА", role=Role.STAFF)
    with pytest.raises(IntegrityError), transaction.atomic():
        make_user("ОЛЬГА", northfield, Role.STAFF)
    with pytest.raises(CommandError, match="taken"):
        call_command("make_organisation", "Lakeside", "--administrator", "CAROL")


def test_a_superuser_takes_no_name_of_other_capitals_or_alphabets(carol: User) -> None:
    options = {"interactive": False, "email": "r@north.edu", "stdout": StringIO()}
    for name, words in (("CAROL", "taken"), (LOOKALIKE, "one alphabet")):
        with pytest.raises(CommandError, match=words):
            call_command("createsuperuser", username=name, **options)
    call_command("createsuperuser", username="root", **options)
    assert User.objects.filter(username="root", is_superuser=True).exists()


def test_capitals_give_no_further_tries(bob: User) -> None:
    for name in ("bob", "Bob", "BOB", "bOb", "boB"):
        assert enter(name, "wrong") is None
    client = Client()
    assert client.post(SIGN_IN, {"username": "BoB", "password": PASSWORD}).status_code == 429


def test_a_new_password_unlocks_a_name_with_capitals(northfield: Organisation, carol: User) -> None:
    dora = make_user("Dora", northfield, Role.STAFF)
    for _ in range(5):
        enter("dora", "wrong")
    assert enter("dora") is None
    password = user_reset_password(by=carol, user=dora)
    assert enter("DORA", password) is not None


def test_two_names_of_before_that_differ_in_capitals_both_sign_in(
    northfield: Organisation, southgate: Organisation
) -> None:
    """As the database of an earlier version may hold them; each has a password of its own."""
    older = make_user("Anna", northfield, Role.STAFF)
    newer = make_user("anna-2", southgate, Role.STAFF)
    other = make_user("Zoé", southgate, Role.STAFF)
    newer.set_password("another-lamp-orbit-43")
    newer.save()
    User.objects.filter(pk=newer.pk).update(username="anna")
    User.objects.update(name_key=None)
    editor = SimpleNamespace(connection=connection)
    import_module("webapp.accounts.migrations.0005_names_and_sign_in_codes").fill(apps, editor)
    keys = dict(User.objects.values_list("pk", "name_key"))
    assert keys == {older.pk: "anna", newer.pk: None, other.pk: sign_in_key("zoé")}
    request = RequestFactory().post(SIGN_IN)
    found = {
        name: authenticate(request, username=name, password=password)
        for name, password in (("Anna", PASSWORD), ("anna", "another-lamp-orbit-43"))
    }
    assert found == {"Anna": older, "anna": newer}
    newer.refresh_from_db()
    newer.first_name = "Anna"
    newer.save()
    assert User.objects.get(pk=newer.pk).name_key is None
    with pytest.raises(IntegrityError), transaction.atomic():
        make_user("ANNA", northfield, Role.STAFF)


@pytest.mark.parametrize("name", [LOOKALIKE, "p\u0430ypal", "bοb", "Ольгa", "ադmin", "ivanов"])
def test_a_name_of_two_alphabets_is_refused_in_one_sentence(
    client_of: ClientOf, carol: User, name: str
) -> None:
    answer = client_of(carol).post("/accounts/people/", {"username": name, "role": "staff"})
    sentence = Page(answer, status=422).field("Sign-in name").description
    assert "A sign-in name has letters of one alphabet" in sentence
    assert "Latin" in sentence
    assert not User.objects.filter(username=name).exists()


@pytest.mark.parametrize(
    "name",
    ["alice", "Ольга", "ольга.2@вуз.рф", "Σοφία", "María-José", "Zoë", "straße", "محمد", "दीपिका",
     "นภา", "田中", "たなか_ユーミ", "佐々木", "tanaka-田中", "김민수",
     "ʻiolani", "o\u02bcbrien", "1984", "a_b"],
)  # fmt: skip
def test_names_of_one_alphabet_are_fine(name: str) -> None:
    check_alphabet(name)


def test_full_width_letters_are_the_plain_ones() -> None:
    check_alphabet("ａlice")
    with pytest.raises(ValidationError):
        check_alphabet("ａl\u0456ce")
