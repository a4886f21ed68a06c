"""Pages of waiting lists: what staff and students see and do, in English and Spanish."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.residents import Resident
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.models import OfferState, Placement, Room, WaitingOffer
from webapp.housing.services.waiting import turn_change
from webapp.waiting.services import offer_make

ClientOf = Callable[[User], Client]
ResidentOf = Callable[..., Resident]


def at(name: str, placement: Placement, *args: object) -> str:
    return reverse(f"waiting:{name}", args=[placement.pk, *args])


@pytest.fixture
def offer(bob: User, placement: Placement, free_room: Room) -> WaitingOffer:
    return offer_make(user=bob, placement=placement, room=free_room, number=None, hours=48)


# -- students --------------------------------------------------------------------------------------


def own(resident: Resident, offer: WaitingOffer, answer: str) -> str:
    return reverse(f"waiting:own-{answer}", args=[resident.handle, offer.pk])


def test_a_student_reads_the_place_in_line(resident: ResidentOf, placement: Placement) -> None:
    page = resident(1007).read()
    assert page.has("paragraph", "You are number 2 of 4.", exactly=True)
    assert page.has("paragraph", "Students who were added first come first.")
    spanish = resident(1007, "es").read()
    assert spanish.has("paragraph", "Tienes el número 2 de 4.", exactly=True)
    assert not resident(1001).read().says("You are number")


def test_a_student_accepts_in_two_steps(
    resident: ResidentOf, placement: Placement, offer: WaitingOffer, free_room: Room
) -> None:
    placement.places.filter(number=1005).update(room=free_room, bed=1)
    finn = resident(1006)
    page = finn.read()
    assert page.has("heading", "Beds offered to me")
    assert page.has("paragraph", "Roommates: Eva Elm")
    assert page.one("link", "Accept the bed").address == own(finn, offer, "accept")
    asking = Page(finn.client.get(own(finn, offer, "accept")))
    assert asking.has("heading", "Accept this bed?")
    assert asking.has("button", "Accept the bed")
    assert placement.places.get(number=1006).room is None, "a GET changes nothing"
    answer = finn.client.post(own(finn, offer, "accept"))
    assert answer.status_code == 302
    assert finn.read().has("heading", "Alder 104", exactly=True)
    again = finn.client.post(own(finn, offer, "accept"))
    assert again.status_code == 409
    assert placement.events.filter(kind="offered").count() == 1


def test_a_student_declines_in_spanish(
    resident: ResidentOf, placement: Placement, offer: WaitingOffer
) -> None:
    finn = resident(1006, "es")
    address = own(finn, offer, "decline")
    assert finn.read().one("link", "Rechazar la cama").address == address
    assert Page(finn.client.get(address)).has("heading", "¿Rechazar esta cama?")
    finn.client.post(address)
    assert finn.read().has("paragraph", "La rechazaste.")
    assert placement.places.get(number=1006).room is None


def test_nobody_answers_for_somebody_else(
    resident: ResidentOf, placement: Placement, offer: WaitingOffer
) -> None:
    gina, finn = resident(1007), resident(1006)
    for answer in ("accept", "decline"):
        assert gina.client.post(own(gina, offer, answer)).status_code == 404
        assert gina.client.post(own(finn, offer, answer)).status_code == 404
        assert Client().post(own(finn, offer, answer)).status_code == 404
    Placement.objects.update(published_at=None)
    assert finn.client.post(own(finn, offer, "accept")).status_code == 404
    offer.refresh_from_db()
    assert offer.is_open


def test_a_late_or_lost_offer_is_one_sentence_without_other_students(
    resident: ResidentOf, placement: Placement, offer: WaitingOffer, free_room: Room
) -> None:
    finn = resident(1006)
    Room.objects.filter(pk=free_room.pk).update(state="kept")
    page = Page(finn.client.post(own(finn, offer, "accept")), status=409)
    assert page.has("heading", "This bed cannot be given to you any more.")
    assert "S-1" not in page.source
    offer.refresh_from_db()
    assert offer.state == OfferState.WITHDRAWN
    assert "held back" in offer.why
    WaitingOffer.objects.update(state="open", deadline=timezone.now())
    assert finn.client.get(own(finn, offer, "accept")).status_code == 409


# -- staff -----------------------------------------------------------------------------------------


def test_the_room_panel_offers_the_bed_and_says_that_it_is_held(
    client_of: ClientOf, bob: User, placement: Placement, free_room: Room
) -> None:
    client = client_of(bob)
    panel = f"{reverse('housing:placement', args=[placement.pk])}?room={free_room.pk}"
    offer = at("offer", placement, free_room.pk)
    link = Page(client.get(panel)).one("link", "Offer this bed to the next who may live there")
    assert link.address == offer
    page = Page(client.get(offer))
    assert page.has("paragraph", "Finn Fir S-1006 is the next student who may live there")
    assert client.post(offer, {"number": 1006, "hours": 24}).status_code == 302
    room = Page(client.get(panel)).one("complementary", "Room")
    assert room.says("Double, empty, 1 offered")
    assert room.says("A bed is offered to Finn Fir")


def test_a_refused_offer_keeps_what_was_typed(
    client_of: ClientOf, bob: User, placement: Placement, free_room: Room
) -> None:
    client = client_of(bob)
    address = at("offer", placement, free_room.pk)
    page = Page(client.post(address, {"number": 1006, "hours": 9999}), status=422)
    assert "A deadline is 1 to 720 hours away." in page.field("Hours").description
    assert page.field("Hours").value == "9999"
    page = Page(client.post(address, {"number": 1009, "hours": 24}), status=422)
    assert "S-1006 is next by now" in page.field("Hours").description
    assert not WaitingOffer.objects.exists()


def test_staff_answer_withdraw_and_extend(
    client_of: ClientOf, bob: User, placement: Placement, offer: WaitingOffer, free_room: Room
) -> None:
    client = client_of(bob)
    before = offer.deadline
    assert client.post(at("offer-extend", placement, offer.pk), {"hours": 72}).status_code == 302
    offer.refresh_from_db()
    assert offer.deadline > before
    refused = client.post(at("offer-withdraw", placement, offer.pk), {"why": ""})
    assert refused.status_code == 422
    answer = client.post(at("offer-answer", placement, offer.pk), {"answer": "accept"})
    assert answer.status_code == 302
    assert placement.places.get(number=1006).room == free_room
    offer.refresh_from_db()
    assert (offer.state, offer.answered_by) == ("accepted", bob)
    assert client.post(at("offer-answer", placement, offer.pk), {"answer": "no"}).status_code == 422


def test_the_list_shows_nobody_one_and_several(
    client_of: ClientOf, bob: User, placement: Placement, offer: WaitingOffer
) -> None:
    client = client_of(bob)
    page = Page(client.get(at("list", placement)))
    assert page.has("paragraph", "4 students without a bed, 1 bed free, 1 offer open")
    placement.places.filter(number__gt=1006).update(has_left=True)
    page = Page(client.get(at("list", placement)))
    assert page.has("paragraph", " 1 student without a bed")
    placement.places.update(has_left=False)
    placement.places.without_bed().delete()
    WaitingOffer.objects.all().delete()
    page = Page(client.get(at("list", placement)))
    assert page.has("paragraph", " 0 students without a bed")
    assert page.has("paragraph", "Nobody waits for a bed.")


def test_a_move_by_hand_needs_a_reason(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    client = client_of(bob)
    address = at("turn", placement, 1009)
    answer = client.post(address, {"to": "first", "reason": " "})
    assert answer.status_code == 422
    assert client.post(address, {"to": "first", "reason": "Came by train"}).status_code == 302
    page = Page(client.get(at("list", placement)))
    assert page.one("row", "Wait I").has("cell", "by hand")
    assert client.get(at("turn", placement, 1001)).status_code == 404


def test_a_student_without_an_address_is_a_call(
    client_of: ClientOf, bob: User, placement: Placement, free_room: Room
) -> None:
    placement.cohort.students.filter(number=1006).update(email="")
    offer_make(user=bob, placement=placement, room=free_room, number=None, hours=48)
    client = client_of(bob)
    assert Page(client.get(at("list", placement))).has("paragraph", "Phone 1 student:")
    assert Page(client.get("/")).says("Phone 1 student about an offered bed")


def test_the_export_has_names_for_those_who_may_see_them(
    client_of: ClientOf, bob: User, placement: Placement, offer: WaitingOffer
) -> None:
    turn_change(user=bob, placement=placement, number=1009, is_first=True)
    answer = client_of(bob).get(at("export", placement, "csv"))
    rows = answer.content.decode("utf-8-sig").splitlines()
    assert rows[0].startswith("Place,On screen,Name,")
    assert len(rows) == 5
    assert rows[1].startswith("1,S-1009,Wait I,")
    assert "Alder 104,Waiting for an answer" in rows[2]
    bob.organisation.names_for = "administrators"
    bob.organisation.save()
    assert "Finn" not in client_of(bob).get(at("export", placement, "csv")).content.decode()
