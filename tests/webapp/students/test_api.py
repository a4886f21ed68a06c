"""Students by the API: names for those who see them, and no requests for viewers."""

import json

from django.test import Client

from webapp.accounts.models import User
from webapp.api.openapi import PREFIX
from webapp.api.services import token_create
from webapp.audit.models import AuditLine
from webapp.housing.models import Placement


def answer(user: User, path: str) -> dict:
    """Return the answer of an endpoint to a token of a person."""
    _, secret = token_create(user=user, name="t", days=30, may_change=False)
    response = Client().get(PREFIX + path, headers={"authorization": f"Bearer {secret}"})
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def test_staff_find_a_student_with_the_room(bob: User, placement: Placement) -> None:
    found = answer(bob, "/students?q=jose+silva")
    assert [one["student"] for one in found["items"]] == ["S-1001", "S-1003"]
    assert found["items"][0] == {
        "student": "S-1001", "cohort": str(placement.cohort_id), "number": "N01",
        "name": "José Silva", "preferred": "", "pronouns": "he/him",
        "email": "jose.silva@northfield.example", "room": "Baker 12, bed 1",
    }  # fmt: skip
    assert AuditLine.objects.filter(verb="searched for students", user=bob).count() == 1
    assert answer(bob, f"/cohorts/{placement.cohort_id}/students")["total"] == 4
    rooms = answer(bob, f"/placements/{placement.pk}/rooms")["items"]
    assert [one["name"] for one in rooms[0]["people"]] == ["José Silva", "Zo (Zoë Müller)"]
    assert rooms[0]["honoured"] == 2
    places = answer(bob, f"/placements/{placement.pk}/students")["items"]
    assert places[0]["full_name"] == "José Silva"


def test_tokens_of_viewers_get_no_name_and_no_request(alice: User, placement: Placement) -> None:
    assert answer(alice, "/students?q=silva")["items"] == []
    one = answer(alice, "/students?q=S-1001")["items"][0]
    assert {key for key, value in one.items() if value is None} == {
        "number", "name", "preferred", "pronouns", "email",
    }  # fmt: skip
    rooms = answer(alice, f"/placements/{placement.pk}/rooms")["items"]
    assert (rooms[0]["asked"], rooms[0]["honoured"]) == (None, None)
    assert {(p["name"], p["is_honoured"]) for p in rooms[0]["people"]} == {(None, None)}
    report = answer(alice, f"/placements/{placement.pk}/report")["halls"][0]
    assert (report["asked"], report["honoured"]) == (None, None)
    everything = [
        answer(alice, path)
        for path in (
            f"/placements/{placement.pk}", f"/placements/{placement.pk}/students",
            f"/cohorts/{placement.cohort_id}/students", "/placements",
        )
    ]  # fmt: skip
    assert "Silva" not in json.dumps(everything, ensure_ascii=False)
    _, secret = token_create(user=alice, name="u", days=30, may_change=False)
    refused = Client().get(
        f"{PREFIX}/placements/{placement.pk}/rooms?look=missed",
        headers={"authorization": f"Bearer {secret}"},
    )
    assert refused.status_code == 403


def test_another_organisation_finds_nobody(mallory: User, placement: Placement) -> None:
    assert answer(mallory, "/students?q=S-1001")["items"] == []
    _, secret = token_create(user=mallory, name="u", days=30, may_change=False)
    address = f"{PREFIX}/cohorts/{placement.cohort_id}/students"
    refused = Client().get(address, headers={"authorization": f"Bearer {secret}"})
    assert refused.status_code == 404
