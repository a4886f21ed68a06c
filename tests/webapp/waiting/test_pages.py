"""Pages of waiting lists: what staff and students see and do, in English and Spanish."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.residents.conftest import Resident
from webapp.accounts.models import User
from webapp.housing.models import OfferState, Placement, Room, WaitingOffer
from webapp.housing.services.waiting import turn_change
from webapp.waiting.services import offer_make

ClientOf = Callable[[User], Client]
ResidentOf = Callable[..., Resident]


def at(name: str, placement: Placement, *args: object) -> str:
    return reverse(f"waiting:{name}", args=[placement.pk, *args])


def words(answer: object) -> str:
    return " ".join(answer.content.decode().split())


@pytest.fixture
def offer(bob: User, placement: Placement, free_room: Room) -> WaitingOffer:
    return offer_make(user=bob, placement=placement, room=free_room, number=None, hours=48)


# -- students --------------------------------------------------------------------------------------


def own(resident: Resident, offer: WaitingOffer, answer: str) -> str:
    return reverse(f"waiting:own-{answer}", args=[resident.handle, offer.pk])


def test_a_student_reads_the_place_in_line(resident: ResidentOf, placement: Placement) -> None:
    page = resident(1007).look()
    assert "You are number 2 of 4." in page
    assert "Students who were added first come first." in page
    assert "Tienes el número 2 de 4." in resident(1007, "es").look()
    assert "You are number" not in resident(1001).look()


def test_a_student_accepts_in_two_steps(
    resident: ResidentOf, placement: Placement, offer: WaitingOffer, free_room: Room
) -> None:
    placement.places.filter(number=1005).update(room=free_room, bed=1)
    finn = resident(1006)
    page = finn.look()
    assert "Beds offered to me" in page
    assert "Eva Elm" in page
    asking = words(finn.client.get(own(finn, offer, "accept")))
    assert "Accept this bed?" in asking
    assert placement.places.get(number=1006).room is None, "a GET changes nothing"
    answer = finn.client.post(own(finn, offer, "accept"))
    assert answer.status_code == 302
    assert "Alder 104" in finn.look()
    again = finn.client.post(own(finn, offer, "accept"))
    assert again.status_code == 409
    assert placement.events.filter(kind="offered").count() == 1


def test_a_student_declines_in_spanish(
    resident: ResidentOf, placement: Placement, offer: WaitingOffer
) -> None:
    finn = resident(1006, "es")
    assert "Rechazar la cama" in finn.look()
    assert "¿Rechazar esta cama?" in words(finn.client.get(own(finn, offer, "decline")))
    finn.client.post(own(finn, offer, "decline"))
    assert "La rechazaste." in finn.look()
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
    answer = finn.client.post(own(finn, offer, "accept"))
    assert answer.status_code == 409
    assert "This bed cannot be given to you any more." in words(answer)
    assert "S-1" not in words(answer)
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
    assert "Offer this bed to the next who may live there" in words(client.get(panel))
    page = words(client.get(at("offer", placement, free_room.pk)))
    assert "is the next student who may live there" in page
    sent = client.post(at("offer", placement, free_room.pk), {"number": 1006, "hours": 24})
    assert sent.status_code == 302
    page = words(client.get(panel))
    assert "A bed is offered to" in page
    assert "1 free, 1 offered" in page or "1 offered" in page


def test_a_refused_offer_keeps_what_was_typed(
    client_of: ClientOf, bob: User, placement: Placement, free_room: Room
) -> None:
    client = client_of(bob)
    address = at("offer", placement, free_room.pk)
    answer = client.post(address, {"number": 1006, "hours": 9999})
    assert answer.status_code == 422
    assert "A deadline is 1 to 720 hours away." in words(answer)
    assert 'value="9999"' in words(answer)
    answer = client.post(address, {"number": 1009, "hours": 24})
    assert answer.status_code == 422
    assert "is next by now" in words(answer)
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
    page = words(client.get(at("list", placement)))
    assert "4 students without a bed, 1 bed free, 1 offer open" in page
    placement.places.filter(number__gt=1006).update(has_left=True)
    assert "1 student without a bed" in words(client.get(at("list", placement)))
    placement.places.update(has_left=False)
    placement.places.without_bed().delete()
    WaitingOffer.objects.all().delete()
    page = words(client.get(at("list", placement)))
    assert "0 students without a bed" in page
    assert "Nobody waits for a bed." in page


def test_a_move_by_hand_needs_a_reason(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    client = client_of(bob)
    address = at("turn", placement, 1009)
    answer = client.post(address, {"to": "first", "reason": " "})
    assert answer.status_code == 422
    assert client.post(address, {"to": "first", "reason": "Came by train"}).status_code == 302
    assert "by hand" in words(client.get(at("list", placement)))
    assert client.get(at("turn", placement, 1001)).status_code == 404


def test_a_student_without_an_address_is_a_call(
    client_of: ClientOf, bob: User, placement: Placement, free_room: Room
) -> None:
    placement.cohort.students.filter(number=1006).update(email="")
    offer_make(user=bob, placement=placement, room=free_room, number=None, hours=48)
    client = client_of(bob)
    assert "Phone 1 student:" in words(client.get(at("list", placement)))
    assert "Phone 1 student about an offered bed" in words(client.get("/"))


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
