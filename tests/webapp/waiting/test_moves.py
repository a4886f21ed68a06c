"""Students with a bed wait for another one: the old bed stays until the new one is taken."""

import csv
import io
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.residents import Resident
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.errors import HousingError
from webapp.housing.models import OfferState, Placement, Room, WaitingOffer
from webapp.housing.services.decisions import places_lock
from webapp.housing.services.undo import decision_undo
from webapp.waiting.models import MoveWish
from webapp.waiting.selectors import move_wishes, next_student
from webapp.waiting.services import (
    move_wish_remove,
    move_wish_save,
    offer_accept,
    offer_decline,
    offer_make,
    offers_sweep,
)

ClientOf = Callable[[User], Client]
ResidentOf = Callable[..., Resident]


def wish(placement: Placement, number: int = 1001, **limits: object) -> MoveWish:
    return move_wish_save(user=None, placement=placement, number=number, **limits)


def offered(bob: User, placement: Placement, room: Room) -> WaitingOffer:
    return offer_make(user=bob, placement=placement, room=room, number=None, hours=48)


@pytest.fixture
def nobody_waits(placement: Placement) -> None:
    """Take the students without a bed away, so that students with one are next."""
    placement.places.without_bed().update(has_left=True)


def room_of(placement: Placement, number: int) -> str:
    place = placement.places.select_related("room").get(number=number)
    return place.room.name if place.room else ""


def test_students_without_a_bed_come_first(placement: Placement, free_room: Room) -> None:
    wish(placement)
    assert next_student(placement, free_room).number == 1006
    placement.places.without_bed().update(has_left=True)
    found = next_student(placement, free_room)
    assert (found.number, found.leaves) == (1001, "Alder 101")


@pytest.mark.usefixtures("nobody_waits")
def test_the_old_bed_stays_until_another_one_is_accepted(
    bob: User, placement: Placement, free_room: Room
) -> None:
    wish(placement)
    offer = offered(bob, placement, free_room)
    assert offer.student.number == 1001
    assert room_of(placement, 1001) == "101"
    offer_decline(offer=offer)
    assert room_of(placement, 1001) == "101"
    assert [one.student.number for one in move_wishes(placement)] == [1001]
    assert next_student(placement, free_room).number is None, "declined this room"


@pytest.mark.usefixtures("nobody_waits")
def test_the_old_bed_goes_to_the_next_and_undo_brings_the_wish_back(
    bob: User, placement: Placement, free_room: Room
) -> None:
    wish(placement, 1001)
    old = placement.buildings.rooms.get(name="101")
    wish(placement, 1005, hall=old.hall, beds=old.capacity)
    offer = offered(bob, placement, free_room)
    event = offer_accept(offer=offer)
    assert room_of(placement, 1001) == "104"
    assert [one.student.number for one in move_wishes(placement)] == [1005]
    assert offers_sweep() == 1
    following = WaitingOffer.objects.filter(state=OfferState.OPEN).get()
    assert (following.student.number, following.room_id) == (1005, old.pk)
    assert offers_sweep() == 0, "followed once"
    with pytest.raises(HousingError, match="is offered to S-1005"):
        decision_undo(user=bob, placement=placement, event=event, confirmed=1)
    offer_decline(offer=following)
    placement.refresh_from_db()
    decision_undo(user=bob, placement=placement, event=event, confirmed=1)
    assert room_of(placement, 1001) == "101"
    assert {one.student.number for one in move_wishes(placement)} == {1001, 1005}


@pytest.mark.usefixtures("nobody_waits")
def test_only_rooms_that_meet_the_wish_are_offered(placement: Placement, free_room: Room) -> None:
    single = placement.buildings.rooms.get(name="103")
    wish(placement, beds=single.capacity)
    assert single.capacity != free_room.capacity
    assert next_student(placement, free_room).number is None
    wish(placement, beds=free_room.capacity)
    assert MoveWish.objects.count() == 1
    assert next_student(placement, free_room).number == 1001


@pytest.mark.usefixtures("nobody_waits")
def test_a_lock_of_the_present_bed_ends_no_offer(
    bob: User, placement: Placement, free_room: Room
) -> None:
    wish(placement)
    offer = offered(bob, placement, free_room)
    placement.refresh_from_db()
    places_lock(
        user=bob, placement=placement, numbers=[1001], locked=True, version=placement.version
    )
    offer.refresh_from_db()
    assert offer.is_open


@pytest.mark.parametrize(
    ("number", "limits"),
    [(1006, {}), (9999, {}), (1001, {"hall": "Nowhere"}), (1001, {"beds": 8})],
)
def test_impossible_wishes_are_refused(
    placement: Placement, number: int, limits: dict[str, object]
) -> None:
    with pytest.raises(HousingError):
        wish(placement, number, **limits)
    Placement.objects.update(published_at=None)
    with pytest.raises(HousingError, match="Nobody can wait"):
        wish(placement)
    assert not MoveWish.objects.exists()


@pytest.mark.usefixtures("nobody_waits")
def test_a_student_waits_accepts_and_stops_on_the_own_page(
    bob: User, placement: Placement, free_room: Room, resident: ResidentOf
) -> None:
    one = resident(1001)
    address = reverse("waiting:own-move", args=[one.handle])
    assert one.read().one("link", "Wait for another bed").address == address
    answer = one.client.post(address, {"hall": "Elsewhere", "beds": "2"})
    assert answer.status_code == 422
    sent = {"hall": free_room.hall, "beds": str(free_room.capacity)}
    assert one.client.post(address, sent).status_code == 302
    assert one.read().has("paragraph", "You wait for another bed:")
    offer = offered(bob, placement, free_room)
    page = Page(one.client.get(reverse("waiting:own-accept", args=[one.handle, offer.pk])))
    assert page.has("paragraph", "You give up your bed in Alder 101.")
    stop = reverse("waiting:own-move-stop", args=[one.handle])
    assert one.client.post(stop).status_code == 302
    offer.refresh_from_db()
    assert offer.state == OfferState.WITHDRAWN
    assert one.client.post(stop).status_code == 409
    assert room_of(placement, 1001) == "101"
    assert AuditLine.objects.filter(verb__contains="a wish for another bed").count() == 2
    spanish = resident(1002, "es")
    page = Page(spanish.client.get(reverse("waiting:own-move", args=[spanish.handle])))
    assert page.has("heading", "Esperar otra cama")


def test_who_has_no_bed_has_no_such_page(resident: ResidentOf) -> None:
    one = resident(1006)
    assert one.client.get(reverse("waiting:own-move", args=[one.handle])).status_code == 404
    assert one.client.post(reverse("waiting:own-move-stop", args=[one.handle])).status_code == 404
    assert not one.read().says("Another bed")


def test_staff_add_and_take_off_students_with_a_bed(
    client_of: ClientOf, alice: User, bob: User, mallory: User, placement: Placement
) -> None:
    new = reverse("waiting:move-new", args=[placement.pk])
    client = client_of(bob)
    refused = Page(client.post(new, {"student": "S-1006", "hall": "", "beds": ""}), status=422)
    assert refused.field("Student").value == "S-1006"
    assert client.post(new, {"student": "", "hall": "", "beds": ""}).status_code == 422
    assert client.post(new, {"student": "S-1001", "hall": "", "beds": ""}).status_code == 302
    page = Page(client.get(reverse("waiting:list", args=[placement.pk])))
    assert page.one("row", "Anna Ash").has("cell", "any other room", exactly=True)
    remove = reverse("waiting:move-remove", args=[placement.pk, 1001])
    for stranger, status in ((alice, 403), (mallory, 404)):
        assert client_of(stranger).post(new, {"student": "S-1002"}).status_code == status
        assert client_of(stranger).post(remove).status_code == status
    assert Page(client.get(remove)).has("paragraph", "present bed stays")
    assert client.post(remove).status_code == 302
    assert client.post(remove).status_code == 404
    with pytest.raises(HousingError, match="meanwhile"):
        move_wish_remove(user=bob, placement=placement, number=1001)


def test_the_export_has_students_who_want_another_bed(
    bob: User, placement: Placement, free_room: Room, client_of: ClientOf
) -> None:
    wish(placement, 1001, hall="Alder", beds=2)
    wish(placement, 1005)
    placement.places.without_bed().exclude(number=1006).update(has_left=True)
    data = client_of(bob).get(reverse("waiting:export", args=[placement.pk, "csv"])).content
    table = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert [row["On screen"] for row in table] == ["S-1006", "S-1001", "S-1005"]
    assert [row["Waits for"] for row in table] == ["a bed", "another bed", "another bed"]
    assert [row["Wants"] for row in table] == ["", "Alder, double", "any other room"]
    assert [row["Lives in"] for row in table] == ["", "Alder 101", "Alder 103"]
    assert [row["Place"] for row in table] == ["1", "", ""]
    assert table[1]["Added"].startswith(f"{timezone.localtime():%Y-%m-%d}")
    # A student whose wish was fulfilled is not on the list any more, with the offer as it ended.
    placement.places.without_bed().update(has_left=True)
    offer_accept(offer=offered(bob, placement, free_room))
    data = client_of(bob).get(reverse("waiting:export", args=[placement.pk, "csv"])).content
    table = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert [(row["On screen"], row["Waits for"]) for row in table] == [
        ("S-1005", "another bed"),
        ("S-1001", ""),
    ]
    assert table[1]["Offer"] == "Accepted"
