"""Another room for one student: what is offered can be done, and changes what it says."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.factories.campus import check
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.decisions import Move, places_lock, places_move
from webapp.housing.services.undo import decision_undo

ClientOf = Callable[[User], Client]


def seen(placement: Placement, user: User) -> dict[str, object]:
    placement.refresh_from_db()
    return {"user": user, "placement": placement, "version": placement.version}


def total(placement: Placement) -> float:
    return float(outcome(PlacementRooms(Placement.objects.get(pk=placement.pk)))["total"])


def bound(placement: Placement) -> set[int]:
    return {number for pair in PlacementRooms(placement).requests.mutual for number in pair}


def free_student(placement: Placement) -> int:
    housed = placement.places.filter(room__isnull=False).values_list("number", flat=True)
    return next(number for number in housed if number not in bound(placement))


def test_every_room_and_swap_that_is_offered_changes_the_total_as_said(
    bob: User,
    placement: Placement,
) -> None:
    number = free_student(placement)
    found = choices_of(PlacementRooms(placement), number)
    before = total(placement)
    assert found.rooms
    assert found.swaps
    gains = [choice.total for choice in found.rooms]
    assert gains == sorted(gains, reverse=True)
    for choice in found.rooms:
        moves = [Move(number, choice.card.room.pk)]
        event = places_move(moves=moves, sentence="moved", **seen(placement, bob))
        assert total(placement) - before == pytest.approx(choice.total, abs=1e-9)
        own = placement.places.get(number=number).score
        assert own == (None if choice.own is None else pytest.approx(choice.own))
        decision_undo(user=bob, placement=placement, event=event)
    own_room = placement.places.get(number=number).room_id
    for offer in found.swaps:
        moves = [Move(number, offer.room.pk), Move(offer.number, own_room)]
        event = places_move(moves=moves, sentence="swapped", **seen(placement, bob))
        assert total(placement) - before == pytest.approx(offer.total, abs=1e-9)
        decision_undo(user=bob, placement=placement, event=event)
    check(placement)


def test_nobody_is_offered_a_room_away_from_whom_they_must_live_with(
    bob: User,
    placement: Placement,
) -> None:
    number = min(bound(placement))
    found = choices_of(PlacementRooms(placement), number)
    assert (found.rooms, found.swaps) == ([], [])
    named = choices_of(PlacementRooms(placement), number, "elm")
    sentence = f"S-{number} and S-{max(bound(placement))} asked to live together"
    assert any(choice.reason.startswith(sentence) for choice in named.refused)


def test_a_room_that_is_named_says_which_rule_stands_in_the_way(placement: Placement) -> None:
    woman = placement.places.filter(room__designation="F").exclude(number__in=bound(placement))
    found = choices_of(PlacementRooms(placement), woman.first().number, "alder 200")
    assert found.rooms == []
    assert "is for Gender “M”" in found.refused[0].reason
    shut = choices_of(PlacementRooms(placement), woman.first().number, "elm d9")
    assert "is offline" in shut.refused[0].reason


def test_who_is_locked_or_unknown_gets_a_sentence(bob: User, placement: Placement) -> None:
    number = free_student(placement)
    places_lock(numbers=[number], locked=True, **seen(placement, bob))
    with pytest.raises(HousingError, match=r"is locked into .* Release it first"):
        choices_of(PlacementRooms(placement), number)
    with pytest.raises(HousingError, match="S-9999 is not in this placement"):
        choices_of(PlacementRooms(placement), 9999)


def test_the_dialog_is_for_staff_of_the_organisation(
    alice: User,
    bob: User,
    mallory: User,
    placement: Placement,
    client: Client,
    client_of: ClientOf,
) -> None:
    number = free_student(placement)
    at = f"/placements/{placement.pk}/choose/?student=S-{number}&act=move"
    page = Page(client_of(bob).get(at))
    assert "<html" in page.source
    assert page.has("heading", "Swap with")
    part = {"hx-request": "true", "hx-target": "dialog-slot"}
    dialog = Page(client_of(bob).get(at, headers=part))
    assert "<html" not in dialog.source
    assert dialog.one("dialog", "Another room").has("heading", "Swap with")
    nobody = Page(client_of(bob).get(at.replace(f"S-{number}", "Anna")))
    assert nobody.says("is nobody in First-years")
    assert client_of(alice).get(at).status_code == 403
    assert client_of(mallory).get(at).status_code == 404
    assert client.get(at).status_code == 302


def test_a_choice_is_taken_with_one_button(
    bob: User,
    placement: Placement,
    client_of: ClientOf,
) -> None:
    number = free_student(placement)
    choice = choices_of(PlacementRooms(placement), number).rooms[0]
    data = {
        "act": "move",
        "student": f"S-{number}",
        "to": choice.card.room.label,
        "version": placement.version,
    }
    answer = client_of(bob).post(
        f"/placements/{placement.pk}/decide/", data, headers={"hx-request": "true"}
    )
    page = Page(answer)
    assert page.says(f"S-{number} moved to {choice.card.room.label}.")
    assert 'hx-swap-oob="innerHTML:#dialog-slot"' in page.source
    assert placement.places.get(number=number).room == choice.card.room
