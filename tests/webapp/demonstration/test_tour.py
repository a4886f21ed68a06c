"""Home's panel of the demonstration, the people who see it, and the tour."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.demonstration.conftest import advance_while_it_can
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.demonstration.models import ClosedTour, DemonstrationResult, ResultState
from webapp.demonstration.tour import STEPS
from webapp.surveys.models import Questionnaire

ClientOf = Callable[[User], Client]


def page(client: Client, address: str) -> Page:
    return Page(client.get(address))


def test_home_says_what_is_being_prepared(client_of: ClientOf, planned: User) -> None:
    advance_while_it_can()
    home = page(client_of(planned), "/")
    assert home.has("heading", "Preparing the demonstration: 1 of 7 ready")
    panel = home.one("region", "Preparing the demonstration: 1 of 7 ready")
    assert home.section("Preparing the demonstration").says(
        "Learning which answers make roommates get along."
    )
    assert panel.says("Waits for a learned model.")
    assert home.has("link", Questionnaire.objects.get().title)


def test_polling_answers_only_what_is_new(client_of: ClientOf, planned: User) -> None:
    client = client_of(planned)
    part = page(client, "/demonstration/state/")
    mark = part.source.split("?mark=")[1].split('"')[0]
    assert client.get(f"/demonstration/state/?mark={mark}").status_code == 204
    advance_while_it_can()
    assert page(client, f"/demonstration/state/?mark={mark}").has("heading", "1 of 7 ready")


def test_a_failure_says_why_and_staff_prepare_it_again(
    client_of: ClientOf, planned: User, alice: User
) -> None:
    DemonstrationResult.objects.filter(key="model").update(
        state=ResultState.FAILED, error="There is no memory."
    )
    panel = page(client_of(alice), "/").one("region", "Preparing the demonstration")
    assert panel.says("There is no memory.")
    assert not page(client_of(alice), "/").says("Prepare again")
    assert client_of(alice).post("/demonstration/model/retry/").status_code == 403
    assert page(client_of(planned), "/").has("button", "Prepare again")
    client_of(planned).post("/demonstration/model/retry/")
    assert DemonstrationResult.objects.get(key="model").state == ResultState.WAITING
    assert AuditLine.objects.filter(verb="prepared again", user=planned).count() == 1


def test_another_organisation_sees_nothing_of_it(
    client_of: ClientOf, planned: User, mallory: User
) -> None:
    advance_while_it_can()
    client = client_of(mallory)
    assert "demonstration" not in page(client, "/").source
    assert not page(client, "/help/").has("button", "Show the tour")
    assert page(client, "/demonstration/state/").source.strip() == ""
    assert client.get("/tour/1/").status_code == 404
    assert client.post("/tour/show/").status_code == 404
    assert client.post("/demonstration/model/retry/").status_code == 404
    assert not page(client, "/questionnaires/?tour=1").has("heading", "Tour, step")


@pytest.mark.parametrize("number", [0, len(STEPS) + 1])
def test_a_step_that_does_not_exist_is_not_found(
    client_of: ClientOf, planned: User, number: int
) -> None:
    assert client_of(planned).get(f"/tour/{number}/").status_code == 404
    assert not page(client_of(planned), f"/?tour={number}").has("heading", "Tour, step")


def test_a_step_leads_to_its_result_or_says_that_it_is_not_ready(
    client_of: ClientOf, planned: User
) -> None:
    client = client_of(planned)
    waiting = page(client, "/tour/1/")
    assert waiting.has("heading", "Not ready yet")
    assert waiting.has("heading", "Tour, step 1 of 5")
    assert waiting.has("heading", "Preparing the demonstration: 0 of 7 ready")
    advance_while_it_can()
    asked = Questionnaire.objects.get()
    answer = client.get("/tour/1/")
    assert answer.url == f"/questionnaires/{asked.pk}/?tour=1"
    shown = page(client, answer.url)
    assert shown.has("heading", "Tour, step 1 of 5: Ask the students")
    assert shown.one("link", "Next", exactly=True).address == "/tour/2/"
    assert all(link.address != "/tour/0/" for link in shown.every("link"))


def test_a_closed_tour_stays_closed_for_this_person_until_help_shows_it_again(
    client_of: ClientOf, planned: User, alice: User
) -> None:
    DemonstrationResult.objects.exclude(key="questionnaire").delete()
    advance_while_it_can()
    client = client_of(planned)
    assert page(client, "/").has("link", "Start the tour")
    client.post("/tour/close/")
    client.post("/tour/close/")  # twice, from two windows
    assert not page(client, "/").has("heading", "The demonstration is ready")
    assert not page(client_of(planned), "/").has("heading", "The demonstration is ready")
    assert page(client_of(alice), "/").has("link", "Start the tour")
    assert page(client, "/help/").has("button", "Show the tour")
    assert client.post("/tour/show/").url == "/tour/1/"
    assert page(client, "/").has("link", "Start the tour")
    assert not ClosedTour.objects.exists()


def test_a_closed_demonstration_shows_no_tour(client_of: ClientOf, planned: User) -> None:
    other = User.objects.get(username="carol")
    planned.is_active = False
    planned.save()
    assert "demonstration" not in page(client_of(other), "/").source
    assert client_of(other).get("/tour/1/").status_code == 404
