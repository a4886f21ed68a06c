"""Offers of beds: made, held, answered, ended, followed by the next, and never given twice."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import LazySettings
from django.core import mail
from django.db import connection
from django.utils import timezone

from webapp.accounts.models import Organisation, User
from webapp.audit.models import AuditLine
from webapp.common.errors import Refusal
from webapp.common.periodic import periodic_work
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import OfferState, Placement, Room, WaitingOffer
from webapp.housing.services.decisions import Move, moving
from webapp.housing.services.drafts import draft_add, draft_confirm
from webapp.housing.services.publication import placement_unpublish
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import ForbiddenPair
from webapp.residents.mails import moment_in_words, resident_mails_send
from webapp.residents.models import ChangeAsk, ResidentMail
from webapp.residents.services import ask_decide
from webapp.waiting.selectors import free_rooms, mail_words, next_student
from webapp.waiting.services import (
    BedLostError,
    OfferEndedError,
    offer_accept,
    offer_decline,
    offer_extend,
    offer_make,
    offer_void,
    offer_withdraw,
    offers_sweep,
    waiting_list_set,
)


def offered(user: User | None, placement: Placement, room: Room, hours: int = 48) -> WaitingOffer:
    return offer_make(user=user, placement=placement, room=room, number=None, hours=hours)


def settings_of(bob: User, placement: Placement, **more: object) -> None:
    usual = {"rule": "added", "hours": 48, "is_automatic": True, "skips_unreachable": False}
    waiting_list_set(user=bob, placement=placement, **(usual | more))


def end_deadlines() -> None:
    WaitingOffer.objects.update(deadline=timezone.now() - timedelta(seconds=1))


def late_change(bob: User, placement: Placement, number: int, room: Room) -> None:
    placement.refresh_from_db()
    decision = moving([Move(number, room.pk)], "Moved.")
    draft = draft_add(user=bob, placement=placement, decision=decision, version=placement.version)
    assert draft is not None
    draft_confirm(user=bob, draft=draft, people=1, version=placement.version)


# -- an offer and its answer -----------------------------------------------------------------------


def test_an_accepted_offer_is_one_act_that_undo_reverses(
    bob: User, placement: Placement, free_room: Room
) -> None:
    offer = offered(bob, placement, free_room)
    assert offer.student.number == 1006
    event = offer_accept(offer=offer)
    place = placement.places.get(number=1006)
    assert (place.room, place.bed) == (free_room, 1)
    assert event.sentence == "S-1006 accepted a bed in Alder 104."
    assert event.user is None
    verbs = list(AuditLine.objects.values_list("verb", flat=True))
    assert verbs.count("accepted an offered bed") == 1
    assert verbs.count("offered a bed") == 1
    with pytest.raises(PlacesChangedError, match="confirm"):
        decision_undo(user=bob, placement=placement, event=event)
    decision_undo(user=bob, placement=placement, event=event, confirmed=1)
    assert placement.places.get(number=1006).room is None
    assert next_student(placement, free_room).number == 1006, "first in line again"


def test_an_offer_ends_once(bob: User, placement: Placement, free_room: Room) -> None:
    offer = offered(bob, placement, free_room)
    offer_accept(offer=offer)
    for act in (
        lambda: offer_accept(offer=offer),
        lambda: offer_decline(offer=offer),
        lambda: offer_withdraw(user=bob, offer=offer, why="No"),
        lambda: offer_extend(user=bob, offer=offer, hours=5),
    ):
        with pytest.raises(OfferEndedError):
            act()
    assert placement.events.filter(kind="offered").count() == 1
    assert placement.places.filter(room=free_room).count() == 1


def test_after_the_deadline_nobody_accepts(
    bob: User, placement: Placement, free_room: Room
) -> None:
    offer = offered(bob, placement, free_room)
    end_deadlines()
    with pytest.raises(OfferEndedError, match="deadline"):
        offer_accept(offer=offer)
    offer_extend(user=bob, offer=offer, hours=1)
    offer_accept(offer=offer)


@pytest.mark.parametrize("hours", [0, -1, 721, 10**6])
def test_hours_out_of_range_are_refused(
    hours: int, bob: User, placement: Placement, free_room: Room
) -> None:
    with pytest.raises(HousingError, match="hours away"):
        offered(bob, placement, free_room, hours)
    assert not WaitingOffer.objects.exists()


def test_a_deadline_is_hours_from_now_across_a_change_of_clocks(
    bob: User, placement: Placement, free_room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    Organisation.objects.update(time_zone="Europe/Berlin")
    placement.organisation.refresh_from_db()
    friday = datetime(2026, 10, 24, 10, 0, tzinfo=UTC)  # 12:00 summer time; clocks go back next day
    monkeypatch.setattr(timezone, "now", lambda: friday)
    offer = offered(bob, placement, free_room, 48)
    assert offer.deadline - offer.offered_at == timedelta(hours=48)
    assert moment_in_words(offer.deadline, placement.organisation) == "26 October 2026, 11:00 (CET)"
    monkeypatch.setattr(timezone, "now", lambda: friday + timedelta(hours=47, minutes=59))
    offers_sweep()
    offer.refresh_from_db()
    assert offer.is_open
    monkeypatch.setattr(timezone, "now", lambda: friday + timedelta(hours=48))
    offers_sweep()
    offer.refresh_from_db()
    assert offer.state == OfferState.EXPIRED


# -- a bed under offer -----------------------------------------------------------------------------


def test_a_held_bed_is_free_for_nobody_else(
    bob: User, placement: Placement, free_room: Room
) -> None:
    first = offered(bob, placement, free_room)
    second = offered(bob, placement, free_room)
    assert (first.student.number, second.student.number) == (1006, 1007)
    with pytest.raises(HousingError, match="no free bed"):
        offered(bob, placement, free_room)
    with pytest.raises(HousingError, match="is offered to S-1006 until"):
        late_change(bob, placement, 1008, free_room)
    offer_withdraw(user=bob, offer=second, why="A mistake")
    late_change(bob, placement, 1008, free_room)
    offer_accept(offer=first)
    assert placement.places.filter(room=free_room).count() == 2


def test_the_next_student_is_the_first_whom_the_rules_allow(
    bob: User, placement: Placement, free_room: Room
) -> None:
    students = {s.number: s for s in placement.cohort.students.all()}
    ForbiddenPair.objects.create(
        cohort=placement.cohort, first=students[1006], second=students[1007]
    )
    offered(bob, placement, free_room)
    coming = next_student(placement, free_room)
    assert coming.number == 1008
    assert [number for number, _ in coming.skipped] == [1006, 1007]
    assert "never to share" in coming.skipped[1][1]
    with pytest.raises(PlacesChangedError, match="S-1008 is next by now"):
        offer_make(user=bob, placement=placement, room=free_room, number=1007, hours=1)


def test_a_rule_made_since_keeps_a_bed_from_the_student(
    bob: User, placement: Placement, free_room: Room
) -> None:
    offer = offered(bob, placement, free_room)
    late_change(bob, placement, 1001, free_room)
    students = {s.number: s for s in placement.cohort.students.all()}
    ForbiddenPair.objects.create(
        cohort=placement.cohort, first=students[1001], second=students[1006]
    )
    with pytest.raises(BedLostError, match="never to share"):
        offer_accept(offer=offer)
    offer.refresh_from_db()
    assert offer.is_open, "all or nothing"
    offer_void(offer=offer, why="A rule.")
    assert placement.places.get(number=1006).room is None


def test_offers_end_with_the_publication_and_when_the_student_gets_a_bed(
    bob: User, placement: Placement, free_room: Room
) -> None:
    first, second = (offered(bob, placement, free_room) for _ in range(2))
    late_change(bob, placement, 1006, free_room)
    first.refresh_from_db()
    assert (first.state, first.why) == (OfferState.WITHDRAWN, "The student got a bed otherwise.")
    placement_unpublish(user=bob, placement=placement, people=6)
    second.refresh_from_db()
    assert second.why == "The publication was withdrawn."
    placement.refresh_from_db()
    with pytest.raises(HousingError, match="not published"):
        offered(bob, placement, free_room)


def test_a_room_held_back_or_full_is_not_offered(
    bob: User, placement: Placement, free_room: Room
) -> None:
    full = placement.buildings.rooms.get(name="101")
    with pytest.raises(HousingError, match="no free bed"):
        offered(bob, placement, full)
    Room.objects.filter(pk=free_room.pk).update(state="kept")
    with pytest.raises(HousingError, match="no free bed"):
        offered(bob, placement, free_room)


# -- the next in line ------------------------------------------------------------------------------


def test_a_declined_or_unanswered_bed_goes_to_the_next_by_itself(
    bob: User, placement: Placement, free_room: Room
) -> None:
    offer_decline(offer=offered(bob, placement, free_room))
    assert offers_sweep() == 1
    second = WaitingOffer.objects.holding().get()
    assert (second.student.number, second.offered_by) == (1007, None)
    assert WaitingOffer.objects.get(state="declined").following == "Offered to S-1007."
    end_deadlines()
    assert offers_sweep() == 2
    assert WaitingOffer.objects.holding().get().student.number == 1008
    assert offers_sweep() == 0
    for _ in range(2):
        end_deadlines()
        offers_sweep()
    last = WaitingOffer.objects.get(student__number=1009)
    assert last.following == "Nobody on the list may live there."
    assert not WaitingOffer.objects.holding().exists()


def test_automatic_offers_can_be_switched_off(
    bob: User, placement: Placement, free_room: Room
) -> None:
    settings_of(bob, placement, is_automatic=False)
    offer_decline(offer=offered(bob, placement, free_room))
    assert offers_sweep() == 0
    assert WaitingOffer.objects.get().following == "Automatic offers are off."
    settings_of(bob, placement)
    assert offers_sweep() == 0, "an old offer is not followed later"


def test_students_without_an_address_are_phoned_or_skipped(
    bob: User, placement: Placement, free_room: Room
) -> None:
    placement.cohort.students.filter(number=1006).update(email="not an address")
    offer = offered(bob, placement, free_room)
    assert offer.student.number == 1006
    assert mail_words(offer) == "No e-mail: phone the student"
    offer_decline(offer=offer, user=bob)
    offer.refresh_from_db()
    assert offer.answered_by == bob
    WaitingOffer.objects.all().delete()
    settings_of(bob, placement, skips_unreachable=True)
    coming = next_student(placement, free_room)
    assert coming.number == 1007
    assert coming.skipped == [(1006, "S-1006 has no e-mail.")]


def test_the_sweep_is_registered() -> None:
    names = [work.name for work in periodic_work()]
    assert "webapp.waiting.services.offers_sweep" in names
    assert "webapp.residents.mails.resident_mails_send" in names


# -- mails -----------------------------------------------------------------------------------------


def test_mails_carry_the_link_only_as_they_leave(
    bob: User, placement: Placement, free_room: Room, settings: LazySettings
) -> None:
    settings.PUBLIC_URL = "https://hall.example"
    offer = offered(bob, placement, free_room)
    assert "hall.example" not in ResidentMail.objects.get().text
    assert resident_mails_send() == 1
    (sent,) = mail.outbox
    assert sent.to == ["finn@uni.example"]
    assert "https://hall.example/q/" in sent.body
    assert "Alder 104" in sent.body
    assert "te ofrecemos una cama" in sent.body
    assert "Anna" not in sent.body
    offer_withdraw(user=bob, offer=offer, why="Secret reason")
    assert resident_mails_send() == 1
    assert "Secret" not in mail.outbox[1].body


def test_a_mail_about_an_ended_offer_stays_unsent(
    bob: User, placement: Placement, free_room: Room, settings: LazySettings
) -> None:
    settings.PUBLIC_URL = "https://hall.example"
    offer_accept(offer=offered(bob, placement, free_room))
    assert resident_mails_send() == 0
    assert ResidentMail.objects.get().error == "The offer ended before the mail was sent."
    assert mail.outbox == []


def test_without_a_public_address_staff_are_asked_to_phone(
    bob: User, placement: Placement, free_room: Room, settings: LazySettings
) -> None:
    settings.PUBLIC_URL = ""
    offer = offered(bob, placement, free_room)
    resident_mails_send()
    assert mail_words(offer).startswith("Mail failed: This installation has no public address")


def test_a_decision_about_a_change_is_mailed_once(
    bob: User, placement: Placement, settings: LazySettings
) -> None:
    settings.PUBLIC_URL = "https://hall.example"
    student = placement.cohort.students.get(number=1001)
    ask = ChangeAsk.objects.create(student=student, placement=placement, wish="room", text="Loud")
    ask_decide(user=bob, ask=ask, state="declined", answer="No bed is free.", version=1)
    ask_decide(user=bob, ask=ask, state="accepted", answer="", version=2)
    assert resident_mails_send() == 1
    (sent,) = mail.outbox
    assert "decided about the change" in sent.body
    assert "No bed is free" not in sent.body


# -- several at once -------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_many_answers_at_once_give_one_bed(
    bob: User, placement: Placement, free_room: Room
) -> None:
    """Eight students and staff answer two offers and the sweep runs, all at the same moment."""
    offers = [offered(bob, placement, free_room) for _ in range(2)]
    results: list[str] = []

    def run(act: object) -> None:
        try:
            act()
            results.append("done")
        except Refusal as refusal:
            results.append(type(refusal).__name__)
        finally:
            connection.close()

    acts = [lambda o=offer: offer_accept(offer=o) for offer in offers for _ in range(3)]
    acts += [lambda o=offer: offer_decline(offer=o) for offer in offers]
    acts += [offers_sweep]
    is_shared = connection.is_in_memory_db() if connection.vendor == "sqlite" else False
    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    if is_shared:
        [thread.run() for thread in threads]
    else:
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    states = list(WaitingOffer.objects.filter(pk__in=[o.pk for o in offers]).values_list("state"))
    assert all(state in (("accepted",), ("declined",)) for state in states)
    accepted = sum(state == ("accepted",) for state in states)
    assert placement.places.filter(room=free_room).count() == accepted
    assert placement.events.filter(kind="offered").count() == accepted
    held = WaitingOffer.objects.holding().filter(room=free_room).count()
    assert accepted + held <= free_room.capacity
    assert results.count("done") == 3


def test_extra_beds_are_offered_once_normal_beds_are_taken(
    bob: User, placement: Placement, free_room: Room
) -> None:
    full = placement.buildings.rooms.get(name="101")
    placement.buildings.rooms.filter(pk=full.pk).update(extra_beds=1)
    assert [card.room.name for card in free_rooms(placement)] == ["104", "101"]
    assert not next_student(placement, free_room).is_extra
    assert next_student(placement, full).is_extra
    offer = offered(bob, placement, full)
    with pytest.raises(HousingError, match="no free bed"):
        offered(bob, placement, full)
    offer_accept(offer=offer)
    place = placement.places.get(number=offer.student.number)
    assert (place.room_id, place.bed) == (full.pk, 3)
    assert placement.places.filter(room=full).count() == 3
