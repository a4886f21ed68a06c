"""Refused forms of housing keep everything typed; acts name members, and old addresses redirect."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.campus import reader_of
from tests.webapp.roles import Page
from tests.webapp.typed_forms import (
    check_kept,
    check_outlives_a_session,
    check_refused,
    field_values,
)
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement, RoommateRequest
from webapp.housing.selectors.requests import graph_of, splits_of
from webapp.housing.services.requests import requests_cut, requests_import
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]
ROOM = {
    "hall": "Alder",
    "floor": "9",
    "name": "901",
    "capacity": "2",
    "designation": "F",
    "meets": "Accessible, Quiet",
    "state": "kept",
    "note": "Held back for the RA",
}


def send(user: User, cohort: Cohort, *lines: str) -> None:
    text = "student,wants\n" + "\n".join(lines) + "\n"
    requests_import(user=user, cohort=cohort, **reader_of(text))


def chain(user: User, cohort: Cohort, first: int, last: int) -> None:
    """Make each student and the next ask for each other."""
    for k in range(first, last):
        send(user, cohort, f"N{k:03d},N{k + 1:03d}", f"N{k + 1:03d},N{k:03d}")


def at(name: str, *args: object) -> str:
    return reverse(f"housing:{name}", args=args)


@pytest.mark.parametrize(
    ("changed", "field", "error"),
    [
        ({"hall": ""}, "hall", "A room needs a hall and a name."),
        ({"hall": "x" * 81}, "hall", "at most 80 characters"),
        ({"capacity": "99"}, "capacity", "A room has 1 to"),
        ({"capacity": "two"}, "capacity", "A room has 1 to"),
        ({"meets": "x" * 81}, "meets", "At most 20 needs"),
        ({"meets": ",".join(map(str, range(21)))}, "meets", "At most 20 needs"),
        ({"note": "x" * 121}, "note", "at most 120 characters"),
    ],
)
def test_a_refused_room_keeps_everything_typed(
    client_of: ClientOf, bob: User, campus: BuildingList, changed: dict[str, str], field: str,
    error: str,
) -> None:  # fmt: skip
    before, typed = campus.rooms.count(), ROOM | changed
    page = client_of(bob).post(at("room", campus.pk, 0), typed)
    check_refused(page, {k: v for k, v in typed.items() if v}, field=field, error=error)
    assert campus.rooms.count() == before


def test_a_cleared_field_of_a_refused_room_stays_cleared(
    client_of: ClientOf, bob: User, campus: BuildingList
) -> None:
    room, other = campus.rooms.all()[:2]
    typed = ROOM | {"hall": other.hall, "name": other.name, "floor": "", "note": ""}
    page = client_of(bob).post(at("room", campus.pk, room.pk), typed)
    check_refused(page, typed, field="name", error="already has a room")
    assert Page(page, status=422).has("heading", room.label, exactly=True)
    room.refresh_from_db()
    check_outlives_a_session(client_of, bob, at("room", campus.pk, room.pk), ROOM)
    assert client_of(bob).post(at("room", campus.pk, room.pk), ROOM).status_code == 302
    room.refresh_from_db()
    assert (room.name, room.meets, room.note) == ("901", ["Accessible", "Quiet"], ROOM["note"])


def test_a_refused_placement_keeps_name_rules_and_choices(
    client_of: ClientOf, bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> None:
    typed = {
        "cohort": str(first_years.pk),
        "buildings": str(campus.pk),
        "model": str(learned.pk),
        "name": "Autumn, second try",
        "mutual": "wish",
        "one_sided": "no",
        "wish": "3.0",
        "preference": "0.5",
        "same": ["Gender"],
        "seed": "nonsense",
    }
    client, url = client_of(bob), at("placement-new")
    page = client.post(url, typed)
    check_refused(page, typed, field="seed", error="A seed is a whole number")
    gone = typed | {"seed": "7", "model": "00000000-0000-0000-0000-000000000000"}
    page = client.post(url, gone)
    check_kept(page, {name: gone[name] for name in ("name", "seed", "mutual", "one_sided", "wish")})
    model = Page(page, status=422).one("radio", learned.name)
    assert "This model was removed meanwhile. Choose another." in model.description
    assert not Placement.objects.exists()
    check_outlives_a_session(client_of, bob, url, typed | {"seed": "7"})
    assert client.post(url, typed | {"seed": "7"}).status_code == 302
    made = Placement.objects.get()
    assert (made.name, made.rules["mutual"], made.rules["wish"]) == (typed["name"], "wish", 3.0)


def test_a_new_placement_takes_the_order_of_the_chosen_list(
    client_of: ClientOf, bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> None:
    client, url = client_of(bob), at("placement-new")
    page = Page(client.get(f"{url}?cohort={first_years.pk}"))
    assert page.has("group", f"Order in which the halls of {campus.name} fill")
    halls = list(dict.fromkeys(campus.rooms.values_list("hall", flat=True)))
    typed = {
        "cohort": str(first_years.pk),
        "buildings": str(campus.pk),
        "model": str(learned.pk),
        "order-0-0": "x",
        "order-0-1": "1",
    }
    page = Page(client.post(url, typed), status=422)
    assert page.says(f"{halls[0]}: a number from 1")
    assert client.post(url, typed | {"order-0-0": ""}).status_code == 302
    assert Placement.objects.get().rules["order"] == [[halls[1], 1]]
    pairs = typed | {"order-0-0": "2", "buildings": "pairs", "name": "Pairs"}
    assert client.post(url, pairs).status_code == 302
    assert not Placement.objects.get(is_pairs=True).rules.get("order")


def test_refused_rules_keep_the_choices_and_the_old_field_still_copies(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    typed = {"mutual": "no", "one_sided": "must", "wish": "10.0", "seed": "-1", "same": []}
    client = client_of(bob)
    for name in ("placement-rules", "placement-try"):
        page = client.post(at(name, placement.pk), typed)
        check_refused(page, typed, field="seed", error="A seed is a whole number")
        check_outlives_a_session(client_of, bob, at(name, placement.pk), typed)
    fields = typed | {"seed": "", "as": "copy"}
    client.post(at("placement-rules", placement.pk), fields, follow=True)
    copy = Placement.objects.exclude(pk=placement.pk).get()
    assert copy.rules["one_sided"] == "must"


def test_a_student_who_is_nobody_stays_in_the_field_of_the_request(
    client_of: ClientOf, bob: User, first_years: Cohort
) -> None:
    send(bob, first_years, "N000,my cousin", "N001,somebody else")
    key = RoommateRequest.objects.get(student__number=1001).pk
    client, url = client_of(bob), at("request-settle", first_years.pk, key)
    back = at("requests", first_years.pk) + "?show=unknown"
    typed = {"answer": "Maximilian of the third floor", "back": back}
    page = client.post(url, typed)
    check_refused(page, typed, field="answer", error="is no student of")
    assert page.context["show"] == "unknown"
    check_refused(client.post(url, {"answer": " "}), {}, field="answer", error="Give the student's")
    assert RoommateRequest.objects.filter(is_ignored=True).count() == 0, "blank leaves nothing out"
    check_outlives_a_session(client_of, bob, url, typed)
    assert client.post(url, {"answer": "S-1009", "back": back})["Location"] == back
    assert (1001, 1009) in graph_of(first_years).one_sided
    assert client.post(url, {"answer": "S-1009"}).status_code == 302
    other = RoommateRequest.objects.get(student__number=1002)
    client.post(at("request-leave-out", first_years.pk, other.pk))
    other.refresh_from_db()
    assert other.is_ignored


def test_another_persons_change_splits_no_other_group(
    client_of: ClientOf, bob: User, first_years: Cohort
) -> None:
    """Groups were named by their place in a list: one that was settled moved the next one up."""
    chain(bob, first_years, 0, 5)
    chain(bob, first_years, 10, 15)
    client, url = client_of(bob), at("requests-split", first_years.pk)
    first, second = splits_of(first_years)
    page = client.get(at("requests", first_years.pk))
    members = "-".join(map(str, first.members))
    assert members in field_values(page, "members")
    requests_cut(user=bob, cohort=first_years, pairs=list(first.cut))
    answer = Page(client.post(url, {"members": members}, follow=True))
    assert answer.has("alert", "These requests were settled or changed meanwhile.")
    assert [split.members for split in splits_of(first_years)] == [second.members]
    chain(bob, first_years, 15, 16)  # somebody joins the other group
    old = "-".join(map(str, second.members))
    client.post(url, {"members": old})
    (grown,) = splits_of(first_years)
    assert grown.members == [*second.members, 1017]
    sent = {"members": "-".join(map(str, grown.members))}
    assert Page(client.post(url, sent, follow=True)).has("status", "1 group split")
    assert not splits_of(first_years)


@pytest.mark.parametrize("members", ["²", "1001-", "-1", "1001-x", "1" * 30, "1001 1002"])
def test_members_that_are_none_change_nothing(
    client_of: ClientOf, bob: User, first_years: Cohort, members: str
) -> None:
    chain(bob, first_years, 0, 5)
    for name in ("requests-split", "requests-circles", "requests-impossible"):
        url = at(name, first_years.pk)
        page = Page(client_of(bob).post(url, {"members": members}, follow=True))
        assert page.has("alert", "The page was out of date. Load it again.")
    assert len(splits_of(first_years)) == 1


def test_the_old_address_of_requests_repeats_each_act(
    client_of: ClientOf, bob: User, first_years: Cohort
) -> None:
    client, url = client_of(bob), at("requests-change", first_years.pk)

    def act(name: str, role: str = "status", **fields: object) -> str:
        page = Page(client.post(url, {"act": name, **fields}, follow=True))
        return page.every(role)[0].text

    chain(bob, first_years, 0, 5)
    send(bob, first_years, "N020,N021", "N021,N022", "N022,N020", "N025,N025", "N026,Zo Y")
    refused = act("split", "alert", group=0)
    assert "These requests were settled or changed meanwhile." in refused
    assert "1 group split" in act("split")
    assert "3 requests counted as asked back." in act("circle")
    assert "1 request left out." in act("themselves")
    assert "1 request left out." in act("leave-out")
    assert "counted again." in act("keep", all="1")
    assert "requests left out." in act("cut", pair="1001-1002")
    key = RoommateRequest.objects.get(target=None).pk
    assert "Means " in act("settle", request=key, answer="S-1009")
    assert "There is no such action." in act("dance", "alert")
    assert "removed." in act("clear")
    assert not RoommateRequest.objects.exists()
