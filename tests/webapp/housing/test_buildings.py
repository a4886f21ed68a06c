"""Building lists: uploaded, checked, imported whole or not at all, and edited by hand."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.factories.campus import csv_file
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_refused
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.models import BuildingDraft, BuildingList, Placement, Room
from webapp.housing.services.buildings import building_drafts_expire

ClientOf = Callable[[User], Client]
ROOMS = "Hall,Floor,Room,Capacity,Gender\nElm,1,101,2,F\nElm,1,102,3,\n"


def upload(client: Client, text: str) -> BuildingDraft:
    answer = client.post("/buildings/new/", {"file": csv_file(text)})
    assert answer.status_code == 302, answer.content.decode()
    return BuildingDraft.objects.get()


def test_a_file_becomes_a_list(bob: User, client_of: ClientOf) -> None:
    client = client_of(bob)
    draft = upload(client, ROOMS)
    page = Page(client.get(f"/buildings/drafts/{draft.pk}/"))
    assert page.has("row", "Elm 101")
    assert page.has("button", "Import 2 rooms", exactly=True)
    client.post(f"/buildings/drafts/{draft.pk}/import/", {"name": "Campus"})
    made = BuildingList.objects.get()
    assert [(r.label, r.capacity, r.designation) for r in made.rooms.all()] == [
        ("Elm 101", 2, "F"),
        ("Elm 102", 3, ""),
    ]
    assert not BuildingDraft.objects.exists()
    assert AuditLine.objects.filter(verb="imported", target_name="Campus").exists()


def test_a_bad_row_is_named_and_nothing_is_imported(bob: User, client_of: ClientOf) -> None:
    client = client_of(bob)
    draft = upload(client, ROOMS + "Elm,1,103,many,\n")
    page = Page(client.get(f"/buildings/drafts/{draft.pk}/"))
    problems = page.one("complementary", "Problems and halls")
    assert problems.has("listitem", "“many” is no number of beds")
    assert not page.has("button", "Import ")
    client.post(f"/buildings/drafts/{draft.pk}/import/", {"name": "Campus"})
    assert not BuildingList.objects.exists()


def test_a_column_can_be_said_to_hold_something_else(bob: User, client_of: ClientOf) -> None:
    client = client_of(bob)
    draft = upload(client, "Hall,Room,Sleeps\nElm,1,2\n")
    client.post(f"/buildings/drafts/{draft.pk}/", {"column": "2", "use": "capacity"})
    draft.refresh_from_db()
    assert draft.roles == ["hall", "room", "capacity"]
    client.post(f"/buildings/drafts/{draft.pk}/", {"column": "0", "use": "nonsense"})
    draft.refresh_from_db()
    assert draft.roles == ["hall", "room", "capacity"]


def test_a_taken_name_is_refused(bob: User, campus: BuildingList, client_of: ClientOf) -> None:
    client = client_of(bob)
    draft = upload(client, ROOMS)
    error = f"There is already a building list called “{campus.name}”."
    for address in (f"/buildings/drafts/{draft.pk}/import/", "/buildings/new/"):
        answer = client.post(address, {"name": campus.name})
        check_refused(answer, {"name": campus.name}, field="name", error=error)
    assert BuildingList.objects.count() == 1
    client.post("/buildings/new/", {"name": "East"})
    assert BuildingList.objects.filter(name="East").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capacity": "9"}, "1 to 8 beds"),
        ({"capacity": ""}, "1 to 8 beds"),
        ({"name": "101"}, "already has a room 101"),
        ({"hall": " "}, "needs a hall and a name"),
        ({"state": "half open"}, "open, held back or offline"),
    ],
)
def test_a_room_by_hand_is_checked(
    bob: User, campus: BuildingList, client_of: ClientOf, changes: dict[str, str], words: str
) -> None:
    sent = {"hall": "Alder", "name": "900", "capacity": "2", "state": "open", **changes}
    answer = client_of(bob).post(f"/buildings/{campus.pk}/rooms/0/", sent)
    (field,) = changes
    check_refused(answer, {}, field=field, error=words)


def test_a_room_by_hand_is_kept(bob: User, campus: BuildingList, client_of: ClientOf) -> None:
    sent = {"hall": "Alder", "name": "900", "capacity": "4", "state": "kept"}
    sent["meets"] = "Quiet, Lift,Quiet"
    client_of(bob).post(f"/buildings/{campus.pk}/rooms/0/", sent)
    room = Room.objects.get(name="900")
    assert (room.capacity, room.state, room.meets) == (4, "kept", ["Quiet", "Lift"])
    page = Page(client_of(bob).get(f"/buildings/{campus.pk}/?q=900"))
    assert page.has("row", "Alder 900")


def test_a_list_in_use_is_not_removed(
    carol: User, campus: BuildingList, first_years, learned, client_of: ClientOf
) -> None:
    Placement.objects.create(
        organisation=carol.organisation,
        name="P",
        cohort=first_years,
        buildings=campus,
        model=learned,
    )
    address = f"/buildings/{campus.pk}/remove/"
    page = Page(client_of(carol).post(address, {"name": campus.name}), status=422)
    assert "P uses these rooms" in page.field("to confirm").description
    Placement.objects.all().delete()
    client_of(carol).post(address, {"name": campus.name})
    assert not BuildingList.objects.exists()


def test_the_list_asks_a_constant_number_of_queries(
    bob: User, campus: BuildingList, client_of: ClientOf, django_assert_max_num_queries
) -> None:
    BuildingList.objects.bulk_create(
        BuildingList(organisation=bob.organisation, name=f"List {k}") for k in range(30)
    )
    client = client_of(bob)
    with django_assert_max_num_queries(25):
        client.get("/buildings/")


def test_an_upload_is_removed_before_its_days_are_over(
    client_of: Callable[[User], Client], bob: User
) -> None:
    draft = upload(client_of(bob), "Room,Beds\n101,2\n")
    assert building_drafts_expire() == 0
    late = timezone.now() - timedelta(days=BuildingDraft.KEPT_DAYS, hours=-23)
    BuildingDraft.objects.filter(pk=draft.pk).update(created_at=late)
    assert building_drafts_expire() == 1
    assert not BuildingDraft.objects.exists()
    line = AuditLine.objects.get(verb="expired")
    assert (line.organisation, line.details["rows"]) == (bob.organisation, 1)
