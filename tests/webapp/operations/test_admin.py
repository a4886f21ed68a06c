"""Django's admin for operators: off by default, closed to all others, without personal fields."""

from collections.abc import Callable
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.conf import LazySettings
from django.db import models
from django.test import Client
from django.urls import Resolver404, clear_url_caches, resolve, reverse
from django.utils import timezone

from tests.webapp.conftest import make_user
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, Role, User
from webapp.audit.models import AuditLine
from webapp.common.outgoing import Outgoing
from webapp.encryption.fields import SealedJSONField, SealedKeyField, SealedTextField
from webapp.operations.admin import RowAdmin, site
from webapp.operations.models import Alert, AlertMail
from webapp.webhooks.models import Delivery, Webhook

ClientOf = Callable[[User], Client]
ROWS = "/operations/rows/"


@pytest.fixture
def switched_on(settings: LazySettings) -> None:
    settings.OPERATOR_ADMIN = True
    settings.ROOT_URLCONF = "tests.webapp.operations.admin_addresses"
    clear_url_caches()


def test_it_is_off_by_default(client_of: ClientOf, otto: User, settings: LazySettings) -> None:
    assert not settings.OPERATOR_ADMIN
    with pytest.raises(Resolver404):
        resolve(ROWS)
    assert client_of(otto).get(ROWS).status_code == 404
    assert not Page(client_of(otto).get("/operations/")).has("link", "Rows of tables")


def test_its_addresses_are_closed_while_the_setting_is_off(
    client_of: ClientOf, otto: User, switched_on: None, settings: LazySettings
) -> None:
    settings.OPERATOR_ADMIN = False
    assert client_of(otto).get(ROWS).status_code == 404


@pytest.mark.parametrize("who", ["alice", "bob", "carol", "mallory"])
def test_no_administrator_of_an_organisation_reaches_it(
    who: str, request: pytest.FixtureRequest, client_of: ClientOf, switched_on: None
) -> None:
    client = client_of(request.getfixturevalue(who))
    carol = request.getfixturevalue("carol")
    for address in (ROWS, f"{ROWS}accounts/", f"{ROWS}jobs/job/", _row(carol), f"{ROWS}nothing/"):
        assert client.get(address).status_code == 404, address
        assert client.post(address, {}).status_code == 404, address
    assert not AuditLine.objects.filter(verb__in=["listed rows", "looked at a row"]).exists()


def test_a_superuser_who_is_no_operator_does_not_reach_it(
    client_of: ClientOf, carol: User, switched_on: None
) -> None:
    User.objects.filter(pk=carol.pk).update(is_superuser=True, is_staff=True)
    assert client_of(User.objects.get(pk=carol.pk)).get(ROWS).status_code == 404


def test_visitors_are_led_to_the_page_of_the_product(client: Client, switched_on: None, db: None):
    answer = client.get(ROWS)
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("accounts:sign-in"))


def test_every_list_opens_for_operators_and_is_audited(
    client_of: ClientOf, otto: User, switched_on: None
) -> None:
    client = client_of(otto)
    assert client.get(ROWS).status_code == 200
    for model in site._registry:
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        assert client.get(address).status_code == 200, address
        assert client.get(f"{address}add/").status_code == 404
    lines = AuditLine.objects.filter(verb="listed rows")
    assert lines.count() == len(site._registry)
    assert all(line.is_of_installation for line in lines)


def test_no_sealed_or_personal_column_is_shown() -> None:
    sealed = SealedJSONField | SealedKeyField | SealedTextField
    personal = {"email", "first_name", "last_name", "address", "subject", "text", "body", "title"}
    personal |= {"password", "digest", "nonce", "parameters", "result", "sentence", "answers"}
    for model, row_admin in site._registry.items():
        assert isinstance(row_admin, RowAdmin)
        assert row_admin.shown
        for name in row_admin.shown:
            assert not isinstance(model._meta.get_field(name), sealed), (model, name)
            assert name not in personal, (model, name)


def test_a_look_at_a_row_is_read_by_the_administrators_of_its_organisation(
    client_of: ClientOf, otto: User, southgate: Organisation, switched_on: None
) -> None:
    sam = make_user("sam", southgate, Role.ADMINISTRATOR)
    User.objects.filter(pk=sam.pk).update(email="sam@south.edu", first_name="Samantha")
    page = Page(client_of(otto).get(_row(sam)))
    assert "sam@south.edu" not in page.source
    assert "Samantha" not in page.source
    line = AuditLine.objects.get(verb="looked at a row")
    assert (line.organisation, line.user, line.target_name) == (southgate, otto, f"user {sam.pk}")
    assert not line.is_of_installation


def test_a_row_cannot_be_changed_or_removed(
    client_of: ClientOf, otto: User, carol: User, switched_on: None
) -> None:
    client = client_of(otto)
    assert client.post(_row(carol), {"role": "viewer"}).status_code == 403
    assert client.post(_row(carol).replace("change", "delete"), {"post": "yes"}).status_code == 404
    assert User.objects.get(pk=carol.pk).role == Role.ADMINISTRATOR


def test_a_lock_after_failed_sign_ins_is_ended(
    client_of: ClientOf, otto: User, carol: User, switched_on: None
) -> None:
    AccessAttempt.objects.create(username="carol", ip_address="192.0.2.1", failures_since_start=5)
    AccessAttempt.objects.create(username="bob", ip_address="192.0.2.1", failures_since_start=5)
    _act(client_of(otto), User, "unlock", carol)
    assert [attempt.username for attempt in AccessAttempt.objects.all()] == ["bob"]
    assert AuditLine.objects.get(verb="unlocked sign-in").organisation == carol.organisation


def test_a_message_that_failed_is_due_again_and_one_being_sent_is_left(
    client_of: ClientOf, otto: User, mallory: User, switched_on: None
) -> None:
    hook = Webhook.objects.create(
        organisation=mallory.own_organisation, url="https://a.example/", events=["job.failed"]
    )
    rows = [
        Delivery.objects.create(
            webhook=hook, event="job.failed", body="{}", state=state, attempts=5
        )
        for state in (Outgoing.FAILED, Outgoing.SENDING, Outgoing.SENT)
    ]
    _act(client_of(otto), Delivery, "try_again", *rows)
    states = list(Delivery.objects.order_by("pk").values_list("state", "attempts"))
    assert states == [("waiting", 0), ("sending", 5), ("sent", 5)]
    line = AuditLine.objects.get(verb="tried again")
    assert line.organisation == mallory.organisation


def test_rows_of_the_installation_are_audited_for_operators_alone(
    client_of: ClientOf, otto: User, switched_on: None
) -> None:
    alert = Alert.objects.create(key="room", title="No room", began_at=timezone.now())
    mail = AlertMail.objects.create(alert=alert, user=otto, address="o@north.edu", subject="s")
    page = Page(client_of(otto).get(_row(mail)))
    assert "o@north.edu" not in page.source
    assert AuditLine.objects.get(verb="looked at a row").is_of_installation


def _row(row: models.Model) -> str:
    return f"{ROWS}{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"


def _act(client: Client, model: Any, action: str, *rows: models.Model) -> None:
    address = f"{ROWS}{model._meta.app_label}/{model._meta.model_name}/"
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    assert client.post(address, data).status_code == 302
