"""The history lists every act, with Undo for as long as nothing later contradicts it."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.factories.campus import two_rooms
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.selectors.history import history_context
from webapp.housing.selectors.rooms import room_history
from webapp.housing.services.decisions import (
    Move,
    places_lock,
    places_move,
    students_withdraw,
)
from webapp.housing.services.reviews import rooms_accept, rooms_keep
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.waiting import turn_change

ClientOf = Callable[[User], Client]


def seen(placement: Placement, user: User) -> dict[str, object]:
    now = Placement.objects.get(pk=placement.pk)
    return {"user": user, "placement": now, "version": now.version}


def words(placement: Placement) -> list[tuple[str, str]]:
    """Return every act of the history with why it cannot be undone, "" where it can."""
    now = Placement.objects.get(pk=placement.pk)
    lines = history_context(now, {})["lines"]
    return [(line.event.sentence, line.refusal) for line in lines]


def test_every_kind_of_act_stands_in_the_history_and_can_be_undone(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    (a, b), (c, d) = two_rooms(placement)
    state = list(placement.places.values_list("number", "room", "bed", "is_locked", "turn"))
    room = placement.places.get(number=d).room
    places_lock(numbers=[b], locked=True, **seen(placement, bob))
    places_move(moves=[Move(a, None)], sentence=f"S-{a} moved out.", **seen(placement, bob))
    turn_change(user=bob, placement=placement, number=a, is_first=True)
    students_withdraw(numbers=[c], **seen(placement, bob))
    rooms_accept(rooms=[room.pk], accepted=True, **seen(placement, bob))
    rooms_keep(rooms=[room.pk], kept=True, **seen(placement, bob))
    history = words(placement)
    assert [sentence for sentence, _ in history] == [
        f"{room} was held back. 1 person needs another room here.",
        f"{room} accepted.",
        f"S-{c} withdrawn.",
        f"S-{a} is first on the waiting list.",
        f"S-{a} moved out.",
        f"S-{b} locked into {placement.places.get(number=b).room}.",
        "Version 1 placed: 32 students have a bed.",
    ]
    assert [sentence for sentence, refusal in history if refusal] == [
        f"{room} accepted.",
        "Version 1 placed: 32 students have a bed.",
    ]
    client, at = client_of(bob), f"/placements/{placement.pk}/"
    for event in list(placement.events.exclude(kind="version")):
        address = f"{at}undo/{event.pk}/"
        answer = client.post(address, {"back": f"{at}history/"})
        assert answer.url == f"{at}history/"
    now = list(placement.places.values_list("number", "room", "bed", "is_locked", "turn"))
    assert now == state
    acts = Page(client.get(f"{at}history/")).one("region", "Acts")
    assert len(acts.every("cell", "Undone", exactly=True)) == 6
    assert acts.one("row", "Version 1 placed").has("cell", "There were no rooms before it")
    first = placement.events.get(kind="version")
    answer = client.post(f"{at}undo/{first.pk}/", {"back": at})
    page = Page(client.get(answer.url))
    assert page.has("alert", "There is nothing to put back. Nothing was changed.")


def test_a_later_act_on_the_same_student_or_bed_ends_undo_and_its_undo_brings_it_back(
    bob: User, placement: Placement
) -> None:
    (a, _), (c, _) = two_rooms(placement)
    room = placement.places.get(number=a).room_id
    first = places_move(moves=[Move(a, None)], sentence="one", **seen(placement, bob))
    second = places_move(moves=[Move(c, room)], sentence="two", **seen(placement, bob))
    assert dict(words(placement))["one"] == f"S-{c} has the bed of S-{a} by now."
    with pytest.raises(HousingError, match="has the bed"):
        decision_undo(user=bob, placement=placement, event=first)
    decision_undo(user=bob, placement=placement, event=second)
    assert dict(words(placement))["one"] == ""
    decision_undo(user=bob, placement=placement, event=first)
    assert dict(words(placement))["one"] == "This was undone already."
    assert placement.places.get(number=a).room_id == room


def test_undo_is_an_act_that_can_be_undone(bob: User, placement: Placement) -> None:
    (a, _), _ = two_rooms(placement)
    room = placement.places.get(number=a).room
    event = places_move(moves=[Move(a, None)], sentence="out", **seen(placement, bob))
    assert decision_undo(user=bob, placement=placement, event=event) == "Undone: out"
    assert Placement.objects.get(pk=placement.pk).changes == 0
    assert [entry.words for entry in room_history(placement, room)] == []
    undo = placement.events.first()
    assert (undo.undoes, undo.kind) == (event, "undone")
    decision_undo(user=bob, placement=placement, event=undo)
    assert placement.places.get(number=a).room_id is None
    assert Placement.objects.get(pk=placement.pk).changes == 1
    assert [entry.words for entry in room_history(placement, room)] == [f"S-{a} left"]
    event.refresh_from_db()
    assert event.undone_at is None


def test_a_long_history_is_paged_and_names_a_few_students(
    alice: User, bob: User, placement: Placement, client_of: ClientOf
) -> None:
    numbers = list(placement.places.values_list("number", flat=True))
    for k in range(32):
        places_lock(numbers=numbers, locked=k % 2 == 0, **seen(placement, bob))
    client, at = client_of(alice), f"/placements/{placement.pk}/history/"
    page = Page(client.get(at))
    assert page.says("1 to 30 of 33")
    acts = page.one("region", "Acts")
    assert len(acts.every("cell", "and 24 more")) == 30
    assert not page.has("button", "Undo")
    # Why an act cannot be undone is for staff: it may name requests.
    assert "since" not in page.source
    acts = Page(client.get(f"{at}?page=2")).one("region", "Acts")
    assert acts.has("row", "Version 1 placed")


def test_undo_of_an_undo_counts_the_moves_since_the_certificate(
    bob: User, placement: Placement
) -> None:
    """The undo of the undo of an undo used to count as another move."""
    (a, _), _ = two_rooms(placement)
    event = places_move(moves=[Move(a, None)], sentence="one", **seen(placement, bob))
    for changes in (0, 1, 0, 1):
        decision_undo(user=bob, placement=placement, event=event)
        placement.refresh_from_db()
        assert placement.changes == changes
        event = placement.events.first()
