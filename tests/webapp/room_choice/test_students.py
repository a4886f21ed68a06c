"""Students choose rooms on their pages: who sees what, what is refused, and in which words."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.webapp.roles import Page
from tests.webapp.room_choice.conftest import Chooser, open_for_all, request_each_other
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.models import Placement, Room, RoommateRequest
from webapp.housing.services.decisions import Move, places_lock, places_move
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import ForbiddenPair
from webapp.room_choice.models import ChoiceRound, RoomChoice
from webapp.room_choice.selectors.rooms import offers_of
from webapp.room_choice.services import rounds as services

ChooserOf = Callable[..., Chooser]


def rooms_offered(one: Chooser) -> list[str]:
    return [offer.room.label for offer in offers_of(one.turn)]


def room(placement: Placement, name: str) -> Room:
    found: Room = placement.buildings.rooms.get(name=name)
    return found


def where(placement: Placement) -> dict[int, str]:
    rows = placement.places.with_bed().values_list("number", "room__name")
    return dict(rows)


def test_the_page_says_when_and_whom_before_the_slot(
    round: ChoiceRound, chooser: ChooserOf
) -> None:
    round.slots.update(starts_at=timezone.now() + timedelta(hours=2))
    one = chooser(1002)
    assert one.home().has("heading", "Room choice")
    assert not one.home().says("Nothing is published")
    page = one.look()
    assert page.has("paragraph", "You can choose a room from")
    assert [item.text for item in page.every("listitem")] == ["You", "Name3 Family3"]
    assert page.has("paragraph", "You asked for each other")
    for secret in ("Free rooms", "S-10", "Name5", "@uni"):
        assert secret not in page.source, secret
    answer = one.choose(room(round.placement, "100").pk)
    assert answer.status_code == 409
    assert not RoomChoice.objects.exists()


def test_a_group_chooses_by_any_member_changes_and_sees_who_chose(
    round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    one, other = chooser(1002), chooser(1004)
    page = one.look()
    assert not page.says("8 rooms can take you")
    assert page.has("heading", "Free rooms")
    assert rooms_offered(one)[:2] == ["Alder 100", "Alder 101"]
    address = one.at(room(free, "100").pk)
    assert page.one("link", "Choose Alder 100").address == address
    assert Page(one.client.get(address)).has("button", "Take it for all of us")
    assert one.choose(room(free, "100").pk).status_code == 302
    assert where(free) == {1002: "100", 1004: "100"}
    assert set(free.places.filter(is_locked=True).values_list("number", flat=True)) == {1002, 1004}
    page = other.look()
    assert page.said_of("Room") == "100"
    assert page.has("paragraph", "Name1 Family1 chose it for you.")
    assert other.choose(room(free, "101").pk).status_code == 302
    assert where(free) == {1002: "101", 1004: "101"}
    event = free.events.first()
    assert event.user is None
    assert "S-1004 chose Alder 101, also for S-1002." in event.sentence
    line = AuditLine.objects.filter(verb="chose a room").first()
    assert line.organisation_id == free.organisation_id
    again = other.choose(room(free, "101").pk)
    assert again.status_code == 302
    assert free.events.first() == event


def test_a_room_taken_a_moment_ago_is_said_with_what_is_free(
    round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    late, first = chooser(1002), chooser(1006)
    seen = late.turn.seen
    assert first.choose(room(free, "100").pk).status_code == 302
    page = Page(late.choose(room(free, "100").pk, seen), status=409)
    assert page.has("alert", "Somebody took room Alder 100 a moment ago.")
    assert page.has("link", "Choose Alder 101")
    assert "Name5" not in page.source
    assert late.client.get(late.at(room(free, "100").pk)).status_code == 409
    single = chooser(1008)
    page = single.look("?who=shared")
    taken = page.one("listitem", "Alder 100")
    assert taken.says("1 student lives there.")
    assert taken.says("of 100 pairs of students")
    assert "Name5" not in page.source
    assert "S-1006" not in page.source
    assert not page.says("Alder 101")


def test_rules_needs_states_and_others_decide_what_is_offered(
    bob: User, round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    one = chooser(1002)
    assert not any(label.startswith("Alder 2") for label in rooms_offered(one))  # for men
    assert "Elm S0" not in rooms_offered(one)  # too small for two
    Room.objects.filter(name="101").update(state="kept")
    assert "Alder 101" not in rooms_offered(one)
    refused = Page(one.choose(room(free, "101").pk), status=409)
    assert refused.has("alert", "cannot take you")
    students = {s.number: s for s in free.cohort.students.all()}
    ForbiddenPair.objects.create(cohort=free.cohort, first=students[1002], second=students[1006])
    chooser(1006).choose(room(free, "T0").pk)
    assert "Elm T0" not in rooms_offered(one)
    students[1004].attributes["Accessible"] = "yes"
    students[1004].save()
    assert rooms_offered(one) == []
    assert one.look().has("paragraph", "No free room can take all 2 of you now.")
    Room.objects.filter(name="102").update(meets=["Accessible"])
    assert rooms_offered(one) == ["Alder 102"]
    other = Placement.objects.create(
        organisation=free.organisation, name="Others", buildings=free.buildings, model=free.model,
        cohort=free.cohort.__class__.objects.create(
            organisation=free.organisation, name="Others", questions=[], n_students=1
        ),
        published_at=timezone.now(), revision=1,
    )  # fmt: skip
    guest = other.cohort.students.create(number=5001, answers=[], attributes={}, original_id="g")
    other.places.create(student=guest, number=5001, room=room(free, "102"), bed=1)
    assert rooms_offered(one) == []
    assert one.choose(room(free, "102").pk).status_code == 409
    assert 1002 not in where(free)


def test_a_must_binds_to_the_room_of_the_other(
    bob: User, round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    free.refresh_from_db()
    move = [Move(1004, room(free, "103").pk)]
    places_move(user=bob, placement=free, moves=move, version=free.version, sentence="moved")
    one = chooser(1002)
    assert one.turn.numbers == [1002]
    assert rooms_offered(one) == ["Alder 103"]
    assert chooser(1004).look().has("paragraph", "You have a room already")


def test_a_group_that_changed_meanwhile_is_shown_before_anything_is_chosen(
    round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    one = chooser(1002)
    seen = one.turn.seen
    RoommateRequest.objects.filter(student__number=1004).update(is_ignored=True)
    page = Page(one.choose(room(free, "100").pk, seen), status=409)
    assert page.has("alert", "Your group or its room changed")
    assert where(free) == {}
    request_each_other(free, 1002, 1006)
    seen = one.turn.seen
    chooser(1006).choose(room(free, "100").pk)
    assert one.choose(room(free, "101").pk, seen).status_code == 409
    assert where(free) == {1002: "100", 1006: "100"}


def test_what_staff_did_is_not_undone_by_students(
    bob: User, round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    one = chooser(1006)
    one.choose(room(free, "100").pk)
    free.refresh_from_db()
    places_lock(user=bob, placement=free, numbers=[1006], locked=False, version=free.version)
    free.refresh_from_db()
    move = [Move(1006, room(free, "105").pk)]
    places_move(user=bob, placement=free, moves=move, version=free.version, sentence="moved")
    assert one.choose(room(free, "101").pk).status_code == 409
    assert where(free) == {1006: "105"}
    two = chooser(1008)
    two.choose(room(free, "102").pk)
    decision_undo(user=bob, placement=free, event=free.events.first())
    assert two.turn.is_open
    assert two.turn.room is None
    assert two.choose(room(free, "103").pk).status_code == 302


def test_paused_over_closed_and_published_are_said(
    bob: User, round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    one = chooser(1006)
    one.choose(room(free, "100").pk)
    services.round_pause(user=bob, round=round, version=2)
    assert one.look().has("paragraph", "Your housing office has paused room choice")
    assert one.choose(room(free, "101").pk).status_code == 409
    services.round_resume(user=bob, round=round, version=3)
    round.slots.update(ends_at=timezone.now() - timedelta(minutes=1))
    assert one.look().has("paragraph", "Your time to choose ended")
    assert one.choose(room(free, "101").pk).status_code == 409
    open_for_all(round)
    services.round_close(user=bob, round=round, version=4)
    assert one.look().has("paragraph", "Room choice is closed.")
    assert one.choose(room(free, "101").pk).status_code == 409
    Placement.objects.filter(pk=free.pk).update(published_at=timezone.now())
    assert one.choose(room(free, "101").pk).status_code == 409
    assert where(free) == {1006: "100"}
    assert one.home().has("heading", "Alder 100", exactly=True)


def test_who_has_no_slot_or_withdrew_learns_nothing(
    round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    one = chooser(1006)
    free.places.filter(number=1006).update(has_left=True)
    one.look(status=404)
    assert not one.home().says("Room choice")
    free.places.filter(number=1006).update(has_left=False)
    round.slots.filter(student__number=1006).delete()
    one.look(status=404)
    assert one.client.post(one.at(room(free, "100").pk), {"seen": "x"}).status_code == 404
    request_each_other(free, 1006, 1002)  # a new member of a group has the slot of the group
    assert one.turn.is_open
    assert len(one.turn.members) == 3


@pytest.mark.parametrize("seen", ["", "x" * 10_000, "0" * 16, "²", "\x00"])
def test_hostile_choices_change_nothing(
    round: ChoiceRound, chooser: ChooserOf, free: Placement, seen: str
) -> None:
    one = chooser(1006)
    for key in (room(free, "100").pk, 10**9, room(free, "D9").pk):
        assert one.choose(key, seen).status_code in (400, 409), key
    other_list = free.buildings.__class__.objects.create(
        organisation=free.organisation, name="Elsewhere"
    )
    elsewhere = Room.objects.create(buildings=other_list, hall="X", name="1", capacity=2)
    assert one.choose(elsewhere.pk).status_code == 409
    assert where(free) == {}
    other = chooser(1008)
    assert other.client.get(one.address).status_code == 404  # the cookie of another page


def test_all_pages_are_in_spanish_too(
    bob: User, round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    one = chooser(1002, "es")
    pages = [one.home(), one.look(), Page(one.client.get(one.at(room(free, "100").pk)))]
    one.choose(room(free, "100").pk)
    pages.append(one.look())
    services.round_pause(user=bob, round=round, version=2)
    pages.append(one.look())
    headings = {heading.text for page in pages for heading in page.every("heading")}
    assert {"Elegir habitación", "Habitaciones libres"} <= headings
    assert pages[0].has("link", "Elige habitación")
    for english in (
        "Choose", "room", "You ", "Free", "Show", "Take", "better", "Nobody", "until", "paused",
    ):  # fmt: skip
        for page in pages:
            body = page.source.partition("<main>")[2]
            assert english not in body.replace("/rooms/", "").replace('id="rooms"', ""), english


def test_a_sign_in_opens_the_page_during_a_round(round: ChoiceRound, free: Placement) -> None:
    from webapp.identity.students import SignedInStudent
    from webapp.residents.selectors import page_student

    signed_in = SignedInStudent(free.organisation_id, "s", "N005", "")
    assert page_student(free.organisation, signed_in).number == 1006
    round.slots.all().delete()
    assert page_student(free.organisation, signed_in) is None


def test_the_address_of_another_student_needs_the_cookie(chooser: ChooserOf) -> None:
    one, other = chooser(1002), chooser(1006)
    address = reverse("room_choice:rooms", args=[other.handle])
    assert one.client.get(address).status_code == 404


def test_a_suite_of_the_other_gender_is_neither_offered_nor_taken(
    round: ChoiceRound, chooser: ChooserOf, free: Placement
) -> None:
    free.buildings.rooms.filter(name__in=("T0", "T1")).update(suite="7")
    woman, man, third = chooser(1006), chooser(1001), chooser(1008)
    assert "Elm T1" in rooms_offered(man)
    seen = man.turn.seen
    assert woman.choose(room(free, "T0").pk).status_code == 302
    assert "Elm T1" not in rooms_offered(man)
    assert man.choose(room(free, "T1").pk, seen).status_code != 302
    assert where(free) == {1006: "T0"}
    assert third.look("?hall=Elm").one("listitem", "Elm T1").says("Suite: 7")
    assert third.choose(room(free, "T1").pk).status_code == 302
    assert where(free) == {1006: "T0", 1008: "T1"}
