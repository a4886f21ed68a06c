"""Two people conflict only about the same rooms or students, so that four can work at once."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.factories.campus import two_rooms
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.errors import PlacesChangedError
from webapp.housing.models import Placement
from webapp.housing.services.conflicts import OUT_OF_DATE, check_unchanged, rooms_changed_since
from webapp.housing.services.decisions import (
    Move,
    places_lock,
    places_move,
    students_withdraw,
)
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.reviews import rooms_accept
from webapp.jobs.models import Job

ClientOf = Callable[[User], Client]


def test_who_decides_about_other_rooms_is_not_stopped(bob: User, placement: Placement) -> None:
    (a, b), (c, d) = two_rooms(placement)
    page = {"user": bob, "placement": placement, "version": placement.version}
    places_move(moves=[Move(a, None)], sentence=f"S-{a} moved out.", **page)
    places_lock(numbers=[c], locked=True, **page)
    students_withdraw(numbers=[d], **page)
    rooms_accept(rooms=[placement.places.get(number=c).room_id], accepted=True, **{
        **page, "version": page["version"] + 3
    })  # fmt: skip
    assert placement.places.get(number=b).room_id is not None


def test_who_comes_second_about_the_same_room_is_told_what_happened(
    bob: User, carol: User, placement: Placement
) -> None:
    (a, b), _ = two_rooms(placement)
    room = placement.places.get(number=a).room
    page = {"placement": placement, "version": placement.version}
    places_move(user=carol, moves=[Move(a, None)], sentence=f"S-{a} moved out.", **page)
    with pytest.raises(PlacesChangedError) as told:
        rooms_accept(user=bob, rooms=[room.pk], accepted=True, **page)
    assert str(told.value) == (
        f"{room} was changed since this page was loaded: “S-{a} moved out.” (carol). "
        "Nothing was changed by you; look at it as it is now."
    )
    with pytest.raises(PlacesChangedError, match=f"{room} was changed"):
        places_move(user=bob, moves=[Move(b, None)], sentence="out", **page)
    with pytest.raises(PlacesChangedError, match=f"S-{a} was changed"):
        places_lock(user=bob, numbers=[a], locked=True, **page)
    students_withdraw(user=bob, numbers=[b], **page)  # who withdraws does so whoever lives there


@pytest.mark.parametrize("version", [-1, 10**6])
def test_a_count_that_the_placement_never_had_is_refused(
    placement: Placement, version: int
) -> None:
    with pytest.raises(PlacesChangedError, match=str(OUT_OF_DATE)):
        check_unchanged(placement, version)


def test_publishing_is_stopped_by_a_move_but_not_by_a_lock(
    bob: User, carol: User, placement: Placement
) -> None:
    (a, b), _ = two_rooms(placement)
    page = {"placement": placement, "version": placement.version}
    places_move(user=bob, moves=[Move(a, None)], sentence="S-1 moved out.", **page)
    with pytest.raises(PlacesChangedError, match="A room was changed"):
        placement_publish(user=carol, **page)
    placement.refresh_from_db()
    page["version"] = placement.version
    places_lock(user=bob, numbers=[b], locked=True, **page)
    assert placement_publish(user=carol, **page).is_published


def test_a_run_does_not_stop_decisions(bob: User, placement: Placement) -> None:
    (a, _), _ = two_rooms(placement)
    placement.job = Job.objects.get(pk=placement.job_id)
    Job.objects.filter(pk=placement.job_id).update(state="running")
    page = {"user": bob, "placement": placement, "version": placement.version}
    places_move(moves=[Move(a, None)], sentence="out", **page)


def test_an_answer_shows_what_others_changed_meanwhile(
    bob: User, carol: User, placement: Placement, client_of: ClientOf
) -> None:
    (a, _), (c, _) = two_rooms(placement)
    mine, theirs = (placement.places.get(number=n).room_id for n in (a, c))
    version = placement.version
    rooms_accept(user=carol, placement=placement, rooms=[theirs], accepted=True, version=version)
    sent = {"act": "accept", "room": mine, "version": version, "back": "hall=all"}
    answer = client_of(bob).post(
        f"/placements/{placement.pk}/decide/", sent, headers={"hx-request": "true"}
    )
    cards = {card.element.get("id") for card in Page(answer).every("article")}
    assert cards == {f"room-{mine}", f"room-{theirs}"}
    placement.refresh_from_db()
    assert rooms_changed_since(placement, version) == {mine, theirs}


def test_four_staff_accept_every_room_from_one_page_each(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    rooms = list(
        placement.places.filter(room__isnull=False).values_list("room", flat=True).distinct()
    )
    clients, version = [client_of(bob) for _ in range(4)], placement.version
    for k, room in enumerate(sorted(set(rooms))):
        sent = {"act": "accept", "room": room, "version": version, "back": "hall=all"}
        clients[k % 4].post(f"/placements/{placement.pk}/decide/", sent)
    assert placement.accepted_rooms.count() == len(set(rooms))
