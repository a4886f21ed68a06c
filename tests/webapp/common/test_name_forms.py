"""New names and removals: a refused name is shown again, beside the reason."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.placed import placed_cohort
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common import kept_forms
from webapp.encryption.fields import MARK
from webapp.housing.models import BuildingList, Placement
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]
NAMED = {
    "cohorts:rename": ("cohorts:purge", Cohort),
    "housing:buildings-rename": ("housing:buildings-remove", BuildingList),
    "housing:placement-rename": ("housing:placement-delete", Placement),
    "matching:model-rename": ("matching:model-delete", LearnedModel),
}


@pytest.fixture
def keys(bob: User) -> dict[type, object]:
    placement = placed_cohort(bob)
    return {
        Cohort: placement.cohort_id,
        BuildingList: placement.buildings_id,
        Placement: placement.pk,
        LearnedModel: placement.model_id,
    }


@pytest.mark.parametrize("name", NAMED)
def test_a_refused_name_stays_beside_its_reason(
    client_of: ClientOf, bob: User, keys: dict[type, object], name: str
) -> None:
    model = NAMED[name][1]
    url, client = reverse(name, args=[keys[model]]), client_of(bob)
    before = model.objects.get(pk=keys[model]).name
    long = "x" * 121
    check_refused(client.post(url, {"name": long}), {"name": long}, field="name", error="at most")
    check_refused(client.post(url, {"name": ""}), {}, field="name", error="required")
    assert model.objects.get(pk=keys[model]).name == before
    check_outlives_a_session(client_of, bob, url, {"name": "A new name"})
    assert client.post(url, {"name": "A new name"}).status_code == 302
    assert model.objects.get(pk=keys[model]).name == "A new name"
    page = client.get(url)
    assert page.context["form"]["name"].value() == "A new name"


@pytest.mark.parametrize("name", ["cohorts:rename", "housing:buildings-rename"])
def test_a_taken_name_stays_beside_its_reason(
    client_of: ClientOf, bob: User, keys: dict[type, object], name: str
) -> None:
    model = NAMED[name][1]
    model.objects.create(organisation=bob.organisation, name="Taken", **_fields(model))
    page = client_of(bob).post(reverse(name, args=[keys[model]]), {"name": "Taken"})
    check_refused(page, {"name": "Taken"}, field="name", error="There is already a")


def _fields(model: type) -> dict[str, object]:
    return {"questions": [], "n_students": 1} if model is Cohort else {}


@pytest.mark.parametrize("name", NAMED)
def test_a_wrong_name_removes_nothing(
    client_of: ClientOf, carol: User, keys: dict[type, object], name: str
) -> None:
    removal, model = NAMED[name]
    page = client_of(carol).post(reverse(removal, args=[keys[model]]), {"name": "Frist-years"})
    check_refused(page, {"name": "Frist-years"}, field="name", error="does not match")
    assert model.objects.filter(pk=keys[model]).exists()


def test_kept_fields_are_encrypted(
    client_of: ClientOf, bob: User, keys: dict[type, object], settings: object
) -> None:
    settings.ENCRYPTION_KEYS = ["KJ8Vc0j9hX2m1b0y3nq6r5tWlQz4sD7fGhJkLpOiUyE="]
    client = client_of(bob)
    client.logout()
    client.post(reverse("cohorts:rename", args=[keys[Cohort]]), {"name": "A secret"})
    kept = client.session[kept_forms._KEY]
    assert kept["fields"].startswith(MARK)
    assert "A secret" not in str(kept)


def test_one_address_fills_only_some_sessions(
    keys: dict[type, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every form that is sent without a session is kept in a new one."""
    monkeypatch.setattr(kept_forms, "MOST_OF_ADDRESS", 2)
    url = reverse("cohorts:rename", args=[keys[Cohort]])

    def send(address: str) -> bool:
        sent = Client(REMOTE_ADDR=address).post(url, {"name": "Much text"})
        assert sent.status_code == 302
        return "kept=1" in sent["Location"]

    assert [send("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert send("192.0.2.2")
    monkeypatch.setattr(kept_forms, "MOST_OF_ALL", 3)
    assert not send("192.0.2.3")
