"""Closing rooms: drafts give way and say so, published beds do not."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.webapp.factories.campus import check, two_rooms
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement, Room
from webapp.housing.services.buildings import room_remove, room_save, rooms_set_state
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.reviews import rooms_keep
from webapp.housing.services.undo import decision_undo

ClientOf = Callable[[User], Client]


def room_of(placement: Placement) -> tuple[Room, list[int]]:
    """Return a full room with the numbers of its people."""
    people, _ = two_rooms(placement)
    return placement.places.get(number=people[0]).room, sorted(people)


def values_of(room: Room, **changes: Any) -> dict[str, Any]:
    names = ("hall", "floor", "name", "designation", "meets", "state", "note", "capacity")
    return {name: getattr(room, name) for name in names} | changes


def publish(placement: Placement, user: User) -> None:
    placement.refresh_from_db()
    placement_publish(user=user, placement=placement, version=placement.version)


WAYS = {
    "held back": lambda user, room: rooms_set_state(
        user=user, buildings=room.buildings, rooms=[room.pk], state="kept"
    ),
    "taken offline": lambda user, room: room_save(
        user=user, buildings=room.buildings, room=room, values=values_of(room, state="offline")
    ),
    "removed": lambda user, room: room_remove(user=user, room=room),
    "for others": lambda user, room: room_save(
        user=user, buildings=room.buildings, room=room, values=values_of(room, designation="M")
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_draft_gives_way_to_a_room_that_closes_and_its_history_says_so(
    bob: User, placement: Placement, way: str
) -> None:
    room, people = room_of(placement)
    WAYS[way](bob, room)
    gone = placement.places.filter(number__in=people)
    assert all(place.room_id is None for place in gone)
    event = placement.events.first()
    assert event.kind == "closed"
    assert "2 students need another room." in event.sentence
    check(placement)


@pytest.mark.parametrize("way", WAYS)
def test_a_published_bed_is_not_lost_when_a_room_closes(
    bob: User, carol: User, placement: Placement, way: str
) -> None:
    room, people = room_of(placement)
    publish(placement, carol)
    with pytest.raises(HousingError, match=r"2 students have beds .* which is published"):
        WAYS[way](bob, room)
    assert set(placement.places.filter(room=room).values_list("number", flat=True)) == set(people)
    fresh = Room.objects.get(pk=room.pk)
    assert (fresh.state, fresh.designation) == ("open", "F")


def test_fewer_beds_put_out_who_does_not_fit_and_number_the_others_anew(
    bob: User, carol: User, placement: Placement
) -> None:
    room, (first, second) = room_of(placement)
    Place.objects.filter(number=first).update(room=None, bed=None)
    Place.objects.filter(number=second).update(bed=2)
    room_save(user=bob, buildings=room.buildings, room=room, values=values_of(room, capacity=1))
    assert placement.places.get(number=second).bed == 1
    room_save(user=bob, buildings=room.buildings, room=room, values=values_of(room, capacity=2))
    Place.objects.filter(number=second).update(bed=2)
    publish(placement, carol)
    with pytest.raises(HousingError, match=r"Bed 2 of .* is taken by .* which is published"):
        room_save(user=bob, buildings=room.buildings, room=room, values=values_of(room, capacity=1))


def test_holding_a_room_back_in_one_draft_empties_it_in_all_and_undo_brings_it_back(
    bob: User, placement: Placement
) -> None:
    room, people = room_of(placement)
    other = Placement.objects.create(
        organisation=bob.organisation,
        name="Plan B",
        cohort=placement.cohort,
        buildings=placement.buildings,
        model=placement.model,
        rules=placement.rules,
        revision=1,
    )
    student = placement.cohort.students.get(number=people[0])
    Place.objects.create(
        placement=other, student=student, number=people[0], room=room, bed=1, is_locked=True
    )
    placement.refresh_from_db()
    event = rooms_keep(
        user=bob, placement=placement, rooms=[room.pk], kept=True, version=placement.version
    )
    assert event.sentence == (
        f"{room} was held back. 2 people need another room here. "
        "1 student needs another room in the draft Plan B."
    )
    assert not Place.objects.filter(room=room).exists()
    assert f"{room} was held back." in other.events.first().sentence
    decision_undo(user=bob, placement=placement, event=event)
    assert set(placement.places.filter(room=room).values_list("number", flat=True)) == set(people)
    decision_undo(user=bob, placement=other, event=other.events.first())
    assert other.places.get().room == room


def test_a_wing_is_closed_from_the_building_list_after_a_question(
    bob: User, carol: User, alice: User, placement: Placement, client_of: ClientOf
) -> None:
    client, at = client_of(bob), f"/buildings/{placement.buildings_id}/"
    page = Page(client.get(f"{at}?hall=Alder"))
    assert page.has("button", "16 rooms that match…", exactly=True)
    sent = {"hall": "Alder", "q": "", "state": "offline"}
    page = Page(client.post(f"{at}state/", sent))
    people = placement.places.filter(room__hall="Alder").count()
    assert page.has("heading", "Take 16 rooms offline?", exactly=True)
    assert page.has("paragraph", f"{people} students of drafts need another room then.")
    assert not Room.objects.filter(hall="Alder", state="offline").exists()
    assert client_of(alice).post(f"{at}state/", sent).status_code == 403
    page = Page(client.post(f"{at}state/", {**sent, "confirmed": f"16 {people}"}, follow=True))
    assert page.has("status", "16 rooms were taken offline.")
    assert Room.objects.filter(hall="Alder", state="offline").count() == 16
    assert not placement.places.filter(room__hall="Alder").exists()
    client.post(f"{at}state/", {**sent, "state": "open", "confirmed": "16 0"})
    assert not Room.objects.filter(hall="Alder", state="offline").exists()
