"""A published placement: every change is a draft that names the people, and is confirmed."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.conftest import make_user
from tests.webapp.factories.campus import check, two_rooms
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import Placement, PlacementEvent, ProposedChange
from webapp.housing.services.decisions import (
    Move,
    emptying,
    moving,
    places_lock,
    places_move,
    returning,
    students_withdraw,
    withdrawing,
)
from webapp.housing.services.drafts import draft_add, draft_confirm
from webapp.housing.services.publication import placement_publish, placement_unpublish
from webapp.housing.services.undo import decision_undo

ClientOf = Callable[[User], Client]


@pytest.fixture
def published(carol: User, placement: Placement) -> Placement:
    placement_publish(user=carol, placement=placement, version=placement.version)
    return fresh(placement)


def fresh(placement: Placement) -> Placement:
    return Placement.objects.get(pk=placement.pk)


def beds(placement: Placement) -> list[tuple[object, ...]]:
    return list(placement.places.values_list("number", "room", "bed", "is_locked", "has_left"))


def seen(placement: Placement, user: User) -> dict[str, object]:
    now = fresh(placement)
    return {"user": user, "placement": now, "version": now.version}


def confirm(placement: Placement, user: User) -> PlacementEvent:
    draft = ProposedChange.objects.get(placement=placement, owner=user)
    version = fresh(placement).version
    return draft_confirm(user=user, draft=draft, people=len(draft.seats), version=version)


def test_no_service_moves_anybody_of_a_published_placement_at_once(
    bob: User, published: Placement
) -> None:
    (a, b), _ = two_rooms(published)
    before = beds(published)
    for act in (
        lambda: places_move(moves=[Move(a, None)], sentence="out", **seen(published, bob)),
        lambda: students_withdraw(numbers=[b], **seen(published, bob)),
    ):
        with pytest.raises(HousingError, match="Put this into a draft of late changes"):
            act()
    assert beds(published) == before


def test_a_late_change_is_a_draft_that_names_the_people_until_it_is_confirmed(
    bob: User, published: Placement, client_of: ClientOf
) -> None:
    (a, b), (c, d) = two_rooms(published)
    room = {n: published.places.get(number=n).room for n in (a, b, c, d)}
    client, at = client_of(bob), f"/placements/{published.pk}/"
    before = beds(published)
    sent = {"version": published.version, "back": "hall=all"}
    swap = {**sent, "act": "swap", "student": [f"S-{a}", f"S-{c}"]}
    page = Page(client.post(f"{at}decide/", swap, follow=True))
    assert page.has("status", "Nothing is changed before you confirm it.")
    own = page.one("region", "Draft of late changes")
    assert own.says("Your draft of late changes")
    assert own.says("Nothing is changed yet: 2 people change rooms.")
    client.post(f"{at}changes/withdraw/", {**sent, "students": f"S-{b}"})
    assert beds(published) == before
    own = Page(client.get(f"{at}changes/")).one("region", "Draft of late changes")
    assert own.has("button", "Confirm: 2 people change rooms, 1 person withdraws", exactly=True)
    assert own.one("listitem", f"S-{b}").says("withdraws")
    draft = ProposedChange.objects.get(placement=published)
    told = Page(client_of(make_user("dave", bob.organisation, "staff")).get(at))
    assert told.one("region", "Draft of late changes").says("Draft of late changes by bob")
    address = f"{at}drafts/{draft.pk}/"
    client.post(address, {"act": "drop", "student": f"S-{b}"})
    client.post(address, {"act": "confirm", "people": "3", "version": published.version})
    assert beds(published) == before  # three were asked about, two are left
    client.post(address, {"act": "confirm", "people": "2", "version": published.version})
    now = dict(published.places.values_list("number", "room_id"))
    assert (now[a], now[c], now[b]) == (room[c].pk, room[a].pk, room[b].pk)
    assert not ProposedChange.objects.filter(placement=published).exists()
    event = published.events.first()
    assert event.sentence == "Late changes confirmed: 2 people change rooms."
    line = AuditLine.objects.filter(verb="confirmed late changes").get()
    assert set(line.details["students"]) == {f"S-{a}", f"S-{c}"}
    check(published)


def test_emptying_a_floor_of_a_published_placement_takes_no_bed_before_a_confirmed_draft(
    bob: User, published: Placement, client_of: ClientOf
) -> None:
    client, at = client_of(bob), f"/placements/{published.pk}/"
    before = beds(published)
    people = published.places.filter(room__designation="F").count()
    sent = {"act": "empty", "scope": "matching", "count": "8", "back": "designation=F"}
    sent["version"] = published.version
    own = Page(client.post(f"{at}decide/", sent, follow=True)).one("region", "Draft of late")
    assert beds(published) == before
    confirm_it = own.one("button", f"Confirm: {people} people lose their bed")
    assert "button--danger" in confirm_it.element.get("class")
    losing = published.places.filter(room__designation="F").values_list("number", flat=True)
    listed = {line.text.split()[0] for line in own.every("listitem", "no room")}
    assert listed == {f"S-{number}" for number in losing}


def test_a_draft_is_checked_as_a_whole_so_that_three_can_change_in_a_ring(
    bob: User, published: Placement
) -> None:
    (a, _), (c, _) = two_rooms(published)
    room = dict(published.places.values_list("number", "room_id"))
    with pytest.raises(HousingError, match="fewer than 3 people"):
        draft_add(decision=moving([Move(a, room[c])], "in"), **seen(published, bob))
    draft_add(decision=emptying([c]), **seen(published, bob))
    draft_add(decision=moving([Move(a, room[c])], "in"), **seen(published, bob))
    draft_add(decision=moving([Move(c, room[a])], "in"), **seen(published, bob))
    confirm(published, bob)
    now = dict(published.places.values_list("number", "room_id"))
    assert (now[a], now[c]) == (room[c], room[a])


def test_what_is_as_it_was_again_leaves_the_draft(bob: User, published: Placement) -> None:
    (a, _), _ = two_rooms(published)
    room = published.places.get(number=a).room_id
    assert draft_add(decision=emptying([a]), **seen(published, bob)) is not None
    assert draft_add(decision=moving([Move(a, room)], "back"), **seen(published, bob)) is None
    assert not ProposedChange.objects.exists()


def test_a_draft_is_confirmed_only_as_it_was_seen(
    bob: User, carol: User, published: Placement
) -> None:
    (a, b), (c, _) = two_rooms(published)
    draft_add(decision=emptying([a]), **seen(published, bob))
    draft = ProposedChange.objects.get(owner=bob)
    version = fresh(published).version
    with pytest.raises(PlacesChangedError, match="not what the page showed"):
        draft_confirm(user=bob, draft=draft, people=2, version=version)
    draft_add(decision=emptying([c]), **seen(published, carol))
    confirm(published, carol)  # another room: no conflict
    places_lock(numbers=[b], locked=True, **seen(published, carol))
    with pytest.raises(PlacesChangedError, match="was changed since"):
        draft_confirm(user=bob, draft=draft, people=1, version=version)
    places_lock(numbers=[a], locked=True, **seen(published, carol))
    with pytest.raises(HousingError, match=f"S-{a} is locked"):
        confirm(published, bob)
    assert published.places.get(number=a).room_id is not None


def test_withdrawing_and_coming_back_are_late_changes(bob: User, published: Placement) -> None:
    (a, _), _ = two_rooms(published)
    draft_add(decision=withdrawing([a]), **seen(published, bob))
    assert confirm(published, bob).sentence == "Late changes confirmed: 1 person withdraws."
    draft_add(decision=returning([a]), **seen(published, bob))
    assert confirm(published, bob).sentence == "Late changes confirmed: 1 person comes back."
    assert not published.places.get(number=a).has_left


def test_undo_of_a_late_change_is_confirmed_too(
    bob: User, published: Placement, client_of: ClientOf
) -> None:
    (a, _), _ = two_rooms(published)
    before = beds(published)
    draft_add(decision=emptying([a]), **seen(published, bob))
    event = confirm(published, bob)
    after = beds(published)
    with pytest.raises(PlacesChangedError, match="changes the beds of 1"):
        decision_undo(user=bob, placement=published, event=event)
    client, at = client_of(bob), f"/placements/{published.pk}/"
    page = Page(client.post(f"{at}undo/{event.pk}/"))
    assert page.has("heading", "Undo this late change?")
    assert page.has("listitem", f"S-{a}")
    assert beds(published) == after
    answer = client.post(f"{at}undo/{event.pk}/", {"confirmed": "1"})
    assert answer.url == f"{at}history/"
    assert beds(published) == before


def test_locks_and_reviews_of_a_published_placement_are_done_at_once(
    bob: User, published: Placement, client_of: ClientOf
) -> None:
    (a, _), _ = two_rooms(published)
    room = published.places.get(number=a).room_id
    for act in ("lock", "accept"):
        sent = {"act": act, "room": room, "version": fresh(published).version}
        client_of(bob).post(f"/placements/{published.pk}/decide/", sent)
    assert published.places.get(number=a).is_locked
    assert published.accepted_rooms.count() == 1


def test_withdrawing_a_publication_names_the_number_and_asks(
    bob: User, carol: User, published: Placement, client_of: ClientOf
) -> None:
    at = f"/placements/{published.pk}/publish/"
    assert client_of(bob).post(at, {"action": "withdraw"}).status_code == 403
    client = client_of(carol)
    page = Page(client.post(at, {"action": "withdraw"}))
    assert page.has("heading", "Withdraw the publication?")
    assert page.has("paragraph", "32 students have a published bed in P.")
    assert page.has("button", "Withdraw 32 published beds")
    client.post(at, {"action": "withdraw", "people": "31"})
    assert fresh(published).is_published
    client.post(at, {"action": "withdraw", "people": "32"})
    assert not fresh(published).is_published
    assert published.events.first().sentence == "Publication withdrawn: 32 beds were published."
    with pytest.raises(HousingError, match="is not published"):
        placement_unpublish(user=carol, placement=published, people=32)


def test_a_published_placement_is_not_removed(
    carol: User, published: Placement, client_of: ClientOf
) -> None:
    at = f"/placements/{published.pk}/delete/"
    page = Page(client_of(carol).post(at, {"name": "P"}), status=422)
    refusal = "P is published. Withdraw the publication first. Nothing was removed."
    assert refusal in page.field("to confirm").description
    assert Placement.objects.filter(pk=published.pk).exists()


def test_a_cohort_with_published_beds_is_not_purged_and_everything_that_goes_is_listed(
    carol: User, bob: User, published: Placement, client_of: ClientOf
) -> None:
    client, cohort = client_of(carol), published.cohort
    at = f"/cohorts/{cohort.pk}/"
    purge = Page(client.get(at)).one("dialog", "Purge this cohort")
    assert purge.has("alert", "Students of this cohort have published beds.")
    rooms = "the published rooms of 32 students (P), with 2 acts of its history"
    assert purge.has("listitem", rooms)
    assert purge.has("listitem", "3 requests")
    page = Page(client.post(f"{at}purge/", {"name": cohort.name}), status=422)
    refusal = "32 students have a published bed in P. Withdraw the publication first."
    assert refusal in page.field("to confirm").description
    assert beds(published)
    assert cohort.requests.count() == 3
    placement_unpublish(user=carol, placement=published, people=32)
    purge = Page(client.get(at)).one("dialog", "Purge this cohort")
    assert purge.has("listitem", "the rooms of 32 students in the draft P")
    client.post(f"{at}purge/", {"name": cohort.name})
    assert not Placement.objects.exists()


def test_viewers_see_no_draft_and_other_organisations_find_none(
    alice: User, mallory: User, bob: User, published: Placement, client_of: ClientOf
) -> None:
    (a, _), _ = two_rooms(published)
    draft = draft_add(decision=emptying([a]), **seen(published, bob))
    at = f"/placements/{published.pk}/"
    assert "draft of late changes" not in Page(client_of(alice).get(at)).source.casefold()
    sent = {"act": "confirm", "people": "1", "version": fresh(published).version}
    for user, status in ((alice, 403), (mallory, 404)):
        assert client_of(user).post(f"{at}drafts/{draft.pk}/", sent).status_code == status
    assert Client().post(f"{at}drafts/{draft.pk}/", sent).status_code == 302
    assert client_of(bob).post(f"{at}drafts/999/", sent).status_code == 404
    assert published.places.get(number=a).room_id is not None
